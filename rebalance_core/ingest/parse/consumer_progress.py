"""``mqadmin consumerProgress``: offsets per queue of one group, or one line per group."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from rebalance_core.ingest.fact import (
    BAD_NUMBER,
    BAD_TIME,
    UNPARSABLE_LINE,
    Fact,
    Stated,
    Unread,
    Unreadable,
    unread,
)
from rebalance_core.ingest.fact_subjects import answers
from rebalance_core.ingest.parse.column_names import is_truncated
from rebalance_core.ingest.parse.command_output import (
    Line,
    cut_off,
    foreign,
    is_partial,
    read_lines,
    read_output,
    stray,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.consumer_connection import VERSION
from rebalance_core.ingest.parse.headed_tables import BROKER, WORD, Column, HeadedTable
from rebalance_core.ingest.parse.java_numbers import count_of, decimal_of, long_of, offset_of
from rebalance_core.ingest.parse.mqadmin_times import dashed_ms
from rebalance_core.ingest.parse.torn_rows import refused_rows

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import QueueProgressValues


_NUMBER = r"-?[0-9]{1,19}"


_TIME = r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:,[0-9]{3})?|N/A)?"
"""It is empty if RocketMQ could not format it, and N/A for 0."""


def _number(gap: int = 2) -> Column:
    return Column(_NUMBER, gap, BAD_NUMBER, "a whole number of 64 bits")


_QUEUES = {
    "Topic": Column(WORD, what="a topic"),
    "Broker Name": Column(BROKER, what="the name of a broker"),
    "QID": _number(),
    "Broker Offset": _number(),
    "Consumer Offset": _number(),
    "Diff": _number(1),
}


_SOME_QUEUES = {
    "Client IP": Column(WORD, 1, what="a client's address"),
    "Inflight": _number(1),
    "LastTime": Column(_TIME, 1, BAD_TIME, "a time as mqadmin prints it", placed=False),
}
"""Columns that only some versions print, or only with -s true."""


_GROUPS = {
    "Group": Column(WORD, what="a group"),
    "Count": _number(),
    "Version": Column(VERSION, 1, what="a version"),
    "Type": Column(r"[A-Za-z_]*", what="a type"),
    "Model": Column(r"[A-Za-z_]*", what="a message model"),
    "TPS": _number(),
    "Diff Total": _number(),
}


_BROKER_WIDTH = 32


_TOTALS = {
    "Consume TPS: ": "consume_tps",
    "Diff Total: ": "diff",
    "Consume Diff Total: ": "diff",
    "Consume Inflight Total: ": "inflight",
}


_NOBODY = "N/A"


def parse_consumer_progress(
    text: str, source: str, *, time_zone: tzinfo = UTC
) -> list[Fact | Unread]:
    """Read an output of 4.9 or 5.x, with or without ``-g`` and ``-s``.

    Facts:
        queue_progress: a queue of the queried group: topic, topic_truncated, broker_name,
            broker_name_truncated (the name fills its column and may have been truncated), queue_id,
            broker_offset, consumer_offset (0 also when nothing is committed), diff, inflight (5.x),
            last_time_ms (None for N/A), with_clients (run with -s true), client_ip (the holder's
            client id up to its first @; None without a holder), partial (present, and true, only if
            rows of the topic may be missing)
        progress_total: a final line of one group: name (consume_tps, diff, inflight), total
        group_progress: a group, if none was queried: consumer_group, consumer_group_truncated,
            members (entries at one broker; 0 is offline), version (the members' lowest),
            consume_type (PUSH, PULL), message_model, tps, diff

    Args:
        text: the output.
        source: the name of its file.
        time_zone: the time zone of the machine that ran mqadmin; the last column is in its local
            time.
    """
    output = read_output(text, source)
    table = _ProgressTable(time_zone)
    results = read_lines(output.lines, table.read)
    if not table.headed:
        return [*unheaded(results, output.others), *output.others]
    if not table.padded:
        names = "topic", "broker_name"
        results = refused_rows(results, "queue_progress", names, output.lines)
    results += _rows_lost(results, source)
    refused = is_partial([*results, *output.others])
    missing = table.missing_end
    if missing and not output.others:
        output.others.append(cut_off(source, output.lines, missing))
    return [*_marked(results, refused, bool(missing)), *output.others]


def _rows_lost(results: list[Fact | Unread], source: str) -> Iterator[Unread]:
    """Refuse an output whose rows do not add up to the total that mqadmin printed for them."""
    facts = list(answers(results))
    totals = [
        f.values["total"]
        for f in facts
        if f.kind == "progress_total" and f.values["name"] == "diff"
    ]
    added = sum(f.values["diff"] for f in facts if f.kind == "queue_progress")
    if totals and totals != [added] and not any(isinstance(piece, Unread) for piece in results):
        why = (
            f"rows are missing: the differences add up to {added}, and the total is {totals[0]:.0f}"
        )
        yield unread(source, "", Unreadable(UNPARSABLE_LINE, why))


def _marked(results: list[Fact | Unread], refused: bool, cut: bool) -> Iterator[Fact | Unread]:
    """Mark the rows of incomplete topics: all topics if rows were refused, otherwise the last
    one.
    """
    topics = [f.values["topic"] for f in answers(results) if f.kind == "queue_progress"]
    last = topics[-1] if topics else None
    for piece in results:
        if isinstance(piece, Stated) and piece.kind == "queue_progress":
            partial = refused or (cut and piece.values["topic"] == last)
            yield replace(piece, values={**piece.values, "partial": True}) if partial else piece
        else:
            yield piece


class _ProgressTable:
    """The rows after a header are read as that header requires."""

    def __init__(self, time_zone: tzinfo) -> None:
        self._time_zone = time_zone
        self._table: HeadedTable | None = None
        self._groups = False
        self._totals: set[str] = set()

    @property
    def headed(self) -> bool:
        """True if the output has a header."""
        return self._table is not None

    @property
    def padded(self) -> bool:
        """False if the queue rows have no padding that would show lost characters."""
        return self._table is None or self._groups or self._table.padded

    @property
    def missing_end(self) -> str:
        """The total that is missing at the end of a single group's queues; empty if it is
        present.
        """
        if self._table is None or self._groups:
            return ""
        last = "inflight" if self._table.has("Inflight") else "diff"
        return "" if last in self._totals else f"the total of the column {last}"

    def read(self, line: Line) -> Fact | None:
        text = line.text.strip()
        if text.startswith("#"):
            self._head(line)
            return None
        for prefix, name in _TOTALS.items():
            if text.startswith(prefix):
                total = decimal_of(whole(line).strip()[len(prefix) :].strip(), prefix.strip(": "))
                self._totals.add(name)
                return Fact("progress_total", None, {"name": name, "total": total}, line.source)
        if self._table is None or self._totals:
            raise stray(line)
        cells = self._table.read(whole(line))
        kind = "group_progress" if self._groups else "queue_progress"
        try:
            values = self._group(cells) if self._groups else self._queue(cells, self._table)
        except Unreadable:
            self._table.refuse()
            raise
        return Fact(kind, None, values, line.source)

    def _head(self, line: Line) -> None:
        queues = HeadedTable(line.text, _QUEUES | _SOME_QUEUES)
        groups = HeadedTable(line.text, _GROUPS)
        of_groups = groups.has(*_GROUPS)
        if not of_groups and not queues.has(*_QUEUES):
            raise foreign(line, "consumerProgress")
        self._groups, self._table = of_groups, groups if of_groups else queues
        self._totals.clear()

    def _queue(self, cells: Mapping[str, str], table: HeadedTable) -> "QueueProgressValues":
        client = cells.get("Client IP", _NOBODY)
        values: QueueProgressValues = {
            "topic": cells["Topic"],
            "topic_truncated": is_truncated(cells["Topic"], table.width("Topic")),
            "broker_name": cells["Broker Name"],
            "broker_name_truncated": is_truncated(cells["Broker Name"], _BROKER_WIDTH),
            "queue_id": count_of(cells["QID"], "queue id"),
            "broker_offset": offset_of(cells["Broker Offset"], "broker offset"),
            "consumer_offset": offset_of(cells["Consumer Offset"], "consumer offset"),
            "diff": long_of(cells["Diff"], "diff"),
            "inflight": long_of(cells["Inflight"], "inflight") if "Inflight" in cells else None,
            "last_time_ms": self._last_time(cells.get("LastTime", "")),
            "with_clients": "Client IP" in cells,
            "client_ip": None if client == _NOBODY else client,
        }
        if values["broker_offset"] - values["consumer_offset"] != values["diff"]:
            raise Unreadable(BAD_NUMBER, "the difference is not broker offset - consumer offset")
        return values

    def _last_time(self, text: str) -> int | None:
        return None if text in ("", _NOBODY) else dashed_ms(text, self._time_zone)

    def _group(self, cells: Mapping[str, str]) -> dict[str, object]:
        members, version = cells["Count"], cells["Version"]
        online = count_of(members, "#Count") > 0
        if online != (version != "OFFLINE"):
            raise Unreadable(UNPARSABLE_LINE, f"{members} members and version {version}")
        return {
            "consumer_group": cells["Group"],
            "consumer_group_truncated": self._is_cut(cells["Group"]),
            "members": int(members),
            "version": version if online else None,
            "consume_type": cells["Type"].upper() or None,
            "message_model": cells["Model"].upper() or None,
            "tps": long_of(cells["TPS"], "#TPS"),
            "diff": long_of(cells["Diff Total"], "#Diff Total"),
        }

    def _is_cut(self, group: str) -> bool:
        return self._table is not None and is_truncated(group, self._table.width("Group"))
