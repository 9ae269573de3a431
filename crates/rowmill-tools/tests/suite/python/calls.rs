//! What functions receive, and how their return values are converted.

use futures_util::future::join_all;
use rowmill_core::ports::{ToolHost, ToolRequest};
use rowmill_types::RowId;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::python::support::{Meeting, folder, with_pydantic};

const RESULTS: &str = r#"
import dataclasses, datetime, decimal, enum, os, sys

class Color(enum.Enum):
    RED = "red"

@dataclasses.dataclass
class Point:
    x: int
    tags: set

def text(): return "héllo\n日本 🎉"
def nothing(): return None
def number(): return 1.5
def boolean(): return True
def mapping(): return {"b": [1, None], "a": "ü"}
def point(): return Point(1, {"t"})
def listed(): return [Point(2, set()), Color.RED, datetime.date(2024, 1, 2), decimal.Decimal("1.10")]
def color(): return Color.RED
def utf8(): return "grün".encode()
def binary(): return b"\x00\xff\xfe"
def png(): return b"\x89PNG\r\n\x1a\n" + bytes(20)
def surrogate(): return "a\ud800b"
async def later():
    import asyncio
    await asyncio.sleep(0)
    return "later"
def large(): return "x" * 10_000_000
def nan(): return float("nan")
def strange(): return object()
def fails(): raise ValueError("no ", 3)
def leaves(): sys.exit(4)
def noisy():
    print("to stdout")
    os.write(1, b"to descriptor 1\n")
    os.system("echo from a child")
    print("x" * 300_000, file=sys.stderr)
    return input() if False else "quiet"
def asks(): return input("name? ")
def too_large(): return bytes(65 << 20)
"#;

#[tokio::test]
async fn every_kind_of_result_reaches_the_model_in_its_form() {
    let names = [
        "text",
        "nothing",
        "number",
        "boolean",
        "mapping",
        "point",
        "listed",
        "color",
        "utf8",
        "surrogate",
        "later",
        "noisy",
    ];
    let folder = folder(RESULTS, &names);
    let host = folder.start().await;
    let expected = [
        "héllo\n日本 🎉",
        "",
        "1.5",
        "true",
        r#"{"b":[1,null],"a":"ü"}"#,
        r#"{"x":1,"tags":["t"]}"#,
        r#"[{"x":2,"tags":[]},"red","2024-01-02","1.10"]"#,
        r#""red""#,
        "grün",
        "a?b",
        "later",
        "quiet",
    ];
    for (name, expected) in names.iter().zip(expected) {
        assert_eq!(host.text(1, name, json!({})).await, expected, "{name}");
    }
    host.close().await;
}

#[tokio::test]
async fn bytes_become_files_and_ten_megabytes_come_whole() {
    let folder = folder(RESULTS, &["png", "binary", "large", "too_large"]);
    let host = folder.start().await;
    let png = host.call(1, "png", json!({})).await.unwrap();
    let file = &png.attachments[0];
    assert_eq!(
        (file.name.as_str(), file.media_type.as_str(), file.bytes.len()),
        ("result.png", "image/png", 28)
    );
    let binary = host.call(1, "binary", json!({})).await.unwrap();
    assert_eq!(binary.attachments[0].media_type, "application/octet-stream");
    assert_eq!(&binary.attachments[0].bytes[..], b"\x00\xff\xfe");
    assert_eq!(host.text(1, "large", json!({})).await.len(), 10_000_000);
    assert!(host.error(1, "too_large", json!({})).await.contains("are the most"));
    host.close().await;
}

#[tokio::test]
async fn an_exception_is_reported_to_the_model_without_a_traceback() {
    let folder = folder(RESULTS, &["fails", "leaves", "nan", "strange", "asks", "text"]);
    let host = folder.start().await;
    let cases = [
        ("fails", "ValueError: ('no ', 3)"),
        ("leaves", "SystemExit: 4"),
        ("nan", "ValueError: Out of range float values are not JSON compliant"),
        ("strange", "TypeError: a value of the type `object` has no JSON form"),
        ("asks", "EOFError: EOF when reading a line"),
    ];
    for (name, expected) in cases {
        let reported = host.error(1, name, json!({})).await;
        assert!(reported.starts_with(expected), "{name}: {reported}");
        assert!(!reported.contains("Traceback"), "{reported}");
    }
    assert!(!host.text(1, "text", json!({})).await.is_empty());
    host.close().await;
}

const ARGUMENTS: &str = r#"
import dataclasses, datetime, enum, pathlib
from typing import Annotated, Literal, NamedTuple, Optional, TypedDict, Union

class Color(enum.Enum):
    RED = "red"

@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5

class Person(TypedDict, total=False):
    name: str
    born: datetime.date

class Pair(NamedTuple):
    left: int
    right: int = 2

def show(color: Color = Color.RED, point: Optional[Point] = None, points: list[Point] = [], who: Person = {},
         pair: Pair = Pair(1), when: datetime.datetime = None, path: pathlib.Path = None, ratio: float = 0,
         either: Union[int, list[str]] = 0, level: Literal[1, "max"] = 1, numbers: dict[int, float] = {},
         both: tuple[int, str] = (0, ""), unique: set[int] = set(), data: bytes = b"", anything=None):
    return repr({name: value for name, value in sorted(locals().items())})

def only(a, /, b: int = 2, *, c: Annotated[int, "the third"] = 3):
    return [a, b, c]
"#;

#[tokio::test]
async fn arguments_are_of_the_types_that_the_function_names() {
    let folder = folder(ARGUMENTS, &["show", "only"]);
    let host = folder.start().await;
    let given = json!({
        "color": "red", "point": {"x": 3.0}, "points": [{"x": 1, "y": 2}], "who": {"born": "2000-01-02"},
        "pair": {"left": 5}, "when": "2024-05-06T07:08:09Z", "path": "a/b", "ratio": 2, "either": ["x"],
        "level": "max", "numbers": {"7": 1}, "both": [1, "z"], "unique": [2], "data": "AP8=", "anything": {"k": 1},
    });
    let shown = host.text(1, "show", given).await;
    for part in [
        "'color': <Color.RED: 'red'>",
        "'point': Point(x=3, y=0.5)",
        "'points': [Point(x=1, y=2.0)]",
        "'who': {'born': datetime.date(2000, 1, 2)}",
        "'pair': Pair(left=5, right=2)",
        "'when': datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc)",
        "Path('a/b')",
        "'ratio': 2.0",
        "'either': ['x']",
        "'level': 'max'",
        "'numbers': {7: 1.0}",
        "'both': (1, 'z')",
        "'unique': {2}",
        r"'data': b'\x00\xff'",
        "'anything': {'k': 1}",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(host.text(1, "only", json!({"a": "x", "c": 9})).await, r#"["x",2,9]"#);
    host.close().await;
}

#[tokio::test]
async fn arguments_of_another_type_are_reported_with_their_place() {
    let folder = folder(ARGUMENTS, &["show", "only"]);
    let host = folder.start().await;
    let cases = [
        (json!({"color": "blue"}), "`color`: expected one of \"red\", got \"blue\""),
        (
            json!({"points": [{"x": 1}, {"x": "1"}]}),
            "`points`: item 1: `x`: expected a whole number, got \"1\"",
        ),
        (json!({"point": {"y": 1}}), "`x` is missing"),
        (json!({"when": "soon"}), "`when`: expected a date with time, got \"soon\""),
        (json!({"colour": "red"}), "`colour` is not known; known are `color`"),
        (json!({"both": [1]}), "`both`: expected 2 items, got 1"),
    ];
    for (arguments, expected) in cases {
        let message = host.error(1, "show", arguments).await;
        assert!(message.starts_with("wrong arguments: ") && message.contains(expected), "{message}");
    }
    assert!(host.error(1, "only", json!({})).await.contains("`a` is missing"));
    host.close().await;
}

const PYDANTIC: &str = r#"
from typing import Annotated
from pydantic import BaseModel, Field

class Item(BaseModel):
    name: str
    children: list["Item"] = []

class Order(BaseModel):
    items: list[Item]

def order(order: Order, count: Annotated[int, Field(ge=1, description="how many")], limit: int = Field(default=5, le=9)):
    return Order(items=order.items * count + [Item(name=str(limit))])
"#;

#[tokio::test]
async fn pydantic_models_are_taken_checked_and_given() {
    let mut folder = folder(PYDANTIC, &["order"]);
    folder.settings.interpreter = with_pydantic();
    let host = folder.start().await;
    let schema = &host.tools.tools()[0].spec.schema;
    assert!(
        jsonschema::validator_for(schema)
            .unwrap()
            .is_valid(&json!({"order": {"items": [{"name": "a", "children": [{"name": "b"}]}]}, "count": 1}))
    );
    assert_eq!(schema["properties"]["count"]["description"], "how many");
    assert_eq!(schema["required"], json!(["order", "count"]));
    let given = json!({"order": {"items": [{"name": "a"}]}, "count": 2});
    let made = host.text(1, "order", given).await;
    let item = |name| json!({"name": name, "children": []});
    assert_eq!(
        made.parse::<serde_json::Value>().unwrap(),
        json!({"items": [item("a"), item("a"), item("5")]})
    );
    let message = host.error(1, "order", json!({"order": {"items": [{}]}, "count": 1})).await;
    assert_eq!(message, "wrong arguments: `order`: items.0.name: Field required");
    host.close().await;
}

const STATE: &str = r"
import os, socket
kept = None

def keep(value: int, port: int):
    global kept
    kept = value
    with socket.create_connection(('127.0.0.1', port)) as meeting:
        meeting.sendall(b'x')
        meeting.recv(1)
    return os.getpid()

def tell():
    return kept

def which():
    return os.getpid()
";

#[tokio::test]
async fn thirty_two_rows_at_once_keep_what_their_modules_remember_apart() {
    let mut folder = folder(STATE, &["keep", "tell"]);
    folder.settings.processes = 32;
    let host = folder.start().await;
    let meeting = Meeting::new().await;
    let calls =
        join_all((0..32).map(|row| host.text(row, "keep", json!({"value": row, "port": meeting.port}))));
    // All of them run before the first may continue.
    let arrivals = async {
        let mut all = Vec::new();
        for _ in 0..32 {
            let mut one = meeting.arrival().await;
            one.read_exact(&mut [0]).await.unwrap();
            all.push(one);
        }
        for one in &mut all {
            one.write_all(b"x").await.unwrap();
        }
    };
    let (mut processes, ()) = tokio::join!(calls, arrivals);
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 32);
    let message = join_all((0..32).map(|row| host.text(row, "tell", json!({})))).await;
    assert_eq!(message, (0..32).map(|row| row.to_string()).collect::<Vec<_>>());
    host.close().await;
}

#[tokio::test]
async fn rows_wait_for_a_process_before_their_call_begins_and_one_that_is_given_up_takes_none() {
    let mut folder = folder(STATE, &["which"]);
    folder.settings.processes = 1;
    let host = folder.start().await;
    let tool = format!("{}:which", folder.path.path().join("tools.py").display());
    let request = |row: u64| ToolRequest {
        row,
        id: &RowId::Number(0),
        key: "k",
        tool: &tool,
        arguments: "{}",
        idempotent: false,
        timeout: None,
    };
    host.tools.wait_until_ready(request(1)).await.unwrap();
    let mut given_up = host.tools.wait_until_ready(request(2));
    let mut waiting = host.tools.wait_until_ready(request(3));
    assert!(futures_util::poll!(&mut given_up).is_pending());
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(given_up);
    host.tools.release_row(1).await;
    waiting.await.unwrap();
    host.close().await;
}

#[tokio::test]
async fn a_row_keeps_its_process_until_it_is_released_and_the_next_row_gets_it() {
    let mut folder = folder(STATE, &["which"]);
    folder.settings.processes = 1;
    let host = folder.start().await;
    let first = host.text(1, "which", json!({})).await;
    assert_eq!(host.text(1, "which", json!({})).await, first);
    let mut waiting = Box::pin(host.text(2, "which", json!({})));
    assert!(futures_util::poll!(&mut waiting).is_pending(), "the only process belongs to row 1");
    rowmill_core::ports::ToolHost::release_row(&host.tools, 1).await;
    assert_eq!(waiting.await, first);
    host.close().await;
}
