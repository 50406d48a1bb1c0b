"""Access to file systems, as plain values that can be sent to the tasks of a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rebalance_core.contracts.paths import without_user
from rebalance_core.model.errors import UsageError

if TYPE_CHECKING:
    from pyarrow import fs


SETTLE_SECONDS = 0.5
"""How long a created file must remain unchanged: longer than a writer takes to check and write.

pyarrow has no exclusive creation in a store. Of two writers the later one wins, and the other
notices it.
"""


CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 3.0, 10.0, 3
"""How long a store may stay silent, and how often requests are retried: a dead store is detected
within half a minute.

pyarrow's defaults, 1 and 3 s, are too short while a store completes the upload of a large file.
"""


_ENDPOINT = re.compile(r"https?://[^/?#@\s]*[^/?#@\s:](?:/[^?#@\s]*)?", re.IGNORECASE)


_NO_REGION = "us-east-1"  # for stores other than Amazon's: the signature needs some name


@dataclass(frozen=True)
class LocalAccess:
    """The files of this machine."""

    def open(self) -> fs.FileSystem:
        """Return the file system."""
        from pyarrow import fs

        return fs.LocalFileSystem()


@dataclass(frozen=True)
class S3Access:
    """An S3 store; the AWS SDK supplies missing values from profiles or the machine's role.

    Attributes:
        bucket: Its name.
        endpoint: URL of a store that is not Amazon's.
        region: The bucket's region; None to ask the store for it.
        access_key: With `secret_key` and maybe `session_token`; never shown.
        ca_bundle: The file of trusted certificates.
    """

    bucket: str
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    ca_bundle: str | None = None

    def open(self) -> fs.FileSystem:
        """Return the file system, at the cost of at most one request, for the bucket's region."""
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
    """An HDFS file system, accessed through Hadoop's libhdfs.

    Attributes:
        host: The host of the name node, or a name service; ``default`` is the host in Hadoop's
            configuration.
        port: The port; 0 for the default port.
    """

    host: str = "default"
    port: int = 0

    def open(self) -> fs.FileSystem:
        """Return the file system.

        Raises:
            OSError: libhdfs or its JVM is missing, or the name node does not answer.
        """
        from pyarrow import fs

        return fs.HadoopFileSystem(self.host, self.port)


Access = LocalAccess | S3Access | HadoopAccess


@cache
def opened(access: Access) -> fs.FileSystem:
    """Return the file system, opened once per process."""
    return access.open()


@cache
def why_not_opened(access: Access) -> str | None:
    """Return why the file system cannot be opened, as reported by the first attempt, or None if it
    can.
    """
    try:
        opened(access)
    except (ImportError, OSError) as error:
        return str(error).strip().partition("\n")[0] or type(error).__name__
    return None


def s3_access(bucket: str, environment: Mapping[str, str] = os.environ) -> S3Access:
    """Read the access to S3 from the environment, under the names that AWS's own tools use.

    pyarrow reads keys, profiles and roles itself, but neither ``AWS_ENDPOINT_URL`` nor a bucket's
    region. Keys are passed nevertheless, because tasks on other hosts need the driver's.

    Raises:
        UsageError: The endpoint is not a URL.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint and not _is_endpoint(endpoint):
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


def _is_endpoint(text: str) -> bool:
    """Return True for a URL with a host and, if it has a port, a possible one."""
    try:
        parts = urlsplit(text)
        return bool(_ENDPOINT.fullmatch(text) and parts.hostname) and parts.port != 0
    except ValueError:  # of urlsplit, and of a port beyond 65535
        return False


def _region_of(bucket: str) -> str | None:
    """Return the bucket's region at Amazon, or None if unknown; a request will then show the
    reason.
    """
    from pyarrow import fs

    try:
        return str(fs.resolve_s3_region(bucket))
    except OSError:
        return None
