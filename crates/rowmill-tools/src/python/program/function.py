"""Functions as tools: a schema from the signature, a call from JSON."""

import functools
import inspect
import typing


class Tool:
    """A function with the schema of its arguments."""

    def __init__(self, function, name):
        self.function = function
        self.description, texts = read_docstring(function)
        forms = Forms()
        self._parameters = []
        properties = {}
        for parameter, hint in _parameters(function):
            try:
                form = forms.of(hint)
            except Unusable as problem:
                raise Unusable(f"argument `{parameter.name}`: {problem}") from None
            default = _Default(parameter.default)
            if parameter.default is None:
                form = _or_null(form)
            schema = dict(form.schema)
            if parameter.name in texts and "description" not in schema:
                schema["description"] = texts[parameter.name]
            if default.known:
                schema["default"] = default.json
            self._parameters.append((parameter, form, default))
            properties[parameter.name] = schema
        required = [parameter.name for parameter, _, default in self._parameters if default.required]
        self.schema = {"type": "object", "properties": properties, "required": required,
                       "additionalProperties": False}
        if forms.definitions:
            self.schema["$defs"] = forms.definitions
        self.name = name
        self._forms = {parameter.name: form for parameter, form, _ in self._parameters}
        self._required = required

    def check_code(self, argument):
        """A tool for code takes it as text, in an argument of this name."""
        form = self._forms.get(argument)
        if form is None or form.schema.get("type", "string") != "string":
            raise Unusable(f"`variant: code` needs an argument `{argument}` of the type `str`; "
                           "choose another one with `code_arg`")

    def call(self, arguments):
        """Calls the function with JSON arguments."""
        given = _each(_checked(arguments, dict), self._forms, self._required)
        positional, named = [], {}
        for parameter, _, default in self._parameters:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(given[parameter.name] if parameter.name in given else default.value())
            elif parameter.name in given:
                named[parameter.name] = given[parameter.name]
            elif default.made:
                named[parameter.name] = default.value()
        return self.function(*positional, **named)


def _or_null(form):
    """An argument that is None when it is not given may be given as null too."""
    if "type" not in form.schema and "enum" not in form.schema and "$ref" not in form.schema:
        return form
    inner = {key: value for key, value in form.schema.items() if key != "description"}
    schema = {key: value for key, value in form.schema.items() if key == "description"}
    return Form({"anyOf": [inner, {"type": "null"}], **schema},
                lambda value: None if value is None else form.convert(value))


class _Default:
    """What an argument is when it is not given; pydantic's `Field` may stand for it."""

    def __init__(self, default):
        self.made = type(default).__name__ == "FieldInfo"
        self._default = default
        self.required = default.is_required() if self.made else default is inspect.Parameter.empty
        self.json = None
        self.known = False
        plain = None if self.made or self.required else default
        if plain is not None or default is None:
            try:
                self.json = json.loads(to_json(plain))
                self.known = True
            except (TypeError, ValueError):
                pass

    def value(self):
        return self._default.get_default(call_default_factory=True) if self.made else self._default


def _parameters(function):
    """The arguments of a function, each with its type."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise Unusable("its arguments cannot be determined, because it is not written in Python") from None
    try:
        hints = typing.get_type_hints(_hinted(function), include_extras=True)
    except Exception as error:
        raise Unusable(f"the types of its arguments cannot be determined: {type(error).__name__}: {error}") from None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Unusable(f"it takes `{parameter}`, but a model must know every argument; declare each of them")
        hint = hints.get(parameter.name, typing.Any)
        if type(parameter.default).__name__ == "FieldInfo":
            hint = typing.Annotated[hint, parameter.default]
        yield parameter, hint


def _hinted(function):
    """What carries the type hints: what a decorator wraps, the method behind an object."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    if inspect.isclass(function):
        return function.__init__
    return function if inspect.isroutine(function) else type(function).__call__


def to_json(value):
    """Compact JSON; a value without a JSON form is a `TypeError`."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(value):
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset, collections.abc.KeysView, collections.abc.ValuesView)):
        return list(value)
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of the type `{_name(type(value))}` has no JSON form")


