"""``collection.toml``: settings that only the collector knows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from rebalance_core.contracts.settings_file import (
    MOST_BYTES,
    read_settings_text,
    settings_text,
    toml_document,
)
from rebalance_core.ingest.given_groups import VALID_INTERVALS
from rebalance_core.ingest.parse.zones import UTC_NAME, known_zone
from rebalance_core.model.errors import InputRefused, unknown_keys
from rebalance_core.model.intervals import (
    INTERVALS,
    is_interval,
)
from rebalance_core.storage.files_to_read import FolderToRead

SETTINGS_NAME = "collection.toml"


class _Expected(TypedDict, total=False):
    """The names in ``[expected]``."""

    brokers: list[str]
    name_servers: list[str]
    proxies: list[str]


class _Document(TypedDict):
    """The file without `_mistakes`."""

    cluster: str
    admin_time_zone: NotRequired[str]
    time_zones: NotRequired[dict[str, str]]
    expected: NotRequired[_Expected]
    clients: NotRequired[dict[str, dict[str, int]]]
    failed: NotRequired[list[dict[str, str]]]
    redacted: NotRequired[bool]
    continues: NotRequired[str]
    continued: NotRequired[list[dict[str, Any]]]  # as `ContinuedLog`


_KEYS = tuple(_Document.__annotations__)
_EXPECTED = tuple(_Expected.__annotations__)


@dataclass(frozen=True)
class NotCollected:
    """A table of ``[[failed]]``, which the collector writes.

    Attributes:
        what: a path in the collection, a broker or a question.
        why: a sentence.
    """

    what: str
    why: str


@dataclass(frozen=True)
class ContinuedLog:
    """A table of ``[[continued]]``, which the collector writes: a log without its beginning.

    Attributes:
        log: the log's path in the collection.
        head: SHA-256 of its first unpacked bytes, from the earlier run.
        begins_at: the number of bytes that the earlier run read.
        size: its size in bytes on its machine.
        ending: SHA-256 of the last of these bytes; empty if another version collected it.
    """

    log: str
    head: str
    begins_at: int
    size: int
    ending: str = ""


@dataclass(frozen=True)
class CollectionSettings:
    """The cluster's name, zones of files with local time, and the expected servers.

    Attributes:
        cluster: the cluster's name, which every row has.
        admin_time_zone: the zone of the machine that ran mqadmin; None if not stated.
        time_zones: the zone by pattern for file paths in the collection; the first match counts.
        brokers: names of the expected brokers.
        name_servers: names of the expected name servers.
        proxies: names of the expected proxies.
        clients: by client id pattern, intervals named like columns; the first match counts.
            waitInterval and minInterval are in none of RocketMQ's files.
        failed: copies and queries of the collector that failed.
        redacted: whether names were replaced by others in the same order.
        continues: the run from whose end logs were copied; empty if there is none.
        continued: these logs.
    """

    cluster: str
    admin_time_zone: str | None = None
    time_zones: Mapping[str, str] = field(default_factory=dict)
    brokers: tuple[str, ...] = ()
    name_servers: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    clients: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    failed: tuple[NotCollected, ...] = ()
    redacted: bool = False
    continues: str = ""
    continued: tuple[ContinuedLog, ...] = ()

    def zone_of(self, name: str) -> str | None:
        """Return the zone of a file by its path in the collection, or None if no pattern
        matches.
        """
        return next((z for p, z in self.time_zones.items() if fnmatchcase(name, p)), None)


def read_settings(folder: Path | FolderToRead) -> CollectionSettings:
    """Return the settings of a collection.

    Args:
        folder: A local path or a place in a store.

    Raises:
        InputRefused: the file is missing or invalid; every mistake is named.
        OSError: the store failed.
    """
    settings = settings_if_written(folder)
    if settings is None:
        raise no_settings(folder)
    return settings


def no_settings(folder: Path | FolderToRead) -> InputRefused:
    """Return the refusal of a collection without settings."""
    return InputRefused(
        f"{folder / SETTINGS_NAME} is missing: it names the cluster, e.g. "
        'cluster = "DefaultCluster"'
    )


def settings_if_written(folder: Path | FolderToRead) -> CollectionSettings | None:
    """Return the settings of a collection, or None if it has no ``collection.toml``.

    Raises:
        InputRefused: the file is invalid; every mistake is named.
        OSError: the store failed.
    """
    path = folder / SETTINGS_NAME
    try:
        if isinstance(path, Path):
            text = read_settings_text(path, InputRefused)
        else:
            text = settings_text(path.head(MOST_BYTES + 1), str(path), InputRefused)
        written = toml_document(text, str(path), InputRefused)
    except FileNotFoundError:
        return None
    mistakes = _mistakes(written)
    if mistakes:
        raise InputRefused("\n".join(f"{path}: {mistake}" for mistake in mistakes))
    document = cast("_Document", written)
    expected = document.get("expected", {})
    return CollectionSettings(
        cluster=document["cluster"],
        admin_time_zone=document.get("admin_time_zone"),
        time_zones=document.get("time_zones", {}),
        brokers=tuple(expected.get("brokers", ())),
        name_servers=tuple(expected.get("name_servers", ())),
        proxies=tuple(expected.get("proxies", ())),
        clients=document.get("clients", {}),
        failed=tuple(NotCollected(**entry) for entry in document.get("failed", ())),
        redacted=document.get("redacted", False),
        continues=document.get("continues", ""),
        continued=tuple(ContinuedLog(**log) for log in document.get("continued", ())),
    )


def _mistakes(document: Mapping[str, object]) -> list[str]:
    mistakes = [text for _, text in unknown_keys(document, _KEYS)]
    cluster = document.get("cluster")
    if not isinstance(cluster, str) or not cluster.strip():
        mistakes.append("cluster is missing: the name of the RocketMQ cluster, as text")
    zones = document.get("time_zones", {})
    expected = document.get("expected", {})
    if not isinstance(zones, dict) or not isinstance(expected, dict):
        return [*mistakes, "time_zones and expected are tables: [time_zones], [expected]"]
    named = {"admin_time_zone": document.get("admin_time_zone", UTC_NAME)} | zones
    for where, zone in named.items():
        if not isinstance(zone, str) or not known_zone(zone):
            mistakes.append(
                f"{where} = {zone!r} is not a time zone; expected e.g. America/New_York"
            )
    mistakes += [f"the pattern {where!r} leaves the collection" for where in zones if ".." in where]
    mistakes += [text for _, text in unknown_keys(expected, _EXPECTED, prefix="expected.")]
    for key, names in expected.items():
        if key in _EXPECTED and (
            not isinstance(names, list) or not all(isinstance(name, str) for name in names)
        ):
            mistakes.append(f"expected.{key} must be a list of names")
    if not isinstance(document.get("redacted", False), bool):
        mistakes.append(f"redacted = {document['redacted']!r} is neither true nor false")
    failed = document.get("failed", [])
    if not isinstance(failed, list) or not all(map(_names_what_and_why, failed)):
        mistakes.append(
            "failed must be a list of tables: [[failed]], each with the texts what and why"
        )
    continued = document.get("continued", [])
    if not isinstance(continued, list) or not all(map(_is_continued_log, continued)):
        mistakes.append(
            "continued must be a list of tables: [[continued]], each with log, head, begins_at and "
            "size"
        )
    if not isinstance(document.get("continues", ""), str):
        mistakes.append(f"continues = {document['continues']!r} is not the folder of a run")
    return [*mistakes, *_bad_clients(document.get("clients", {}))]


def _is_continued_log(table: object) -> bool:
    types = ContinuedLog.__annotations__
    if (
        not isinstance(table, dict)
        or table.keys() | {"ending"} != types.keys()
        or any(type(value) is not types[name] for name, value in table.items())
    ):
        return False
    log = ContinuedLog(**table)
    return log.begins_at > 0 <= log.size


def _names_what_and_why(table: object) -> bool:
    return (
        isinstance(table, dict)
        and table.keys() == {"what", "why"}
        and all(isinstance(text, str) for text in table.values())
    )


def _bad_clients(clients: object) -> Iterator[str]:
    if not isinstance(clients, dict) or not all(
        isinstance(table, dict) for table in clients.values()
    ):
        yield 'clients must be a table of tables: [clients."10.0.0.1@*"]'
        return
    for pattern, table in clients.items():
        inside = f"clients.{pattern}."
        yield from (text for _, text in unknown_keys(table, INTERVALS, prefix=inside))
        for name, value in table.items():
            where = f"{inside}{name}"
            if name in INTERVALS and (type(value) is not int or not is_interval(value)):
                yield f"{where} = {value!r} is not an interval; {VALID_INTERVALS}"
