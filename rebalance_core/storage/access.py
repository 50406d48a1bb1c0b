"""How a file system is opened by plain values that travel to tasks, and what a store answered."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeGuard
from urllib.parse import urlsplit

from rebalance_core.contracts.paths import without_user
from rebalance_core.model.errors import RebalanceError, StoreFailed, UsageError

if TYPE_CHECKING:
    from pyarrow import fs


# How a file system is opened: plain values that travel to the tasks of a cluster.

CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 3.0, 10.0, 3
"""How long a store may be silent, and how often it is asked: a dead one is told in half a minute.

pyarrow's own 1 and 3 s are short for a store that completes the upload of a large file.
"""
_ENDPOINT = re.compile(r"https?://[^/@\s]+[^@\s]*", re.IGNORECASE)
_NO_REGION = "us-east-1"  # for stores that are not Amazon's: a name is signed, whatever it is


@dataclass(frozen=True)
class LocalAccess:
    """The files of this machine."""

    def open(self) -> fs.FileSystem:
        """The file system."""
        from pyarrow import fs

        return fs.LocalFileSystem()


@dataclass(frozen=True)
class S3Access:
    """An S3 store; what is None, the AWS SDK finds out: profiles, the role of the machine.

    Attributes:
        bucket: Its name.
        endpoint: URL of a store that is not Amazon's.
        region: Of the bucket; None: asked for.
        access_key: With `secret_key` and maybe `session_token`; never shown.
        ca_bundle: File of the certificates that are trusted.
    """

    bucket: str
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    ca_bundle: str | None = None

    def open(self) -> fs.FileSystem:
        """The file system; at most the bucket's region is asked for."""
        from pyarrow import fs

        region = self.region
        if region is None:
            region = _NO_REGION if self.endpoint else _region_of(self.bucket)
        endpoint = urlsplit(self.endpoint or "https:")
        return fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            session_token=self.session_token,
            region=region,
            scheme=endpoint.scheme,
            endpoint_override=(endpoint.netloc + endpoint.path.rstrip("/")) or None,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=REQUEST_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            tls_ca_file_path=self.ca_bundle,
        )


@dataclass(frozen=True)
class HadoopAccess:
    """An HDFS, through Hadoop's own libhdfs.

    Attributes:
        host: Of the name node, or a name service; ``default``: as Hadoop's configuration says.
        port: 0: the usual one.
    """

    host: str = "default"
    port: int = 0

    def open(self) -> fs.FileSystem:
        """The file system.

        Raises:
            OSError: libhdfs or its JVM is not there, or the name node does not answer.
        """
        from pyarrow import fs

        return fs.HadoopFileSystem(self.host, self.port)


Access = LocalAccess | S3Access | HadoopAccess


@cache
def opened(access: Access) -> fs.FileSystem:
    """The file system, opened once in a process."""
    return access.open()


@cache
def why_not_opened(access: Access) -> str | None:
    """What is missing to open the file system, as it was first said; None: nothing."""
    try:
        opened(access)
    except (ImportError, OSError) as error:
        return str(error).strip().partition("\n")[0] or type(error).__name__
    return None


def s3_access(bucket: str, environment: Mapping[str, str] = os.environ) -> S3Access:
    """What the environment says of S3, by the names that AWS's own tools read.

    pyarrow reads keys, profiles and roles by itself, but neither ``AWS_ENDPOINT_URL`` nor a
    bucket's region. Keys are taken all the same: tasks on other hosts need those of the driver.

    Raises:
        UsageError: The endpoint is no URL.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint and not _ENDPOINT.fullmatch(endpoint):
        raise UsageError(
            f"AWS_ENDPOINT_URL {without_user(endpoint)!r}: write http://HOST:PORT or https://HOST"
        )
    return S3Access(
        bucket,
        endpoint=endpoint or None,
        region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None,
        access_key=environment.get("AWS_ACCESS_KEY_ID") or None,
        secret_key=environment.get("AWS_SECRET_ACCESS_KEY") or None,
        session_token=environment.get("AWS_SESSION_TOKEN") or None,
        ca_bundle=environment.get("AWS_CA_BUNDLE") or None,
    )


def _region_of(bucket: str) -> str | None:
    """Where Amazon keeps the bucket; None: it does not say, and the first request will tell why."""
    from pyarrow import fs

    try:
        return str(fs.resolve_s3_region(bucket))
    except OSError:
        return None


# What a store answered, in a line that says what to do.

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
_NETWORK = ("NETWORK_CONNECTION", "REQUEST_TIMEOUT")
_THROTTLING = ("SLOW_DOWN", "THROTTLING", "REQUEST_LIMIT_EXCEEDED", "BANDWIDTH_LIMIT_EXCEEDED")
_OWN_ERRORS = ("SERVICE_UNAVAILABLE", "INTERNAL_FAILURE")
# S3 answers a HEAD request, which has no body, with 503 where it would say SlowDown.
_THROTTLES = re.compile(r"\b(429|503|SlowDown)\b|reduce your request rate", re.IGNORECASE)
_FAILS = re.compile(r"\b5\d\d\b")


def is_of_store(error: BaseException) -> TypeGuard[OSError]:
    """True for what pyarrow raises where an S3 store refused or did not answer."""
    return isinstance(error, OSError) and "AWS Error" in str(error)


def store_failed(error: BaseException) -> bool:
    """True where an S3 store is at fault, and neither who asks nor what is asked for."""
    answer = _ANSWER.search(str(error)) if is_of_store(error) else None
    if answer is None:
        return False
    code = answer["code"] in (*_NETWORK, *_THROTTLING, *_OWN_ERRORS)
    return code or _throttles(answer) or _FAILS.search(answer["status"]) is not None


def _throttles(answer: re.Match[str]) -> bool:
    text = f"{answer['status']} {answer['text']}"
    return answer["code"] in _THROTTLING or _THROTTLES.search(text) is not None


def refusal(
    error: OSError, what: str, refused: type[RebalanceError] = UsageError
) -> RebalanceError:
    """What a file system said, as an error of ours: `StoreFailed` where `store_failed`.

    Args:
        error: of the file system.
        what: the beginning of the message, e.g. ``--output x cannot be written``.
        refused: the class where the store is not at fault.
    """
    kind = StoreFailed if store_failed(error) else refused
    return kind(f"{what}: {reason_of(error)}")


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
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    store = endpoint or "Amazon S3"
    if _throttles(answer):
        return f"the store throttles ({store}: {text}); try again later"
    if code in _NETWORK:
        return f"{store} does not answer ({text}); see AWS_ENDPOINT_URL"
    if store_failed(error):
        return f"{store} has an error of its own ({code}{answer['status']}: {text}); try again"
    if "301" in answer["status"]:
        return f"bucket {answer['bucket']} is in another region; set AWS_REGION to it"
    return f"{code}{answer['status']}: {text}"
