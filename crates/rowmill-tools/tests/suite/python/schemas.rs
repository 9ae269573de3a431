//! Schemas and descriptions from signatures and docstrings.

use rowmill_types::ToolSpec;
use serde_json::{Value, json};

use crate::python::support::folder;

const CODE: &str = r#"
import dataclasses, datetime, decimal, enum, functools, pathlib, uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Dict, List, Literal, NewType, Optional, Tuple, TypedDict, TypeVar, Union

class Size(enum.Enum):
    SMALL = 1
    LARGE = 2

@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0

class Movie(TypedDict):
    title: str
    year: Optional[int]

UserId = NewType("UserId", int)
Text = TypeVar("Text", bound=str)

def scalars(a: str, b: int, c: float, d: bool, e: None, f: Any, g, h: bytes): pass
def containers(a: list[str], b: List[int], c: dict[str, float], d: Dict[str, Any], e: tuple[int, ...], f: Tuple[int, str],
               g: set[str], h: Sequence[int], i: Mapping[str, int], j: list, k: dict, l: Iterable[str]): pass
def choices(a: Literal["x", "y"], b: Literal[1, "z", None], c: Size, d: Union[int, str], e: Optional[bool]): pass
def records(a: Point, b: list[Movie]): pass
def others(a: datetime.datetime, b: datetime.date, c: uuid.UUID, d: pathlib.Path, e: decimal.Decimal, f: UserId, g: Text): pass
def defaults(a: int = 3, b: str = "x", c: Size = Size.LARGE, d: int = None, e: object = object(), *, f: bool): pass
def noted(a: Annotated[int, "the a"], b: Annotated[Optional[str], "the b"] = None): pass

def plain():
    """Says nothing of arguments."""

def google(city: str, days: int = 1, unit: str = "C"):
    """Tells the weather
    of a city.

    More about it: not for the model.

    Args:
        city: The city,
            with its country: "Bonn, Germany".
        days (int, optional): How many days.

    Returns:
        str: days: not an argument.
    """

def numpy(x: float, y: float, z: int):
    """Adds.

    Parameters
    ----------
    x, y : float
        A number.
    z : int, optional
        Another,
        larger one.

    Returns
    -------
    float
        The sum.
    """

def sphinx(name: str, size: int):
    """Makes it.

    :param name: The name
        of it.
    :param int size: The size.
    :returns: nothing
    """

@functools.lru_cache
def wrapped(a: int):
    """Wrapped."""

class Box:
    def method(self, a: int):
        """A method."""

box = Box()
add_one = functools.partial(plain)
"#;

async fn specs(functions: &[&str]) -> Vec<ToolSpec> {
    let folder = folder(CODE, functions);
    let host = folder.start().await;
    host.close().await;
    let specs: Vec<_> = host.tools.tools().iter().map(|tool| tool.spec.clone()).collect();
    for spec in &specs {
        jsonschema::meta::validate(&spec.schema).unwrap();
    }
    specs
}

#[tokio::test]
async fn types_become_schemas() {
    let cases = [
        (
            "scalars",
            json!({
                "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "number"}, "d": {"type": "boolean"},
                "e": {"type": "null"}, "f": {}, "g": {}, "h": {"type": "string", "contentEncoding": "base64"},
            }),
        ),
        (
            "containers",
            json!({
                "a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "array", "items": {"type": "integer"}},
                "c": {"type": "object", "additionalProperties": {"type": "number"}},
                "d": {"type": "object", "additionalProperties": {}}, "e": {"type": "array", "items": {"type": "integer"}},
                "f": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
                "g": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
                "h": {"type": "array", "items": {"type": "integer"}},
                "i": {"type": "object", "additionalProperties": {"type": "integer"}},
                "j": {"type": "array", "items": {}}, "k": {"type": "object", "additionalProperties": {}},
                "l": {"type": "array", "items": {"type": "string"}},
            }),
        ),
        (
            "choices",
            json!({
                "a": {"enum": ["x", "y"], "type": "string"}, "b": {"enum": [1, "z", null]},
                "c": {"enum": [1, 2], "type": "integer"}, "d": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "e": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            }),
        ),
        (
            "records",
            json!({
                "a": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number"}},
                      "required": ["x"], "additionalProperties": false},
                "b": {"type": "array", "items": {"type": "object", "properties": {"title": {"type": "string"},
                      "year": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "required": ["title", "year"],
                      "additionalProperties": false}},
            }),
        ),
        (
            "others",
            json!({
                "a": {"type": "string", "format": "date-time"}, "b": {"type": "string", "format": "date"},
                "c": {"type": "string", "format": "uuid"}, "d": {"type": "string"},
                "e": {"anyOf": [{"type": "number"}, {"type": "string"}]}, "f": {"type": "integer"}, "g": {"type": "string"},
            }),
        ),
    ];
    let found = specs(&cases.each_ref().map(|case| case.0)).await;
    for ((function, expected), ToolSpec { schema, .. }) in cases.into_iter().zip(found) {
        assert_eq!(schema["properties"], expected, "{function}");
        let names: Vec<_> = expected.as_object().unwrap().keys().collect();
        assert_eq!(schema["required"], json!(names), "{function}");
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}

#[tokio::test]
async fn what_has_a_default_is_not_required() {
    let schema = specs(&["defaults"]).await.remove(0).schema;
    assert_eq!(schema["required"], json!(["f"]));
    let expected = json!({
        "a": {"type": "integer", "default": 3}, "b": {"type": "string", "default": "x"},
        "c": {"enum": [1, 2], "type": "integer", "default": 2},
        "d": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null}, "e": {}, "f": {"type": "boolean"},
    });
    assert_eq!(schema["properties"], expected);
}

#[tokio::test]
async fn descriptions_come_from_docstrings_and_annotations() {
    let cases = [
        ("plain", Some("Says nothing of arguments."), json!({})),
        (
            "google",
            Some("Tells the weather of a city."),
            json!({
                "city": "The city, with its country: \"Bonn, Germany\".", "days": "How many days.", "unit": null,
            }),
        ),
        ("numpy", Some("Adds."), json!({"x": "A number.", "y": "A number.", "z": "Another, larger one."})),
        ("sphinx", Some("Makes it."), json!({"name": "The name of it.", "size": "The size."})),
        ("noted", None, json!({"a": "the a", "b": "the b"})),
        ("wrapped", Some("Wrapped."), json!({"a": null})),
        ("box.method", Some("A method."), json!({"a": null})),
        ("add_one", None, json!({})),
    ];
    let found = specs(&cases.each_ref().map(|case| case.0)).await;
    for ((function, description, arguments), spec) in cases.into_iter().zip(found) {
        let ToolSpec { description: found, schema, .. } = spec;
        assert_eq!(found.as_deref(), description, "{function}");
        for (name, text) in arguments.as_object().unwrap() {
            assert_eq!(
                schema["properties"][name].get("description").unwrap_or(&Value::Null),
                text,
                "{function} {name}"
            );
        }
    }
}
