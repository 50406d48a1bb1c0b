"""One POST: what is sent, what counts as taken, and that no message shows the secret."""

import socket
import threading
from collections.abc import Iterator

import pytest

from rebalance_core.cli.run.webhook import DeliveryFailed, post_json, webhook_url
from rebalance_core.model.errors import UsageError
from tests.unit.cli.webhooks import SECRET, Webhook, served


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    monkeypatch.setenv("no_proxy", "*")
    with served() as made:
        yield made


def refused(hook: Webhook, url: str | None = None, timeout: float = 5) -> str:
    with pytest.raises(DeliveryFailed) as caught:
        post_json(url or hook.url, {"text": "主题"}, timeout=timeout)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_the_body_arrives_as_json(hook: Webhook) -> None:
    post_json(hook.url, {"text": '主题 "x"'})
    ((path, body, kind),) = hook.got
    assert path == f"/services/{SECRET}?access_token={SECRET}2"
    assert body == {"text": '主题 "x"'}
    assert kind == "application/json; charset=utf-8"


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500, 503])
def test_a_status_that_is_no_success(hook: Webhook, status: int) -> None:
    hook.status, hook.answer = status, f"no {SECRET}".encode()
    assert refused(hook) == f"HTTP {status}"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b'{"errcode": 310000, "errmsg": "keywords not in content"}', "310000: keywords not in"),
        (b'{"code": 19024, "msg": "Key Words Not Found"}', "19024: Key Words Not Found"),
        (b'{"code": 9, "msg": "no hook T0ken-of-the-hook"}', "9: no hook ***"),
    ],
)
def test_a_refusal_in_an_answer_of_200(hook: Webhook, answer: bytes, said: str) -> None:
    hook.answer = answer
    assert said in refused(hook)


@pytest.mark.parametrize(
    "answer", [b"", b"ok", b'{"errcode": 0, "errmsg": "ok"}', b"{", b"[1]", b'{"code": 0}', b"1"]
)
def test_what_was_taken(hook: Webhook, answer: bytes) -> None:
    hook.answer = answer
    post_json(hook.url, {})
    assert len(hook.got) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(hook: Webhook, status: int) -> None:
    with served() as other:
        hook.status, hook.headers = status, {"Location": other.url}
        assert refused(hook).startswith(f"HTTP {status}: it redirects")
        assert other.got == []
    hook.headers = {"Location": f"/elsewhere/{SECRET}"}
    refused(hook)
    assert len(hook.got) == 2


def test_a_server_that_does_not_answer(hook: Webhook) -> None:
    hook.silent = threading.Event()
    assert refused(hook, timeout=0.3) == "no answer within 0.3 s"


def test_an_answer_without_an_end_is_taken_as_far_as_it_is_read(hook: Webhook) -> None:
    hook.answer = b"x" * 10_000_000
    post_json(hook.url, {})


def test_a_refused_connection_and_what_is_no_http(hook: Webhook) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "refused" in refused(hook, f"http://127.0.0.1:{port}/{SECRET}")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            got = b""
            while not got.endswith(b"}"):  # all of the request: else closing resets the connection
                got += connection.recv(4096)
            connection.sendall(f"220 {SECRET} ready\r\n".encode())
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        port = server.getsockname()[1]
        assert refused(hook, f"http://127.0.0.1:{port}/{SECRET}").startswith("no HTTP answer")
        thread.join()


def test_a_proxy_of_the_environment(hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{hook.port}")
    post_json("http://127.0.0.1:1/hook", {"n": 1})
    assert [(path, body) for path, body, _ in hook.got] == [("http://127.0.0.1:1/hook", {"n": 1})]


@pytest.mark.parametrize(
    "url",
    [
        f"http://hooks.example/{SECRET}",
        f"ftp://127.0.0.1/{SECRET}",
        f"file:///{SECRET}",
        f"https:///{SECRET}",
        f"https://user:{SECRET}@hooks.example/x",
        f"https://hooks.example/{SECRET} x",
        f"https://hooks.example/{SECRET}\r\nX: y",
        f"https://[{SECRET}",
        f"https://hooks.example:99999/{SECRET}",
        SECRET,
    ],
)
def test_a_url_that_is_not_posted_to(url: str) -> None:
    with pytest.raises(UsageError, match=r"^environment variable HOOK is not an https") as caught:
        webhook_url("HOOK", {"HOOK": url})
    assert SECRET not in str(caught.value)


def test_a_url_comes_from_the_environment() -> None:
    assert webhook_url("HOOK", {"HOOK": " https://h.example:8443/x?y=z\n"}).endswith("x?y=z")
    assert webhook_url("HOOK", {"HOOK": "http://[::1]:80/x"}) == "http://[::1]:80/x"
    for environment in ({}, {"HOOK": " "}):
        with pytest.raises(UsageError, match="variable HOOK is not set"):
            webhook_url("HOOK", environment)
