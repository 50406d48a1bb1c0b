"""A webhook on this machine: it keeps what it got, and answers as a test wants."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "T0ken-of-the-hook"


@dataclass
class Webhook:
    """What the server got, and what it answers."""

    port: int = 0
    status: int = 200
    answer: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    silent: threading.Event | None = None
    """It answers only once this is set."""
    got: list[tuple[str, Any, str]] = field(default_factory=list)
    """Path, body, content type."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/{SECRET}?access_token={SECRET}2"


@contextmanager
def served() -> Iterator[Webhook]:
    hook = Webhook()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.got.append((self.path, json.loads(body), self.headers["Content-Type"]))
            if hook.silent is not None:
                hook.silent.wait(60)
                return
            self.send_response(hook.status)
            for name, value in hook.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(hook.answer)))
            self.end_headers()
            self.wfile.write(hook.answer)

        def do_GET(self) -> None:
            hook.got.append((self.path, "GET", ""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    hook.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield hook
    finally:
        if hook.silent is not None:
            hook.silent.set()
        server.shutdown()
        server.server_close()
