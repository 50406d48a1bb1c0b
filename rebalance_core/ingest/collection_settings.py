"""``collection.toml`` and ``consumer_groups.jsonl``: what only the person who collects the
files knows.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.contracts.settings_file import read_settings_text, toml_document
from rebalance_core.ingest.fact import BAD_ENTRY, UNPARSABLE_LINE, Unread, Unreadable, unread
from rebalance_core.ingest.parse.log_lines import UTC_NAME, known_zone
from rebalance_core.model.errors import InputRefused, RebalanceError, did_you_mean, unknown_keys
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.intervals import (
    INTERVALS,
    LONGEST_INTERVAL_MS,
    SHORTEST_INTERVAL_MS,
    is_interval,
)
from rebalance_core.strategies import parse_strategy

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsGiven

# What applies where no file states it; every field so assumed is an INFO finding.

_DEFAULTS = GroupSettings()


@dataclass(frozen=True)
class Assumptions:
    """The section ``[assume]`` of the configuration.

    Attributes:
        strategy: text of groups whose client logs and ``consumerStatus`` were not collected.
        consume_from_where: of groups that no heartbeat line or dump describes.
        client_version: of members whose registration is in no log and no dump.
        broker_version: of brokers that no ``clusterList`` lists.
        time_zone: of files with local time that ``collection.toml`` names no zone for.
    """

    strategy: str = _DEFAULTS.strategy
    consume_from_where: str = _DEFAULTS.consume_from_where
    client_version: str = _DEFAULTS.client_version
    broker_version: str = _DEFAULTS.broker_version
    time_zone: str = "UTC"


# ``consumer_groups.jsonl`` of a collection: what no file of RocketMQ shows, named by a person.

VALID_INTERVALS = f"valid: {SHORTEST_INTERVAL_MS} to {LONGEST_INTERVAL_MS} (ms)"
_TYPES: dict[str, type | tuple[type, ...]] = {
    "STRING": str,
    "BIGINT": int,
    "INT": int,
    "BOOLEAN": bool,
    "ARRAY<STRING>": list,
}


def parse_given_groups(
    text: str, name: str, cluster: str
) -> tuple[dict[str, "ConsumerGroupsGiven"], list[Unread]]:
    """Return rows by group, each with any of the table's columns; and the lines that are none.

    Rows of another cluster are refused; a group named twice keeps its first row.
    """
    rows: dict[str, ConsumerGroupsGiven] = {}
    refused: list[Unread] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip():
            continue
        try:
            group, row = _row(line, cluster)
            if group in rows:
                raise Unreadable("DUPLICATE_KEY", f"{group} has a row above")
            rows[group] = row
        except Unreadable as refusal:
            refused.append(unread(f"{name}:{number}", line, refusal))
    return rows, refused


def _row(line: str, cluster: str) -> tuple[str, "ConsumerGroupsGiven"]:
    """Return the group, and the columns that its row gives."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(UNPARSABLE_LINE, f"is not one JSON object: {error}") from None
    if not isinstance(row, dict) or not isinstance(row.get("consumer_group"), str):
        raise Unreadable(BAD_ENTRY, "is not an object with the text consumer_group")
    if row.pop("cluster", cluster) != cluster:
        raise Unreadable(BAD_ENTRY, f"is of another cluster than {cluster}")
    types = {column.name: column.type for column in CONSUMER_GROUPS.columns}
    columns = {name: value for name, value in row.items() if value is not None}
    for name, value in columns.items():
        if name not in types:
            raise Unreadable(BAD_ENTRY, f"unknown column {name}{did_you_mean(name, types)}")
        right = isinstance(value, _TYPES[types[name]])
        if not right or (isinstance(value, bool) and types[name] != "BOOLEAN"):
            raise Unreadable(BAD_ENTRY, f"{name} is {value!r}, which is not a {types[name]}")
        if name in INTERVALS and not is_interval(value):
            raise Unreadable("BAD_INTERVAL", f"{name} is {value!r}; {VALID_INTERVALS}")
    if "strategy" in columns:
        try:
            parse_strategy(columns["strategy"])
        except RebalanceError as error:
            raise Unreadable("BAD_STRATEGY", str(error)) from None
    return row["consumer_group"], cast("ConsumerGroupsGiven", columns)


# ``collection.toml``: what only the person who collects the files knows.

SETTINGS_NAME = "collection.toml"
_KEYS = (
    "cluster",
    "admin_time_zone",
    "time_zones",
    "expected",
    "clients",
    "failed",
    "redacted",
    "continues",
    "continued",
)
_EXPECTED = ("brokers", "name_servers", "proxies")


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
        log: its path in the collection.
        head: SHA-256 of its first bytes, unpacked, as the earlier run has it.
        begins_at: how many bytes that run read.
        size: bytes on its machine.
    """

    log: str
    head: str
    begins_at: int
    size: int


@dataclass(frozen=True)
class CollectionSettings:
    """Cluster name, zones of files with local time, and who should be there.

    Attributes:
        cluster: name of the cluster; every row gets it.
        admin_time_zone: zone of the machine that ran mqadmin; None: not stated.
        time_zones: zone per pattern of a file's path in the collection; the first that fits holds.
        brokers: names of the brokers expected.
        name_servers: names of the name servers expected.
        proxies: names of the proxies expected.
        clients: by pattern of client ids intervals of theirs, named as columns; the first that
            fits holds. waitInterval and minInterval are in no file of RocketMQ.
        failed: what the collector could not copy or ask.
        redacted: names took the place of names, in the same order.
        continues: the run from whose end logs were copied; empty: none.
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
        """Return the zone of a file by its path in the collection; None if no pattern fits."""
        return next((z for p, z in self.time_zones.items() if fnmatchcase(name, p)), None)


def read_settings(folder: Path) -> CollectionSettings:
    """Return the settings of a collection.

    Raises:
        InputRefused: the file is missing or wrong; every mistake is named.
    """
    path = folder / SETTINGS_NAME
    try:
        document = toml_document(read_settings_text(path, InputRefused), str(path), InputRefused)
    except FileNotFoundError as error:
        raise InputRefused(
            f'{path} is missing: it names the cluster, e.g. cluster = "DefaultCluster"'
        ) from error
    mistakes = _mistakes(document)
    if mistakes:
        raise InputRefused("\n".join(f"{path}: {mistake}" for mistake in mistakes))
    expected = document.get("expected", {})
    return CollectionSettings(
        cluster=document["cluster"],
        admin_time_zone=document.get("admin_time_zone"),
        time_zones=dict(document.get("time_zones", {})),
        brokers=tuple(expected.get("brokers", ())),
        name_servers=tuple(expected.get("name_servers", ())),
        proxies=tuple(expected.get("proxies", ())),
        clients=dict(document.get("clients", {})),
        failed=tuple(
            NotCollected(entry["what"], entry["why"]) for entry in document.get("failed", ())
        ),
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
        mistakes.append(f"continues = {document['continues']!r} is no folder of a run")
    return [*mistakes, *_bad_clients(document.get("clients", {}))]


def _is_continued_log(table: Any) -> bool:
    types = ContinuedLog.__annotations__
    return (
        isinstance(table, dict)
        and table.keys() == types.keys()
        and all(type(value).__name__ == types[name].__name__ for name, value in table.items())
        and table["begins_at"] > 0 <= table["size"]
    )


def _names_what_and_why(table: Any) -> bool:
    return (
        isinstance(table, dict)
        and table.keys() == {"what", "why"}
        and all(isinstance(text, str) for text in table.values())
    )


def _bad_clients(clients: Any) -> Iterator[str]:
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
