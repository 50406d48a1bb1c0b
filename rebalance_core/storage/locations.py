"""Places of what operators write: paths, and URIs of what pyarrow reaches."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike, fspath

from rebalance_core.contracts.paths import is_local, local_path, without_user
from rebalance_core.model.errors import UsageError
from rebalance_core.storage.access import (
    HadoopAccess,
    LocalAccess,
    S3Access,
    s3_access,
    why_not_opened,
)
from rebalance_core.storage.place import Place

Location = str | PathLike[str] | Place
"""What is taken for a place."""


class NotReached(UsageError):
    """A place that is not reached without Spark."""


_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
_OBJECT_STORES = ("s3", "s3a")
_ADDRESS = re.compile(r"(?P<host>[^:]+)(?::(?P<port>\d+))?")


def place_of(location: Location) -> Place:
    """The place.

    Args:
        location: A path, a ``file:`` URI, ``s3://`` or ``s3a://`` with a bucket, or ``hdfs://``.

    Raises:
        NotReached: Another scheme, or what pyarrow needs for this one is not there.
        UsageError: The address is wrong.
    """
    if isinstance(location, Place):
        return location
    text = fspath(location)
    if is_local(text):
        path = str(local_path(text).absolute())
        return Place(path, path, LocalAccess())
    uri = _URI.fullmatch(text.rstrip("/"))
    maker = None if uri is None else _MAKERS.get(uri["scheme"].lower())
    if uri is None or maker is None:
        raise NotReached(f"{without_user(text)}: only {reached()} are reached without Spark")
    return maker(uri)


def is_reached(location: str) -> bool:
    """True if `place_of` gives a place; `UsageError` if the address is wrong."""
    try:
        place_of(location)
    except NotReached:
        return False
    return True


def object_store(location: Location) -> Place | None:
    """The place, if it is in an object store that is reached from here.

    Tasks of a cluster write there themselves. A local folder they may not share, and for HDFS each
    of their Python processes would start a JVM: Spark has its own way to both.
    """
    if isinstance(location, Place):
        return location if isinstance(location.access, S3Access) else None
    text = fspath(location)
    in_store = text.partition("://")[0].lower() in _OBJECT_STORES
    return place_of(text) if in_store and is_reached(text) else None


def is_here(location: str) -> bool:
    """True for a place that driver and tasks reach without Spark: local, or an object store."""
    return is_local(location) or object_store(location) is not None


def reached() -> str:
    """The kinds of places, in words."""
    return "local folders, " + ", ".join(f"{scheme}://" for scheme in _MAKERS)


def _s3_place(uri: re.Match[str]) -> Place:
    bucket, shown = uri["host"], without_user(uri[0])
    if "@" in bucket:
        raise UsageError(
            f"{shown}: keys do not belong into an address; set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        )
    if not bucket:
        raise UsageError(f"{shown}: names no bucket; write {uri['scheme']}://BUCKET/FOLDER")
    try:
        from pyarrow.fs import S3FileSystem  # noqa: F401  # some builds of pyarrow have none
    except ImportError as error:
        raise NotReached(f"{shown}: this pyarrow is built without S3 ({error})") from error
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
            f"({reason}); set JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), "
            "or leave it to Spark: --run-on spark"
        )
    return Place(uri[0], uri["path"] or "/", access)


_MAKERS: dict[str, Callable[[re.Match[str]], Place]] = {
    "s3": _s3_place,
    "s3a": _s3_place,
    "hdfs": _hadoop_place,
}
