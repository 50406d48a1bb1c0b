"""A store's answer, as a line that states what to do."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import TypeGuard

from rebalance_core.model.errors import RebalanceError, StoreFailed, UsageError

_ANSWER = re.compile(
    r"(?:in|of) bucket '(?P<bucket>[^']*)'.*?"
    r"AWS Error (?P<code>[A-Z_]+)(?P<status>.*?) during \w+ operation: (?P<text>.*)",
    re.DOTALL,
)


_DENIED = {
    "ACCESS_DENIED",
    "INVALID_ACCESS_KEY_ID",
    "INVALID_CLIENT_TOKEN_ID",
    "INVALID_SIGNATURE",
    "MISSING_AUTHENTICATION_TOKEN",
    "SIGNATURE_DOES_NOT_MATCH",
    "UNRECOGNIZED_CLIENT",
}


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of a place that holds no more; see `is_full`."""


_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")


_NETWORK = ("NETWORK_CONNECTION", "REQUEST_TIMEOUT")


_THROTTLING = ("SLOW_DOWN", "THROTTLING", "REQUEST_LIMIT_EXCEEDED", "BANDWIDTH_LIMIT_EXCEEDED")


_OWN_ERRORS = ("SERVICE_UNAVAILABLE", "INTERNAL_FAILURE")


# S3 answers a HEAD request, which has no body, with 503 instead of SlowDown.
_THROTTLES = re.compile(r"\b(429|503|SlowDown)\b|reduce your request rate", re.IGNORECASE)


_FAILS = re.compile(r"\b5\d\d\b")


class HadoopFailed(OSError):
    """A store behind Hadoop denies, throttles or does not answer."""


def is_of_store(error: BaseException) -> TypeGuard[OSError]:
    """Return True for the error of a store that refuses or does not answer: pyarrow's for S3, or
    `HadoopFailed`.
    """
    of_s3 = isinstance(error, OSError) and "AWS Error" in str(error)
    return of_s3 or isinstance(error, HadoopFailed)


def store_failed(error: BaseException) -> bool:
    """Return True if a store is at fault, rather than the caller or the request."""
    if isinstance(error, HadoopFailed):
        return True
    answer = _ANSWER.search(str(error)) if is_of_store(error) else None
    if answer is None:
        return False
    code = answer["code"] in (*_DENIED, *_NETWORK, *_THROTTLING, *_OWN_ERRORS)
    return code or _throttles(answer) or _FAILS.search(answer["status"]) is not None


def _throttles(answer: re.Match[str]) -> bool:
    text = f"{answer['status']} {answer['text']}"
    return answer["code"] in _THROTTLING or _THROTTLES.search(text) is not None


def refusal(
    error: OSError, what: str, refused: type[RebalanceError] = UsageError
) -> RebalanceError:
    """Turn a file system's error into this library's: `StoreFailed` if `store_failed`.

    Args:
        error: the error of the file system.
        what: the beginning of the message, e.g. ``--output x cannot be written``.
        refused: the class if the store is not at fault.
    """
    kind = StoreFailed if store_failed(error) else refused
    return kind(f"{what}: {reason_of(error)}")


def is_full(error: BaseException) -> TypeGuard[OSError]:
    """Return True if a disk is full, a quota is used up, a file has reached its largest size or a
    file system has become read-only.
    """
    return isinstance(error, OSError) and error.errno in FULL


def reason_of(error: OSError, environment: Mapping[str, str] = os.environ) -> str:
    """Return why the file system refused."""
    answer = _ANSWER.search(str(error))
    if answer is None:
        return error.strerror or str(error).strip().partition("\n")[0]
    code, text = answer["code"], answer["text"].partition(" (Request ID")[0].strip()
    if code == "NO_SUCH_BUCKET":
        return f"bucket {answer['bucket']} does not exist; a run does not create it"
    if code in _DENIED:
        has_keys = any(environment.get(name) for name in _KEYS)
        hint = "" if has_keys else "; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"
        return f"access to bucket {answer['bucket']} is denied ({code}){hint}"
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    store = endpoint or "Amazon S3"
    if _throttles(answer):
        return f"the store throttles ({store}: {text}); try again later"
    if code in _NETWORK:
        return f"{store} does not answer ({text}); see AWS_ENDPOINT_URL"
    if store_failed(error):
        return f"{store} reports an internal error ({code}{answer['status']}: {text}); try again"
    if "301" in answer["status"]:
        return f"bucket {answer['bucket']} is in another region; set AWS_REGION to it"
    return f"{code}{answer['status']}: {text}"
