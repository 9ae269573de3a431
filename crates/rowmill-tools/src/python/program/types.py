"""Types as JSON Schemas, and values of them from JSON."""

import base64
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import types
import typing
import uuid

_LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence,
          collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNIONS = tuple(kind for kind in (typing.Union, getattr(types, "UnionType", None)) if kind)
_JSON_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Unusable(Exception):
    """A function that cannot be a tool; the text says why."""


class Mismatch(Exception):
    """An argument that is not of its type; the text says where and how."""


class Form:
    """A type: its schema, and how its values are made from JSON."""

    def __init__(self, schema, convert):
        self.schema = schema
        self.convert = convert


class Forms:
    """Makes forms, and gathers the definitions that their schemas refer to."""

    def __init__(self):
        self.definitions = {}
        self._open = []

    def of(self, hint):
        """The form of a type."""
        if hint in (None, type(None)):
            return Form({"type": "null"}, _exactly(type(None)))
        if hint in (typing.Any, object):
            return Form({}, lambda value: value)
        try:
            if hint in _SCALARS:
                schema, convert = _SCALARS[hint]
                return Form(dict(schema), convert)
        except TypeError:
            pass
        origin = typing.get_origin(hint)
        if getattr(hint, "__metadata__", None) is not None:
            return self._annotated(hint)
        if origin is not None:
            return self._generic(hint, origin, typing.get_args(hint))
        if isinstance(hint, type):
            return self._class(hint)
        if isinstance(hint, typing.TypeVar):
            return self.of(hint.__bound__ or typing.Any)
        for inner in ("__supertype__", "__value__"):
            if hasattr(hint, inner):
                return self.of(getattr(hint, inner))
        raise Unusable(f"the type `{_name(hint)}` cannot be represented as JSON")

    def _annotated(self, hint):
        ours = [text for text in hint.__metadata__ if isinstance(text, str)]
        others = [mark for mark in hint.__metadata__ if _is_pydantic(type(mark))]
        form = self._pydantic(hint) if others else self.of(hint.__origin__)
        if ours:
            form.schema = {**form.schema, "description": ours[0]}
        return form

    def _generic(self, hint, origin, inner):
        if origin in _UNIONS:
            return self._union([self.of(arm) for arm in inner])
        if origin is typing.Literal:
            return _choice([(_plain_value(value), value) for value in inner])
        if getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly", "Final"):
            return self.of(inner[0])
        if origin in _LISTS or origin in _SETS:
            made = list if origin in _LISTS else (frozenset if origin is frozenset else set)
            return self._array(made, self.of(inner[0] if inner else typing.Any))
        if origin is tuple:
            return self._tuple(inner)
        if origin in _MAPS:
            return self._map(*(inner or (str, typing.Any)))
        if isinstance(origin, type) and _is_pydantic(origin):
            return self._pydantic(hint)
        raise Unusable(f"the type `{_name(hint)}` cannot be represented as JSON")

    def _class(self, hint):
        if _is_pydantic(hint):
            return self._pydantic(hint)
        if issubclass(hint, enum.Enum):
            return _choice([(_plain_value(member), member) for member in hint])
        if issubclass(hint, dict) and hasattr(hint, "__required_keys__"):
            hints = typing.get_type_hints(hint, include_extras=True)
            return self._record(hint, dict, [(name, kind, name in hint.__required_keys__) for name, kind in hints.items()])
        if dataclasses.is_dataclass(hint):
            hints = typing.get_type_hints(hint, include_extras=True)
            missing = dataclasses.MISSING
            return self._record(hint, hint, [
                (field.name, hints[field.name], field.default is missing and field.default_factory is missing)
                for field in dataclasses.fields(hint) if field.init])
        if issubclass(hint, tuple) and hasattr(hint, "_fields"):
            hints = typing.get_type_hints(hint, include_extras=True)
            return self._record(hint, hint, [
                (name, hints.get(name, typing.Any), name not in hint._field_defaults) for name in hint._fields])
        if hint in _LISTS or hint in _SETS or hint in _MAPS or hint is tuple:
            return self._generic(hint, hint, ())
        raise Unusable(f"the type `{_name(hint)}` cannot be represented as JSON")

    def _record(self, hint, build, fields):
        if hint in self._open:
            raise Unusable(f"the type `{_name(hint)}` contains itself; use a pydantic model for that")
        self._open.append(hint)
        forms = {name: self.of(kind) for name, kind, _ in fields}
        self._open.pop()
        required = [name for name, _, needed in fields if needed]
        schema = {"type": "object", "properties": {name: form.schema for name, form in forms.items()},
                  "required": required, "additionalProperties": False}

        def convert(value):
            return build(**_each(_checked(value, dict), forms, required))

        return Form(schema, convert)

    def _union(self, arms):
        def convert(value):
            told = []
            for arm in arms:
                try:
                    return arm.convert(value)
                except Mismatch as mismatch:
                    told.append(str(mismatch))
            raise Mismatch(", or ".join(dict.fromkeys(told)))

        return Form({"anyOf": [arm.schema for arm in arms]}, convert)

    def _array(self, made, item):
        schema = {"type": "array", "items": item.schema}
        if made is not list:
            schema["uniqueItems"] = True
        return Form(schema, lambda value: made(_items(value, item.convert)))

    def _tuple(self, inner):
        if not inner or (len(inner) == 2 and inner[1] is Ellipsis):
            item = self.of(inner[0] if inner else typing.Any)
            return Form({"type": "array", "items": item.schema}, lambda value: tuple(_items(value, item.convert)))
        forms = [self.of(kind) for kind in inner if kind != ()]

        def convert(value):
            if len(_checked(value, list)) != len(forms):
                raise Mismatch(f"expected {len(forms)} items, got {len(value)}")
            return tuple(form.convert(item) for form, item in zip(forms, value))

        return Form({"type": "array", "prefixItems": [form.schema for form in forms],
                     "minItems": len(forms), "maxItems": len(forms)}, convert)

    def _map(self, key, value):
        names = Form({}, int) if key is int else self.of(key)
        if names.schema.get("type", "string") != "string":
            raise Unusable(f"keys of the type `{_name(key)}` cannot be represented as JSON")
        inner = self.of(value)

        def convert(given):
            return {names.convert(name): _at(f"`{name}`", inner.convert, item)
                    for name, item in _checked(given, dict).items()}

        return Form({"type": "object", "additionalProperties": inner.schema}, convert)

    def _pydantic(self, hint):
        import pydantic

        adapter = pydantic.TypeAdapter(hint)
        schema = adapter.json_schema()
        own = schema.pop("$defs", {})
        if any(self.definitions.get(name, inner) != inner for name, inner in own.items()):
            mark = f"_{len(self.definitions)}"
            text = json.dumps({"schema": schema, "own": own})
            for name in own:
                text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{name}{mark}"')
            renamed = json.loads(text)
            schema, own = renamed["schema"], {name + mark: inner for name, inner in renamed["own"].items()}
        self.definitions.update(own)

        def convert(value):
            try:
                return adapter.validate_json(json.dumps(value))
            except pydantic.ValidationError as error:
                told = [".".join(map(str, item["loc"])) + ": " + item["msg"] for item in error.errors()]
                raise Mismatch("; ".join(item[2:] if item.startswith(": ") else item for item in told)) from None

        return Form(schema, convert)


def _choice(pairs):
    """One of several values: literals and enums."""
    values = [value for value, _ in pairs]
    schema = {"enum": values}
    kinds = {type(value) for value in values}
    if len(kinds) == 1:
        schema["type"] = _JSON_NAMES[kinds.pop()]

    def convert(value):
        for plain, member in pairs:
            if type(plain) is type(value) and plain == value:
                return member
        raise Mismatch(f"expected one of {', '.join(map(json.dumps, values))}, got {_shown(value)}")

    return Form(schema, convert)


def _plain_value(value):
    value = value.value if isinstance(value, enum.Enum) else value
    if type(value) not in _JSON_NAMES:
        raise Unusable(f"the value `{value!r}` of a choice cannot be represented as JSON")
    return value


def _is_pydantic(kind):
    if hasattr(kind, "model_json_schema") or hasattr(kind, "__pydantic_validator__"):
        return True
    return kind.__module__.split(".")[0] in ("pydantic", "annotated_types")


def _each(given, forms, required):
    """Converts what was given by name, and finds what is missing or unknown."""
    for name in given:
        if name not in forms:
            raise Mismatch(f"`{name}` is not known; known are {', '.join(f'`{one}`' for one in forms) or 'none'}")
    for name in required:
        if name not in given:
            raise Mismatch(f"`{name}` is missing")
    return {name: _at(f"`{name}`", forms[name].convert, value) for name, value in given.items()}


def _at(place, convert, value):
    try:
        return convert(value)
    except Mismatch as mismatch:
        raise Mismatch(f"{place}: {mismatch}") from None


def _items(value, convert):
    return [_at(f"item {index}", convert, item) for index, item in enumerate(_checked(value, list))]


def _exactly(kind):
    return lambda value: _checked(value, kind)


def _checked(value, kind):
    if type(value) is not kind:
        wanted = {list: "an array", dict: "an object", type(None): "null", bool: "true or false"}
        raise Mismatch(f"expected {wanted.get(kind, 'a ' + _JSON_NAMES.get(kind, kind.__name__))}, got {_shown(value)}")
    return value


def _integer(value):
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise Mismatch(f"expected a whole number, got {_shown(value)}")
    return value


def _number(value):
    if type(value) not in (int, float):
        raise Mismatch(f"expected a number, got {_shown(value)}")
    return float(value)


def _from_text(what, make):
    def convert(value):
        try:
            return make(_checked(value, str))
        except (ValueError, ArithmeticError):
            raise Mismatch(f"expected {what}, got {_shown(value)}") from None

    return convert


def _decimal(value):
    text = str(value) if type(value) in (int, float) else value
    return _from_text("a decimal number", decimal.Decimal)(text)


def _iso(kind):
    return lambda text: kind.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def _shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _name(hint):
    return hint.__qualname__ if isinstance(hint, type) and typing.get_origin(hint) is None else str(hint)


_SCALARS = {
    str: ({"type": "string"}, _exactly(str)),
    bool: ({"type": "boolean"}, _exactly(bool)),
    int: ({"type": "integer"}, _integer),
    float: ({"type": "number"}, _number),
    bytes: ({"type": "string", "contentEncoding": "base64"},
            _from_text("base64", lambda text: base64.b64decode(text, validate=True))),
    decimal.Decimal: ({"anyOf": [{"type": "number"}, {"type": "string"}]}, _decimal),
    datetime.datetime: ({"type": "string", "format": "date-time"}, _from_text("a date with time", _iso(datetime.datetime))),
    datetime.date: ({"type": "string", "format": "date"}, _from_text("a date", _iso(datetime.date))),
    datetime.time: ({"type": "string", "format": "time"}, _from_text("a time", _iso(datetime.time))),
    uuid.UUID: ({"type": "string", "format": "uuid"}, _from_text("a UUID", uuid.UUID)),
    pathlib.Path: ({"type": "string"}, _from_text("a path", pathlib.Path)),
}


