"""A POST request to a webhook. Its URL is a secret: messages contain only its host."""

import json
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, parse_qsl, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rebalance_core.model.errors import RebalanceError, UsageError
from rebalance_core.report.visible import visible
from rebalance_core.version import LIBRARY_VERSION

TIMEOUT_SECONDS = 10.0
LONGEST_ANSWER = 4096  # bytes
LONGEST_REASON = 200  # characters
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SHORTEST_SECRET = 4
_CODES = ("errcode", "code", "StatusCode")
"""Fields in which DingTalk and Feishu return a nonzero code, with status 200, for a refused
message.
"""
_REASONS = ("errmsg", "msg", "StatusMessage")


class DeliveryFailed(RebalanceError):
    """The webhook did not accept the message."""


def webhook_url(variable: str, environment: Mapping[str, str]) -> str:
    """Return the URL in an environment variable.

    Raises:
        UsageError: the variable is not set or is not a valid webhook URL. The message contains only
            the variable's name.
    """
    url = environment.get(variable, "").strip()
    if not url:
        raise UsageError(f"environment variable {variable} is not set: it contains a webhook's URL")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, SplitResult("", "", "", "", "")
    allowed = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    plain = url.isascii() and url.isprintable() and " " not in url
    if not (allowed and host and plain) or parts.username is not None:
        raise UsageError(
            f"environment variable {variable} is not an https:// URL without a user name or "
            "spaces (http:// is allowed for this machine only)"
        )
    return url


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects: a webhook that has moved must be reconfigured, so messages are never sent
    elsewhere.
    """

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Do not follow the redirect."""


def post_json(url: str, body: Any, *, timeout: float = TIMEOUT_SECONDS) -> None:
    """Send the body through the proxies set in the environment.

    Raises:
        DeliveryFailed: it was not accepted, with the reason.
    """
    request = Request(
        url,
        json.dumps(body, ensure_ascii=False).encode(),
        {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": f"rebalance-core/{LIBRARY_VERSION}",
        },
        method="POST",
    )
    try:
        answer = _answer(request, timeout)
    except HTTPError as error:
        with error:
            status = f"HTTP {error.code}"
            if 300 <= error.code < 400:
                status += ": it redirects, which is not followed"
        raise DeliveryFailed(status) from None
    except TimeoutError:
        raise DeliveryFailed(f"no answer within {timeout:g} s") from None
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise DeliveryFailed(f"no connection within {timeout:g} s") from None
        raise DeliveryFailed(_without_secrets(str(error.reason), url)) from None
    except (OSError, HTTPException, ValueError) as error:  # their texts may quote the URL
        raise DeliveryFailed(f"no HTTP answer ({type(error).__name__})") from None
    if refused := _refusal(answer):
        raise DeliveryFailed(_without_secrets(refused, url))


def _answer(request: Request, timeout: float) -> bytes:
    """Return the beginning of the answer, as much as arrives in time."""
    end = time.monotonic() + timeout
    answer = b""
    with build_opener(_NoRedirect).open(request, timeout=timeout) as response:
        while len(answer) < LONGEST_ANSWER and time.monotonic() < end:
            part = response.read1(LONGEST_ANSWER - len(answer))
            if not part:
                break
            answer += part
    return answer


def _refusal(answer: bytes) -> str | None:
    """Return why a service that answered 200 did not accept the message, or None if it did."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    code = next((found[name] for name in _CODES if name in found), 0)
    if code in (0, "0"):
        return None
    reason = next((found[name] for name in _REASONS if name in found), "")
    return f"it answered {code}: {reason}"


def _without_secrets(text: str, url: str) -> str:
    parts = urlsplit(url)
    values = [value for _, value in parse_qsl(parts.query)]
    secrets = [url, parts.query, parts.path, *parts.path.split("/"), *values]
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return visible(text, LONGEST_REASON)
