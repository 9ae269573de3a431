"""Answers requests with the user's functions."""

import importlib.util
import traceback


class Context:
    """What a hook is told."""

    def __init__(self, facts):
        self.__dict__.update(facts)

    def __repr__(self):
        return f"Context({self.__dict__!r})"


class Library:
    """The functions that requests name, by their numbers."""

    def __init__(self, plan):
        self._modules = {}
        self._loop = None
        self.mistakes = []
        self.tools = [self._tool(index, entry) for index, entry in enumerate(plan["functions"])]
        self.hooks = [self._found("hook", index, entry) for index, entry in enumerate(plan["hooks"])]
        found = [self._found("lifecycle", index, entry) for index, entry in enumerate(plan["lifecycle"])]
        self._lifecycle = list(zip(plan["lifecycle"], found))

    def _tool(self, index, entry):
        function = self._found("function", index, entry)
        if function is None:
            return None
        try:
            tool = Tool(function, entry["function"].split(".")[-1])
            if entry.get("code"):
                tool.check_code(entry["code"])
            return tool
        except Unusable as problem:
            self._mistake("function", index, str(problem))
        return None

    def _found(self, kind, index, entry):
        """The function of an entrypoint, or none and a mistake."""
        module = self._module(kind, index, entry["file"])
        if module is None:
            return None
        found = module
        for part in entry["function"].split("."):
            if not hasattr(found, part):
                self._mistake(kind, index, f"there is no `{entry['function']}` in the file")
                return None
            found = getattr(found, part)
        if not callable(found):
            self._mistake(kind, index, f"`{entry['function']}` is not a function")
            return None
        return found

    def _module(self, kind, index, path):
        if path in self._modules:
            return self._modules[path]
        self._modules[path] = None
        if not os.path.isfile(path):
            self._mistake(kind, index, "there is no such file")
            return None
        folder, stem = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
        if folder not in sys.path:
            sys.path.insert(0, folder)
        taken = stem in sys.modules or stem in sys.builtin_module_names or stem == "__main__"
        name = f"_rowmill_{len(self._modules)}_{stem}" if taken else stem
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            self._mistake(kind, index, "the file is not Python: its name does not end in `.py`")
            return None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            self._mistake(kind, index, f"the file cannot be imported: {_told(error)}", _where(error))
            return None
        self._modules[path] = module
        return module

    def _mistake(self, kind, index, what, where=""):
        self.mistakes.append({"kind": kind, "index": index, "what": what, "where": where})

    def run(self, made):
        """What a function gave, waited for where it is asynchronous. All waiting is done in one
        loop, so that what a module keeps open, such as connections, stays usable."""
        if not inspect.isawaitable(made):
            return made
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop.run_until_complete(_awaited(made))

    def lifecycle(self, when):
        """Calls the hooks of a moment, all of them, whatever becomes of each."""
        for index, (entry, function) in enumerate(self._lifecycle):
            if function is not None and entry["when"] == when:
                try:
                    self.run(function(Context({"hook_type": when, "agent_name": entry["agent"]})))
                except BaseException as error:
                    self._mistake("lifecycle", index, f"it failed: {_told(error)}", _where(error))


async def _awaited(made):
    return await made


def _where(error):
    """The last places of the user's files that an exception came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if not frame.filename.startswith("<") and "importlib" not in frame.filename]
    lines = [f"{frame.filename}:{frame.lineno}: {frame.line}" for frame in frames[-3:]]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append(f"{error.filename}:{error.lineno}: {(error.text or '').strip()}")
    return "\n".join(lines)


def _packed(result):
    """A result as a kind and bytes."""
    if result is None:
        return "none", b""
    if isinstance(result, (bytes, bytearray, memoryview)):
        return "bytes", bytes(result)
    if isinstance(result, str) and not isinstance(result, enum.Enum):
        return "text", result.encode("utf-8", "replace")
    return "json", to_json(result).encode("utf-8", "replace")


def _call(library, request, body):
    tool = library.tools[request["index"]]
    try:
        return _packed(library.run(tool.call(json.loads(body))))
    except Mismatch as mismatch:
        return "error", f"wrong arguments: {mismatch}".encode("utf-8", "replace")


def _hook(library, request, body):
    facts = json.loads(body)
    changes = library.run(library.hooks[request["index"]](Context(facts)))
    wanted = dict if facts["hook_type"] == "before_tool_call" else str
    if changes is not None and not isinstance(changes, wanted):
        raise TypeError(f"the hook returned `{type(changes).__name__}`; it may return None or `{wanted.__name__}`")
    return _packed(changes)


def _load(plan):
    before = dict(os.environ)
    library = Library(plan)
    if not library.mistakes:
        library.lifecycle("on_start")
    tools = [tool and {"name": tool.name, "description": tool.description, "schema": tool.schema}
             for tool in library.tools]
    # What cannot be written as UTF-8 is in no message either.
    variables = {name: value for name, value in os.environ.items()
                 if before.get(name) != value and not any("\ud800" <= c <= "\udfff" for c in name + value)}
    return library, to_json({"tools": tools, "mistakes": library.mistakes, "variables": variables}).encode()


def main():
    pipe = Pipe()
    threading.Thread(target=pipe.listen, daemon=True).start()
    library = None
    while True:
        request, body = pipe.requests.get()
        try:
            if request["do"] == "load":
                library, told = _load(json.loads(body))
                pipe.answer("json", told)
            elif request["do"] == "shutdown":
                library.lifecycle("on_shutdown")
                pipe.answer("none", b"")
                return
            else:
                pipe.answer(*(_call if request["do"] == "call" else _hook)(library, request, body))
        except BaseException as error:
            pipe.answer("error", _told(error).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
