"""``mqadmin consumerProgress``: offsets per queue of one group, or one line per group.

Printed by ``ConsumerProgressSubCommand``; with ``-s true`` it shows who holds each queue.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

from rebalance_core.ingest.fact import BAD_NUMBER, UNPARSABLE_LINE, Fact, Unread, Unreadable
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.command_output import (
    Line,
    dashed_ms,
    filled,
    foreign,
    is_truncated,
    read_lines,
    read_output,
    token_of,
    whole,
)
from rebalance_core.ingest.parse.text.java_text import PrintfRow, count_of, decimal_of, long_of

KINDS = {
    "queue_progress": (
        "a queue of the group asked for: topic, topic_truncated, broker_name, "
        "broker_name_truncated (the name fills its column and may have been truncated), queue_id, "
        "broker_offset, consumer_offset (0 also when nothing is committed), diff, inflight (5.x), "
        "last_time_ms (None: N/A), with_clients (run with -s true), client_ip (the holder's client "
        "id up to its first @; None: no holder)"
    ),
    "progress_total": "an end line of one group: name (consume_tps, diff, inflight), total",
    "group_progress": (
        "a group, when none was asked for: consumer_group, consumer_group_truncated, members "
        "(entries at one broker; 0 is offline), version (lowest of the members), consume_type "
        "(PUSH, PULL), message_model, tps, diff"
    ),
    **command_output.KINDS,
}

# After the topic: 64 wide since 4.9.3, 32 before; the header is padded like the rows.
_QUEUE = "  %-32s  %-4s  %-20s  %-20s  "
_QUEUE_ROWS = {
    # (with clients, with in-flight): the end of the format string of the rows
    (False, False): "%-20s  %s",
    (True, False): "%-20s %-20s  %s",
    (False, True): "%-20s %-20s %s",
    (True, True): "%-20s %-20s %-20s %s",
}
_GROUP = "  %-6s  %-24s %-5s  %-14s  %-7s  %s"
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
    """The facts of `KINDS` from the output of one run, 4.9 or 5.x, with or without ``-g``, ``-s``.

    Args:
        text: the output.
        source: the name of its file.
        time_zone: of the machine that ran mqadmin; the last column is in its local time.
    """
    output = read_output(text, source)
    return [*read_lines(output.lines, _Table(time_zone).read), *output.others]


class _Table:
    """The rows after a header are read as that header says."""

    def __init__(self, time_zone: tzinfo) -> None:
        self._time_zone = time_zone
        self._row: PrintfRow | None = None
        self._shape = (False, False)
        self._groups = False
        self._width = 0

    def read(self, line: Line) -> Fact | None:
        text = line.text
        if text.startswith("#Topic") and "#Consumer Offset" in text:
            self._shape = ("#Client IP" in text, "#Inflight" in text)
            self._head(text, "#Broker Name", _QUEUE + _QUEUE_ROWS[self._shape])
            return None
        if text.startswith("#Group") and "#Count" in text:
            self._head(text, "#Count", _GROUP)
            return None
        for prefix, name in _TOTALS.items():
            if text.startswith(prefix):
                total = decimal_of(whole(line)[len(prefix) :].strip(), prefix.strip(": "))
                return Fact("progress_total", None, {"name": name, "total": total}, line.source)
        if text.startswith("#") or self._row is None:
            raise foreign(line, "consumerProgress")
        columns = self._row.read(whole(line))
        kind = "group_progress" if self._groups else "queue_progress"
        values = self._group(columns) if self._groups else self._queue(columns)
        return Fact(kind, None, values, line.source)

    def _head(self, text: str, second: str, rest: str) -> None:
        self._width = max(0, text.find(second) - len("  "))
        self._row = PrintfRow(f"%-{self._width}s{rest}")
        self._groups = second == "#Count"

    def _queue(self, columns: list[str]) -> dict[str, Any]:
        with_clients, with_inflight = self._shape
        topic, broker_name, queue_id, broker_offset, consumer_offset, *rest = columns
        client = filled(rest.pop(0), "client") if with_clients else _NOBODY
        last_time = rest.pop()
        values: dict[str, Any] = {
            "topic": token_of(topic, "topic"),
            "topic_truncated": is_truncated(topic, self._width),
            "broker_name": filled(broker_name, "broker name"),
            "broker_name_truncated": is_truncated(broker_name, _BROKER_WIDTH),
            "queue_id": count_of(queue_id, "queue id"),
            "broker_offset": long_of(broker_offset, "broker offset"),
            "consumer_offset": long_of(consumer_offset, "consumer offset"),
            "diff": long_of(rest[0], "diff"),
            "inflight": long_of(rest[1], "inflight") if with_inflight else None,
            "last_time_ms": self._last_time(last_time),
            "with_clients": with_clients,
            "client_ip": None if client == _NOBODY else client,
        }
        if values["broker_offset"] - values["consumer_offset"] != values["diff"]:
            raise Unreadable(BAD_NUMBER, "the difference is not broker offset - consumer offset")
        return values

    def _last_time(self, text: str) -> int | None:
        # Empty where upstream could not format it; it says N/A for 0.
        return None if text in ("", _NOBODY) else dashed_ms(text, self._time_zone)

    def _group(self, columns: list[str]) -> dict[str, Any]:
        group, members, version, consume_type, model, tps, diff = columns
        online = count_of(members, "#Count") > 0
        if online != (version != "OFFLINE"):
            raise Unreadable(UNPARSABLE_LINE, f"{members} members and version {version}")
        return {
            "consumer_group": token_of(group, "group"),
            "consumer_group_truncated": is_truncated(group, self._width),
            "members": int(members),
            "version": token_of(version, "version") if online else None,
            "consume_type": consume_type or None,
            "message_model": model or None,
            "tps": long_of(tps, "#TPS"),
            "diff": long_of(diff, "#Diff Total"),
        }
