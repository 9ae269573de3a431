"""Checks answers with the user's pydantic model."""

import importlib

MOST_VIOLATIONS = 8


def _load(plan):
    sys.path.insert(0, "")
    module, _, path = plan["model"].partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _violations(error):
    """What pydantic says, a line for each mistake."""
    lines = []
    for item in error.errors(include_url=False, include_context=False, include_input=False)[:MOST_VIOLATIONS]:
        place = "".join(f"/{part}" for part in item["loc"])
        lines.append(f"at `{place}`: {item['msg']}" if place else item["msg"])
    return lines


def _check(model, mistake, answer):
    try:
        checked = model.model_validate_json(answer)
    except mistake as error:
        return "json", json.dumps(_violations(error)).encode("utf-8", "replace")
    return "text", checked.model_dump_json(by_alias=True).encode("utf-8", "replace")


def main():
    pipe = Pipe()
    threading.Thread(target=pipe.listen, daemon=True).start()
    model = mistake = None
    while True:
        request, body = pipe.requests.get()
        try:
            if request["do"] == "load":
                model = _load(json.loads(body))
                mistake = importlib.import_module("pydantic").ValidationError
                pipe.answer("none", b"")
            elif request["do"] == "shutdown":
                pipe.answer("none", b"")
                return
            else:
                pipe.answer(*_check(model, mistake, body))
        except BaseException as error:
            pipe.answer("error", _told(error).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
