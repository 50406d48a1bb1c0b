"""Places that operators read and write: folders of this machine, S3 and HDFS, through pyarrow.

A file system is opened by plain values that travel to tasks. Importing this needs no pyarrow.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeGuard, cast
from urllib.parse import urlsplit

from rebalance_core.contracts.paths import hidden, is_local, local_path, without_user
from rebalance_core.model.errors import RebalanceError, StoreFailed, UsageError

if TYPE_CHECKING:
    from pyarrow import fs


# How a file system is opened: plain values that travel to the tasks of a cluster.

SETTLE_SECONDS = 0.5
"""How long a file that was made must stay as it is: longer than a writer takes to look and write.

pyarrow knows no exclusive creation in a store. Of two writers the last one stays, and the other
sees it.
"""
CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 3.0, 10.0, 3
"""How long a store may be silent, and how often it is asked: a dead store shows in half a minute.

pyarrow's own 1 and 3 s are short for a store that completes the upload of a large file.
"""
_ENDPOINT = re.compile(r"https?://[^/@\s]+[^@\s]*", re.IGNORECASE)
_NO_REGION = "us-east-1"  # for stores that are not Amazon's: a name is signed, whatever it is


@dataclass(frozen=True)
class LocalAccess:
    """The files of this machine."""

    def open(self) -> fs.FileSystem:
        """Return the file system."""
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
        """Return the file system, at the cost of at most a request for the bucket's region."""
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
        host: Of the name node, or a name service; ``default``: the host in Hadoop's configuration.
        port: 0: the usual port.
    """

    host: str = "default"
    port: int = 0

    def open(self) -> fs.FileSystem:
        """Return the file system.

        Raises:
            OSError: libhdfs or its JVM is not there, or the name node does not answer.
        """
        from pyarrow import fs

        return fs.HadoopFileSystem(self.host, self.port)


Access = LocalAccess | S3Access | HadoopAccess


@cache
def opened(access: Access) -> fs.FileSystem:
    """Return the file system, opened once in a process."""
    return access.open()


@cache
def why_not_opened(access: Access) -> str | None:
    """Return why the file system cannot be opened, as the first attempt put it; None: it can."""
    try:
        opened(access)
    except (ImportError, OSError) as error:
        return str(error).strip().partition("\n")[0] or type(error).__name__
    return None


def s3_access(bucket: str, environment: Mapping[str, str] = os.environ) -> S3Access:
    """Read the access to S3 from the environment, by the names that AWS's own tools read.

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
    """Return where Amazon keeps the bucket; None: unknown, and a request will show the reason."""
    from pyarrow import fs

    try:
        return str(fs.resolve_s3_region(bucket))
    except OSError:
        return None


# What a store answered, in a line that states what to do.

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
    """Return True for what pyarrow raises where an S3 store refused or did not answer."""
    return isinstance(error, OSError) and "AWS Error" in str(error)


def store_failed(error: BaseException) -> bool:
    """Return True where an S3 store is at fault, not the caller and not what it asked for."""
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
    """Turn a file system's error into one of ours: `StoreFailed` where `store_failed`.

    Args:
        error: of the file system.
        what: the beginning of the message, e.g. ``--output x cannot be written``.
        refused: the class where the store is not at fault.
    """
    kind = StoreFailed if store_failed(error) else refused
    return kind(f"{what}: {reason_of(error)}")


def is_full(error: BaseException) -> TypeGuard[OSError]:
    """Return True where a disk is full, a quota is used up or a file system became read-only."""
    return isinstance(error, OSError) and error.errno in _FULL


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


# A file or a folder, wherever it is.


@dataclass(frozen=True)
class Place:
    """A file or a folder: what people call it, and how it is reached; picklable.

    Methods raise `OSError` where the file system does (`reason_of` explains it).

    Attributes:
        url: As operators name it, without a slash at the end.
        path: In its file system.
        access: How that is opened.
    """

    url: str
    path: str
    access: Access

    def __truediv__(self, name: str) -> Place:
        """Return the place in this folder under a name."""
        return replace(self, url=f"{self.url}/{name}", path=f"{self.path.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_local(self) -> bool:
        """True on a file system of this machine."""
        return isinstance(self.access, LocalAccess)

    @property
    def file_system(self) -> fs.FileSystem:
        """File system that pyarrow's readers and writers take beside `path`."""
        return opened(self.access)

    def exists(self) -> bool:
        """Return True for a file and for a folder."""
        return bool(self._info().type)

    def is_folder(self) -> bool:
        """Return True for a folder; in an object store, for a prefix of some object."""
        return not (info := self._info()).is_file and bool(info.type)

    def names(self) -> list[str]:
        """Return the names right in the folder, sorted; none if there is no such folder."""
        return sorted(info.base_name for info in self._entries(recursive=False))

    def files(self) -> list[Place]:
        """Return every file in the folder and below, sorted by path; nothing if there is none."""
        paths = sorted(info.path for info in self._entries(recursive=True) if info.is_file)
        below = len(self.path.rstrip("/")) + 1
        return [self / path[below:] for path in paths]

    def size(self) -> int:
        """Return the bytes of a file, or of all files in a folder; 0 if there is none."""
        info = self._info()
        return int(info.size) if info.is_file else sum(size for _, size in self.sizes())

    def sizes(self) -> list[tuple[str, int]]:
        """Return path below this folder and bytes of every file in it, sorted."""
        below = len(self.path.rstrip("/")) + 1
        files = [info for info in self._entries(recursive=True) if info.is_file]
        return sorted((info.path[below:], int(info.size)) for info in files)

    def parquet_rows(self) -> int | None:
        """Return the rows of the folder's Parquet files, by their footers; None: no such folder.

        Raises:
            ArrowException: a file that is not hidden is no Parquet; the text names it.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.is_folder():
            return None
        rows, below = 0, len(self.url) + 1
        for file in self.files():
            if any(map(hidden, file.url[below:].split("/"))):
                continue
            try:
                metadata = pq.read_metadata(file.path, filesystem=file.file_system)
            except pa.ArrowInvalid as error:
                first = str(error).partition("\n")[0]
                raise pa.ArrowInvalid(f"{file.url[below:]} is not Parquet: {first}") from error
            rows += metadata.num_rows
        return rows

    def open(self) -> BinaryIO:
        """Open a file's bytes as they are, whatever its suffix, for reading in order."""
        opened = self.file_system.open_input_stream(self.path, compression=None)
        return cast("BinaryIO", opened)

    def read_text(self) -> str | None:
        """Return a small file's text; None if it is not there."""
        try:
            with self.file_system.open_input_stream(self.path) as file:
                return str(file.read().decode("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_text(self, text: str) -> None:
        """Write a small file, over an earlier file; on HDFS not whole at every moment."""
        with self.file_system.open_output_stream(self.path) as file:
            file.write(text.encode("utf-8"))

    def create_text(self, text: str) -> None:
        """Create a small file; `FileExistsError` if it is there, or another writer was later."""
        if self.read_text() is not None:
            raise FileExistsError(self.url)
        self.write_text(text)
        time.sleep(SETTLE_SECONDS)
        if self.read_text() != text:
            raise FileExistsError(self.url)

    def make_folder(self) -> None:
        """Make the folder and those above it; object stores have none to make."""
        if not isinstance(self.access, S3Access):
            self.file_system.create_dir(self.path)

    def make_new_folder(self) -> None:
        """Make a folder as `make_folder` does; `FileExistsError` if anything is there already."""
        if self.exists():
            raise FileExistsError(self.url)
        self.make_folder()

    def delete(self) -> None:
        """Remove a file, or a folder with all in it; nothing to do if it is not there."""
        info = self._info()
        if info.is_file:
            self.file_system.delete_file(self.path)
        elif info.type:
            self.file_system.delete_dir(self.path)

    def move_to(self, target: Place) -> None:
        """Move a file to a place of the same file system; an object store copies and deletes.

        Raises:
            FileNotFoundError: It is not there.
        """
        try:
            self.file_system.move(self.path, target.path)
        except OSError as error:
            if "NO_SUCH_KEY" in str(error) or "RESOURCE_NOT_FOUND" in str(error):
                raise FileNotFoundError(self.url) from error
            raise

    def _info(self) -> fs.FileInfo:
        return self.file_system.get_file_info(self.path)

    def _entries(self, *, recursive: bool) -> list[fs.FileInfo]:
        from pyarrow import fs

        try:
            # a missing bucket is an error, a missing folder is not: allow_not_found hides both
            return list(
                self.file_system.get_file_info(fs.FileSelector(self.path, recursive=recursive))
            )
        except (FileNotFoundError, NotADirectoryError):
            return []


_ASIDE = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}")
"""A small file while it is written, beside the file that it becomes."""


@dataclass(frozen=True)
class LocalPlace(Place):
    """A file or a folder of this machine, or mounted here; its name may not be UTF-8."""

    def names(self) -> list[str]:
        """Return the names right in the folder, sorted; none if there is no such folder."""
        folder = Path(self.path)
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def read_text(self) -> str | None:
        """Return a small file's text; None if it is not there."""
        path = Path(self.path)
        try:
            if path.is_fifo() or path.is_char_device():
                raise OSError(errno.EINVAL, "not a regular file", self.path)
            return path.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_text(self, text: str) -> None:
        """Write a small file over an earlier file, whole at every moment."""
        with self._written_aside(text) as whole:
            whole.replace(self.path)

    def create_text(self, text: str) -> None:
        """Create a small file, whole or not at all; `FileExistsError` if it is there."""
        with self._written_aside(text) as whole:
            try:
                os.link(whole, self.path)
            except FileExistsError:
                raise
            except OSError:
                # Some mounts know no links: exclusive still, though a crash could leave half a file
                with Path(self.path).open("x", encoding="utf-8") as file:
                    file.write(text)

    def make_folder(self) -> None:
        """Make the folder and those above it."""
        Path(self.path).mkdir(parents=True, exist_ok=True)

    def make_new_folder(self) -> None:
        """Make a folder as `make_folder` does; `FileExistsError` if anything is there already."""
        Path(self.path).mkdir(parents=True)

    def check_makeable(self) -> None:
        """Raise the `OSError` that `make_folder` and the first file would, and touch nothing."""
        path = Path(self.path)
        nearest = next(path for path in (path, *path.parents) if path.exists())
        if not nearest.is_dir():
            code = errno.EEXIST if nearest == path else errno.ENOTDIR
            raise OSError(code, os.strerror(code), str(nearest))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(nearest))

    def delete(self) -> None:
        """Remove a file, or a folder with all in it; nothing to do if it is not there."""
        path = Path(self.path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def delete_leftovers(self, names: Collection[str]) -> None:
        """Remove from the folder what writing small files of these names left when it was killed.

        A writer who is at it notices, and writes once more or gives up its lock's heartbeat.
        """
        for path in map(Path(self.path).joinpath, self.names()):
            aside = _ASIDE.fullmatch(path.name)
            if aside is not None and aside["name"] in names and not path.is_dir():
                path.unlink(missing_ok=True)

    @contextmanager
    def _written_aside(self, text: str) -> Iterator[Path]:
        """Yield a file that is removed in the end, on a full disk and after a signal too."""
        aside = Path(self.path).with_name(f".{self.name}.{os.urandom(16).hex()}")
        try:
            with aside.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            yield aside
        finally:
            aside.unlink(missing_ok=True)


# Places of what operators write: paths, and URIs of what pyarrow reaches.

Location = str | PathLike[str] | Place
"""What counts as a place."""


class NotReached(UsageError):
    """A place that is not reached without Spark."""


_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
_OBJECT_STORES = ("s3", "s3a")
_ADDRESS = re.compile(r"(?P<host>[^:]+)(?::(?P<port>\d+))?")


def place_of(location: Location) -> Place:
    """Return the place.

    Args:
        location: A path, a ``file:`` URI, ``s3://`` or ``s3a://`` with a bucket, or ``hdfs://``.

    Raises:
        NotReached: Another scheme, or what pyarrow needs for this scheme is not there.
        UsageError: The address is wrong.
    """
    if isinstance(location, Place):
        return location
    text = fspath(location)
    if is_local(text):
        path = str(local_path(text).absolute())
        return LocalPlace(path, path, LocalAccess())
    uri = _URI.fullmatch(text.rstrip("/"))
    maker = None if uri is None else _MAKERS.get(uri["scheme"].lower())
    if uri is None or maker is None:
        raise NotReached(f"{without_user(text)}: only {reachable()} are reached without Spark")
    return maker(uri)


def is_reachable(location: str) -> bool:
    """Return True if `place_of` returns a place; raise `UsageError` if the address is wrong."""
    try:
        place_of(location)
    except NotReached:
        return False
    return True


def object_store(location: Location) -> Place | None:
    """Return the place, if it is in an object store that this process reaches.

    Tasks of a cluster write there themselves. A local folder they may not share, and for HDFS each
    of their Python processes would start a JVM: Spark has its own way to both.
    """
    if isinstance(location, Place):
        return location if isinstance(location.access, S3Access) else None
    text = fspath(location)
    in_store = text.partition("://")[0].lower() in _OBJECT_STORES
    return place_of(text) if in_store and is_reachable(text) else None


def is_direct(location: str) -> bool:
    """Return True for a place that driver and tasks reach without Spark: local, or a store."""
    return is_local(location) or object_store(location) is not None


def reachable() -> str:
    """Return the kinds of places, in words."""
    return "local folders, " + ", ".join(f"{scheme}://" for scheme in _MAKERS)


def _s3_place(uri: re.Match[str]) -> Place:
    bucket, shown = uri["host"], without_user(uri[0])
    if "@" in bucket:
        raise UsageError(
            f"{shown}: keep keys out of addresses; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not bucket:
        raise UsageError(f"{shown} names no bucket; write {uri['scheme']}://BUCKET/FOLDER")
    try:
        from pyarrow.fs import S3FileSystem  # noqa: F401  # some builds of pyarrow have none
    except ImportError as error:
        raise NotReached(f"{shown}: the installed pyarrow is built without S3 ({error})") from error
    return Place(uri[0], f"{bucket}{uri['path']}", s3_access(bucket))


def _hadoop_place(uri: re.Match[str]) -> Place:
    address = _ADDRESS.fullmatch(uri["host"])
    if uri["host"] and address is None:
        raise UsageError(f"{without_user(uri[0])}: write hdfs://HOST:PORT/FOLDER")
    access = HadoopAccess()
    if address is not None:
        access = HadoopAccess(address["host"], int(address["port"] or 0))
    reason = why_not_opened(access)
    if reason is not None:
        raise NotReached(
            f"{uri[0]}: HDFS is reached through Hadoop's libhdfs, which does not work here "
            f"({reason}); set JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), or "
            "leave it to Spark: --run-on spark"
        )
    return Place(uri[0], uri["path"] or "/", access)


_MAKERS: dict[str, Callable[[re.Match[str]], Place]] = {
    "s3": _s3_place,
    "s3a": _s3_place,
    "hdfs": _hadoop_place,
}
