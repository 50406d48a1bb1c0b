"""An S3 on loopback for tests: moto's server, and a server that denies or never answers."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

from rebalance_core.storage.place import Place

DENIED = 403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
THROTTLED = (
    503,
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
)
BROKEN = 500, b"<Error><Code>InternalError</Code><Message>We have a problem.</Message></Error>"


@contextmanager
def running_store() -> Iterator[str]:
    """The URL of a store that keeps its objects in memory."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def make_bucket(endpoint: str, name: str) -> None:
    """Make an empty bucket."""
    with urlopen(Request(f"{endpoint}/{name}", method="PUT"), timeout=10):
        pass


def upload(folder: Path, target: Place) -> None:
    """Copy a local folder into a store."""
    for file in filter(Path.is_file, sorted(folder.rglob("*"))):
        place = target / file.relative_to(folder).as_posix()
        with place.file_system.open_output_stream(place.path, compression=None) as opened:
            opened.write(file.read_bytes())


def fill(folder: str, files: int) -> None:
    """Put empty files into a folder of the store that runs in this process."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    bucket, _, prefix = folder.partition("/")
    store = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for number in range(files):
        store.put_object(bucket, f"{prefix}/{number:05}", b"")


class _Refusing(BaseHTTPRequestHandler):
    answer = DENIED

    def _deny(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, text = self.answer
        body = b"" if self.command == "HEAD" else text
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _deny  # noqa: N815  # the base class's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def denying_store(answer: tuple[int, bytes] = DENIED) -> Iterator[str]:
    """The URL of a store that gives every request the same answer."""
    handler = type("_Answering", (_Refusing,), {"answer": answer})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def closed_port() -> Iterator[str]:
    """A URL where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
