"""A small MCP server for tests, over stdio or streamable HTTP, with faults on demand.

It needs nothing but Python. `--help` lists what it can do; the tools are in `TOOLS`.
"""

import argparse
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

OPTIONS = argparse.Namespace()
PROTOCOL = "2025-06-18"
ONE_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def tool(description, idempotent=False, **properties):
    kinds = {str: "string", int: "integer", float: "number"}
    return {
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {name: {"type": kinds[kind]} for name, kind in properties.items()},
        },
        "annotations": {"idempotentHint": True} if idempotent else {},
    }


TOOLS = {
    "echo": tool("Gives the text back.", True, text=str),
    "add": tool("Adds two numbers.", True, a=float, b=float),
    "count": tool("Appends a line to the file named with --count.", label=str),
    "fail": tool("Says that it failed.", message=str),
    "refuse": tool("Answers with a JSON-RPC error.", message=str),
    "hang": tool("Never answers unless it is cancelled or released.", label=str),
    "release": tool("Lets every call of hang and hang_twice answer.", True),
    "hang_twice": tool("The same as hang, and may run twice.", True, label=str),
    "big": tool("Answers with so many bytes.", bytes=int),
    "binary": tool("Answers with an image and a blob."),
    "structured": tool("Answers with structured content only."),
    "odd": tool("Answers with something that the protocol does not know."),
    "crash": tool("Counts the call, then ends the process.", label=str),
    "flaky": tool("Ends the process the first time, and works from then on.", True, marker=str),
    "whoami": tool("The number of the process.", True),
    "env": tool("A variable of the process, or the names of all.", True, name=str),
    "ask": tool("Asks the client for sampling, input and roots, and gives back what it says."),
    "grow": tool("Says that the list of tools has changed."),
    "forget": tool("Forgets every session (HTTP)."),
    "revoke": tool("Makes every token invalid (HTTP)."),
    "credential": tool("The Authorization header that the call came with (HTTP)."),
}
RESOURCES = [
    {"uri": "test://notes/1", "name": "first", "description": "The first note.", "mimeType": "text/plain"},
    {"uri": "test://notes/2", "name": "second", "mimeType": "text/plain"},
    {"uri": "test://picture.png", "name": "picture", "mimeType": "image/png"},
]
TEMPLATES = [{"uriTemplate": "test://made/{number}", "name": "made"}]
PROMPTS = [
    {"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}, {"name": "how"}]},
    {"name": "other"},
]


class Refusal(Exception):
    """A JSON-RPC error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def notify(text):
    """Tells the test what happens: one connection per event, so that nobody has to poll."""
    if OPTIONS.notify:
        with socket.create_connection(("127.0.0.1", OPTIONS.notify)) as connection:
            connection.sendall(text.encode())


def count(label):
    if OPTIONS.count:
        with open(OPTIONS.count, "a", encoding="utf-8") as file:
            file.write(f"{label}\n")


class Calls:
    """Calls that hang until they are cancelled or released."""

    def __init__(self):
        self.lock = threading.Lock()
        self.waiting = {}

    def open(self, key):
        event = threading.Event()
        with self.lock:
            self.waiting[key] = event
        return event

    def end(self, key=None):
        with self.lock:
            keys = [key] if key is not None else list(self.waiting)
            events = [self.waiting.pop(key, None) for key in keys]
        for event in events:
            if event:
                event.set()
        return any(events)


CALLS = Calls()


class Meeting:
    """Calls that wait until their group is complete, and how many there were at once at most."""

    def __init__(self):
        self.changed = threading.Condition()
        self.arrived = self.inside = self.most = 0

    def join(self, size):
        with self.changed:
            self.arrived += 1
            self.inside += 1
            self.most = max(self.most, self.inside)
            complete = -(-self.arrived // size) * size
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.arrived >= complete)
        # Whoever is not kept out by then comes in meanwhile.
        time.sleep(0.02)
        with self.changed:
            self.inside -= 1
            return self.most


MEETING = Meeting()


def text_result(text, **more):
    return {"content": [{"type": "text", "text": text}], **more}


def call_tool(peer, key, name, arguments):
    # Before anyone hears of the call, because a release may follow at once.
    hanging = CALLS.open(key) if name in ("hang", "hang_twice") else None
    notify(f"call {name} {arguments.get('label', '')}".strip())
    if name == "echo":
        return text_result(arguments.get("text", ""))
    if name == "add":
        return text_result(json.dumps(arguments["a"] + arguments["b"]))
    if name == "count":
        count(arguments.get("label", ""))
        return text_result("counted")
    if name == "fail":
        return text_result(arguments.get("message", "failed"), isError=True)
    if name == "refuse":
        raise Refusal(-32602, arguments.get("message", "refused"))
    if hanging:
        count(arguments.get("label", ""))
        hanging.wait()
        return text_result("released")
    if name == "release":
        CALLS.end()
        return text_result("done")
    if name == "big":
        return text_result("x" * arguments["bytes"])
    if name == "binary":
        blob = base64.b64encode(bytes(range(256))).decode()
        image = {"type": "image", "data": ONE_PIXEL, "mimeType": "image/png"}
        resource = {"uri": "test://data.bin", "blob": blob, "mimeType": "application/octet-stream"}
        return {"content": [image, {"type": "resource", "resource": resource}]}
    if name == "structured":
        return {"content": [], "structuredContent": {"answer": 42}}
    if name == "odd":
        return {"strange": ["thing"]}
    if name == "crash":
        count(arguments.get("label", ""))
        os._exit(3)
    if name == "flaky":
        marker = arguments["marker"]
        if not os.path.exists(marker):
            open(marker, "w", encoding="utf-8").close()
            os._exit(4)
        return text_result("works")
    if name == "whoami":
        return text_result(str(os.getpid()))
    if name == "env":
        wanted = arguments.get("name")
        return text_result(os.environ.get(wanted, "(not set)") if wanted else " ".join(sorted(os.environ)))
    if name == "ask":
        sampling = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
        form = {"message": "who are you?", "requestedSchema": {"type": "object", "properties": {}}}
        asked = [("sampling/createMessage", sampling), ("elicitation/create", form), ("roots/list", None)]
        return text_result(json.dumps([peer.ask(method, params) for method, params in asked]))
    if name == "grow":
        TOOLS["late"] = tool("Came late.")
        peer.tell("notifications/tools/list_changed")
        return text_result("grown")
    if name == "credential":
        return text_result(peer.credential)
    if name in ("forget", "revoke"):
        peer.forget(name)
        return text_result("forgotten")
    if name == "remember":
        # Reads, changes and writes a file as the memory server does, without a lock.
        with open(OPTIONS.memory, encoding="utf-8") as file:
            known = json.load(file)
        time.sleep(0.01)
        with open(OPTIONS.memory, "w", encoding="utf-8") as file:
            json.dump([*known, arguments["label"]], file)
        return text_result("remembered")
    if name == "meet":
        return text_result(str(MEETING.join(OPTIONS.meet)))
    if name in TOOLS:
        return text_result(name)
    raise Refusal(-32602, f"unknown tool: {name}")


def read_resource(uri):
    if uri == "test://picture.png":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": ONE_PIXEL}]}
    if uri.startswith(("test://notes/", "test://made/")):
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"text of {uri}"}]}
    raise Refusal(-32002, f"no such resource: {uri}")


def page(kind, things, params):
    size = OPTIONS.page or max(len(things), 1)
    begin = int((params or {}).get("cursor") or 0)
    answer = {kind: things[begin : begin + size]}
    if begin + size < len(things):
        answer["nextCursor"] = str(begin + size)
    return answer


def handle(peer, message):
    """The answer to a request."""
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        if OPTIONS.refuse_handshake or OPTIONS.modern:
            raise Refusal(-32601, "no handshakes here")
        return {
            "protocolVersion": PROTOCOL,
            "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "rowmill-test", "version": "1"},
            "instructions": "Use it wisely.",
        }
    if method == "server/discover" and OPTIONS.modern:
        return {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "instructions": "No handshake.",
            "ttlMs": 0,
            "cacheScope": "private",
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        listed = [{"name": name, **rest} for name, rest in TOOLS.items()]
        if OPTIONS.memory:
            listed.append({"name": "remember", **tool("Appends to the list in the file.", label=str)})
        if OPTIONS.meet:
            listed.append({"name": "meet", **tool("Waits for others, and tells how many there were at most.")})
        listed.extend({"name": f"more_{number}", **tool("One of many.")} for number in range(OPTIONS.many))
        for each in listed:
            if each["name"] == OPTIONS.task:
                each["execution"] = {"taskSupport": "required"}
        return page("tools", listed, params)
    if method == "resources/list":
        return page("resources", RESOURCES, params)
    if method == "resources/templates/list":
        return page("resourceTemplates", TEMPLATES, params)
    if method == "resources/read":
        return read_resource(params["uri"])
    if method == "prompts/list":
        return page("prompts", PROMPTS, params)
    if method == "prompts/get":
        who = (params.get("arguments") or {}).get("who", "nobody")
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Hello, {who}!"}}]}
    if method == "tools/call":
        return call_tool(peer, (peer.name, message["id"]), params["name"], params.get("arguments") or {})
    raise Refusal(-32601, f"unknown method: {method}")


def answer(peer, message):
    begin = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        return {**begin, "result": handle(peer, message)}
    except Refusal as refusal:
        return {**begin, "error": {"code": refusal.code, "message": str(refusal)}}
    except Exception as error:  # noqa: BLE001: a test wants to see it
        return {**begin, "error": {"code": -32603, "message": repr(error)}}


def cancelled(peer, message):
    if message.get("method") == "notifications/cancelled":
        known = CALLS.end((peer.name, message["params"]["requestId"]))
        notify("cancelled" if known else "cancelled unknown")


class Pipes:
    """The client at the other end of stdin and stdout."""

    name = "pipes"
    credential = ""

    def __init__(self):
        self.lock = threading.Lock()
        self.replies = {}
        self.asked = 0

    def write(self, message):
        text = json.dumps(message) + "\n"
        with self.lock:
            sys.stdout.write(text)
            sys.stdout.flush()

    def tell(self, method):
        self.write({"jsonrpc": "2.0", "method": method})

    def ask(self, method, params):
        self.asked += 1
        key, event = f"ask-{self.asked}", threading.Event()
        self.replies[key] = [event, None]
        self.write({"jsonrpc": "2.0", "id": key, "method": method, **({"params": params} if params else {})})
        event.wait()
        return self.replies.pop(key)[1]

    def forget(self, _what):
        pass

    def serve(self):
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                reply = self.replies.get(message.get("id"))
                if reply:
                    reply[1] = {key: message[key] for key in ("result", "error") if key in message}
                    reply[0].set()
            elif "id" in message:
                threading.Thread(target=lambda m=message: self.write(answer(self, m)), daemon=True).start()
            else:
                cancelled(self, message)


def serve_http():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    sessions, tokens, lock = set(), set(), threading.Lock()
    codes, refreshes = {}, set()
    numbers = iter(range(1, 1_000_000))

    class Peer:
        def __init__(self, session, credential=""):
            self.name = session
            self.credential = credential

        def tell(self, _method):
            pass

        def ask(self, method, _params):
            return f"{method} is not asked over HTTP"

        def forget(self, what):
            with lock:
                (sessions if what == "forget" else tokens).clear()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_arguments):
            pass

        def reply(self, status, body=b"", kind="application/json", **headers):
            if not isinstance(body, bytes):
                body = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def body(self):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def here(self):
            return f"http://127.0.0.1:{self.server.server_address[1]}"

        def do_GET(self):
            if self.path.startswith("/.well-known/oauth-protected-resource"):
                here = self.here()
                return self.reply(200, {"resource": f"{here}/mcp", "authorization_servers": [here]})
            if self.path.startswith("/.well-known/oauth-authorization-server"):
                here = self.here()
                methods = ["client_secret_post"]
                if OPTIONS.people:
                    return self.reply(200, {
                        "issuer": here, "authorization_endpoint": f"{here}/authorize",
                        "token_endpoint": f"{here}/token", "registration_endpoint": f"{here}/register",
                        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                        "grant_types_supported": ["authorization_code", "refresh_token"],
                        "token_endpoint_auth_methods_supported": ["none"],
                    })
                return self.reply(200, {
                    "issuer": here, "authorization_endpoint": f"{here}/authorize", "token_endpoint": f"{here}/token",
                    "token_endpoint_auth_methods_supported": methods, "response_types_supported": ["code"],
                })
            if self.path.startswith("/authorize?"):
                return self.authorize()
            return self.reply(405)

        def register(self):
            asked = json.loads(self.body())
            count(f"register {asked['client_name']}")
            return self.reply(201, {**asked, "client_id": "client-1"})

        def authorize(self):
            """The person who sits at the browser says yes at once, or no."""
            from urllib.parse import parse_qs, urlencode, urlsplit

            asked = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
            if OPTIONS.people == "no":
                back = {"error": "access_denied", "state": asked["state"]}
            else:
                with lock:
                    code = f"code-{next(numbers)}"
                    codes[code] = asked
                back = {"code": code, "state": asked["state"]}
            return self.reply(302, Location=f"{asked['redirect_uri']}?{urlencode(back)}")

        def token_of_person(self, form):
            import base64
            import hashlib

            with lock:
                if form["grant_type"] == "authorization_code":
                    asked = codes.pop(form.get("code"), {})
                    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                    same = ("client_id", "redirect_uri")
                    fits = asked.get("code_challenge") == challenge and all(asked[key] == form.get(key) for key in same)
                else:
                    fits = form.get("refresh_token") in refreshes
                    refreshes.discard(form.get("refresh_token"))
                if not fits:
                    return self.reply(400, {"error": "invalid_grant"})
                number = next(numbers)
                tokens.add(f"token-{number}-planted")
                refreshes.add(f"refresh-{number}-planted")
            count(form["grant_type"])
            return self.reply(200, {
                "access_token": f"token-{number}-planted", "refresh_token": f"refresh-{number}-planted",
                "token_type": "Bearer", "expires_in": OPTIONS.lifetime,
            })

        def do_DELETE(self):
            with lock:
                sessions.discard(self.headers.get("Mcp-Session-Id"))
            notify("deleted")
            self.reply(200)

        def token(self):
            from urllib.parse import parse_qs

            form = {key: values[0] for key, values in parse_qs(self.body().decode()).items()}
            if OPTIONS.people:
                return self.token_of_person(form)
            if (form.get("client_id"), form.get("client_secret")) != tuple(OPTIONS.oauth.split(":")):
                return self.reply(401, {"error": "invalid_client"})
            with lock:
                token = f"token-{next(numbers)}-planted"
                tokens.add(token)
            count(f"{form['grant_type']} {form.get('scope', '-')}")
            return self.reply(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

        def allowed(self):
            given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if OPTIONS.oauth or OPTIONS.people:
                with lock:
                    return given in tokens
            return OPTIONS.token is None or given == OPTIONS.token

        def do_POST(self):
            if self.path == "/token":
                return self.token()
            if self.path == "/register":
                return self.register()
            if OPTIONS.redirect and self.path == "/mcp":
                self.body()
                return self.reply(307, Location="/mcp/")
            if not self.allowed():
                self.body()
                return self.reply(401, {"error": "who are you?"}, WWW_Authenticate="Bearer")
            message = json.loads(self.body())
            if OPTIONS.repeat:
                told = f"nothing is known of {self.headers.get(OPTIONS.repeat)}"
                error = {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32602, "message": told}}
                return self.reply(OPTIONS.status or 200, error)
            session = self.headers.get("Mcp-Session-Id")
            headers = {}
            if message.get("method") == "initialize":
                with lock:
                    session = f"session-{next(numbers)}"
                    sessions.add(session)
                headers["Mcp_Session_Id"] = session
            elif session not in sessions and not OPTIONS.modern:
                error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "No valid session"}}
                return self.reply(OPTIONS.unknown_session, error)
            if "id" not in message or "method" not in message:
                if "method" in message:
                    cancelled(Peer(session), message)
                return self.reply(202)
            if OPTIONS.status and message["method"] == "tools/call":
                return self.reply(OPTIONS.status, b"<html>", "text/html")
            peer = Peer(session, self.headers.get("Authorization") or "")
            result = json.dumps(answer(peer, message)).encode()
            if OPTIONS.sse and message["method"] == "tools/call":
                return self.reply(200, b"event: message\ndata: " + result + b"\n\n", "text/event-stream", **headers)
            return self.reply(200, result, **headers)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    with Server(("127.0.0.1", OPTIONS.http), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/mcp", flush=True)
        server.serve_forever()


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP; 0 picks a port; the address is printed")
    parser.add_argument("--sse", action="store_true", help="answer calls with a stream of events (HTTP)")
    parser.add_argument("--redirect", action="store_true", help="redirect to the same address with a slash (HTTP)")
    parser.add_argument("--token", help="ask for this bearer token (HTTP)")
    parser.add_argument("--oauth", metavar="ID:SECRET", help="give tokens for these credentials (HTTP)")
    parser.add_argument("--people", choices=["yes", "no"], help="let people sign in, or refuse them (HTTP)")
    parser.add_argument("--lifetime", type=int, default=3600, help="how long their tokens serve, in seconds")
    parser.add_argument("--unknown-session", type=int, default=404, help="the status for a forgotten session (HTTP)")
    parser.add_argument("--status", type=int, help="answer calls with this status and a page (HTTP)")
    parser.add_argument("--repeat", metavar="HEADER", help="refuse everything with a text that has this header (HTTP)")
    parser.add_argument("--count", metavar="FILE", help="where the tool count appends a line per call")
    parser.add_argument("--notify", type=int, metavar="PORT", help="connect there and tell of every call")
    parser.add_argument("--page", type=int, help="how many tools a page of a list has")
    parser.add_argument("--memory", metavar="FILE", help="offer remember, which appends to the JSON list in FILE")
    parser.add_argument("--meet", type=int, metavar="SIZE", help="offer meet, whose calls wait for a group of SIZE")
    parser.add_argument("--task", metavar="TOOL", help="say that this tool can be called only as a task")
    parser.add_argument("--many", type=int, default=0, help="offer so many more tools")
    parser.add_argument("--refuse-handshake", action="store_true", help="answer initialize with an error")
    parser.add_argument("--modern", action="store_true", help="speak only the protocol without a handshake")
    parser.add_argument("--exit", type=int, metavar="CODE", help="say something on stderr and end at once")
    parser.add_argument("--garbage", action="store_true", help="print something else than MCP and end")
    parser.add_argument("--chatter", action="store_true", help="print lines that are no messages before serving")
    parser.add_argument("--silent", action="store_true", help="never answer anything")
    parser.add_argument("--stubborn", action="store_true", help="do not end with stdin, nor when asked to")
    parser.add_argument("--child", action="store_true", help="start a process and print its number on stderr")
    parser.add_argument("--own-session", action="store_true", help="start that process in a session of its own")
    parser.add_argument("--once", metavar="FILE", help="end at once if FILE exists, else make it and serve")
    parser.add_argument("--header", help="nothing; a secret that stands in a command line")
    parser.add_argument("--ignore", help="the same")
    parser.add_argument("ignored", nargs="*", help="the same")
    return parser.parse_args(namespace=OPTIONS)


def main():
    options()
    if OPTIONS.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if OPTIONS.child:
        # It holds the pipes of this process, as servers behind `npx` do.
        sleep = [sys.executable, "-c", "import time; time.sleep(3600)"]
        child = subprocess.Popen(sleep, start_new_session=OPTIONS.own_session)
        notify(f"child {child.pid}")
    if OPTIONS.exit is not None:
        print(f"cannot open the database (token {os.environ.get('TEST_SECRET')})", file=sys.stderr)
        sys.exit(OPTIONS.exit)
    if OPTIONS.once:
        if os.path.exists(OPTIONS.once):
            sys.exit(5)
        open(OPTIONS.once, "w", encoding="utf-8").close()
    if OPTIONS.garbage:
        print("Welcome to the shop!", flush=True)
        return
    if OPTIONS.chatter:
        print("starting up …\n[]\n", flush=True)
    notify(f"started {os.getpid()}")
    if OPTIONS.http is not None:
        serve_http()
    elif OPTIONS.silent:
        signal.pause()
    else:
        Pipes().serve()
    if OPTIONS.stubborn:
        while True:
            signal.pause()


main()
