"""What a store answered, in a line that says what to do."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import TypeGuard

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
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")
_NETWORK = ("NETWORK_CONNECTION", "REQUEST_TIMEOUT", "SLOW_DOWN", "SERVICE_UNAVAILABLE")


def is_of_store(error: BaseException) -> TypeGuard[OSError]:
    """True for what pyarrow raises where an S3 store refused or did not answer."""
    return isinstance(error, OSError) and "AWS Error" in str(error)


def is_full(error: BaseException) -> TypeGuard[OSError]:
    """True where a disk is full, a quota is used up or a file system became read-only."""
    return isinstance(error, OSError) and error.errno in _FULL


def reason_of(error: OSError, environment: Mapping[str, str] = os.environ) -> str:
    """Why the file system refused."""
    answer = _ANSWER.search(str(error))
    if answer is None:
        return error.strerror or str(error).strip().partition("\n")[0]
    code, text = answer["code"], answer["text"].partition(" (Request ID")[0].strip()
    if code == "NO_SUCH_BUCKET":
        return f"there is no bucket {answer['bucket']}; a run does not make one"
    if code in _DENIED:
        known = any(environment.get(name) for name in _KEYS)
        hint = "" if known else "; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"
        return f"access to bucket {answer['bucket']} is denied ({code}){hint}"
    if code in _NETWORK:
        endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        return f"{endpoint or 'Amazon S3'} does not answer ({text}); see AWS_ENDPOINT_URL"
    if "301" in answer["status"]:
        return f"bucket {answer['bucket']} is in another region; set AWS_REGION to it"
    return f"{code}{answer['status']}: {text}"
