"""``mqadmin topicStatus``: the lowest and highest offset of every queue of a topic.

Printed by ``TopicStatusSubCommand``; queues 0 to the larger of read and write queue number.
"""

from __future__ import annotations

from datetime import UTC, tzinfo

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.admin_times import dashed_ms
from rebalance_core.ingest.parse.mqadmin.command_output import (
    Line,
    foreign,
    read_lines,
    read_output,
    whole,
)
from rebalance_core.ingest.parse.text.java_numbers import count_of, decimal_of, long_of
from rebalance_core.ingest.parse.text.printf_rows import PrintfRow
from rebalance_core.ingest.parse.text.table_names import filled, is_truncated

KINDS = {
    "queue_offsets": (
        "a queue of the topic asked for: broker_name, broker_name_truncated (the name fills its "
        "column and may have been truncated), queue_id, min_offset, max_offset, last_updated_ms "
        "(None: never written, or its last message is gone)"
    ),
    "topic_put_tps": "messages per second put into the topic (5.x): tps",
    **command_output.KINDS,
}

_ROW = PrintfRow("%-32s  %-4s  %-20s  %-20s    %s")
_BROKER_WIDTH = 32
_TPS = "Topic Put TPS: "


def parse_topic_status(text: str, source: str, *, time_zone: tzinfo = UTC) -> list[Fact | Unread]:
    """The facts of `KINDS` from the output of one run.

    Args:
        text: the output.
        source: the name of its file.
        time_zone: of the machine that ran mqadmin; the last column is in its local time.
    """
    output = read_output(text, source)
    headed = False

    def read(line: Line) -> Fact | None:
        nonlocal headed
        if line.text.startswith("#Broker Name") and "#Min Offset" in line.text:
            headed = True
            return None
        if line.text.startswith(_TPS):
            tps = decimal_of(whole(line)[len(_TPS) :].strip(), "Topic Put TPS")
            return Fact("topic_put_tps", None, {"tps": tps}, line.source)
        if not headed or line.text.startswith("#"):
            raise foreign(line, "topicStatus")
        return _queue(line, time_zone)

    return [*read_lines(output.lines, read), *output.others]


def _queue(line: Line, time_zone: tzinfo) -> Fact:
    broker_name, queue_id, min_offset, max_offset, updated = _ROW.read(whole(line))
    values = {
        "broker_name": filled(broker_name, "broker name"),
        "broker_name_truncated": is_truncated(broker_name, _BROKER_WIDTH),
        "queue_id": count_of(queue_id, "queue id"),
        "min_offset": long_of(min_offset, "min offset"),
        "max_offset": long_of(max_offset, "max offset"),
        "last_updated_ms": dashed_ms(updated, time_zone) if updated else None,
    }
    return Fact("queue_offsets", None, values, line.source)
