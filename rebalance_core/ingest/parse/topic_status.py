"""``mqadmin topicStatus``: the lowest and highest offsets of every queue of a topic."""

from datetime import UTC, tzinfo

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.column_names import is_truncated
from rebalance_core.ingest.parse.command_output import (
    FIRST_ROW,
    Line,
    cut_off,
    foreign,
    marked,
    read_lines,
    read_output,
    stray,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.headed_tables import BROKER, Column, HeadedTable
from rebalance_core.ingest.parse.java_numbers import count_of, decimal_of, offset_of
from rebalance_core.ingest.parse.mqadmin_times import dashed_ms
from rebalance_core.ingest.parse.topic_route import number_column
from rebalance_core.ingest.parse.torn_rows import refused_rows

_STATUS = {
    "Broker Name": Column(BROKER, what="the name of a broker"),
    "QID": number_column(),
    "Min Offset": number_column(),
    "Max Offset": number_column(4),
}


_UPDATED = "Last Updated"


_TIME = Column(
    r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:,[0-9]{3})?)?",
    1,
    fact.BAD_TIME,
    "a time as mqadmin prints it",
)


BROKER_WIDTH = 32


_TPS = "Topic Put TPS: "


def parse_topic_status(text: str, source: str, *, time_zone: tzinfo = UTC) -> list[Fact | Unread]:
    """Read the output of one run.

    Facts:
        queue_offsets: a queue of the queried topic: broker_name, broker_name_truncated (the name
            fills its column and may have been truncated), queue_id, min_offset, max_offset,
            last_updated_ms (None if it was never written to or its last message is gone)
        topic_put_tps: messages per second put into the topic (5.x): tps

    Args:
        text: the output.
        source: the name of its file.
        time_zone: the time zone of the machine that ran mqadmin; the last column is in its local
            time.
    """
    output = read_output(text, source)
    table: HeadedTable | None = None

    def read(line: Line) -> Fact | None:
        nonlocal table
        if line.text.lstrip().startswith("#"):
            headed = HeadedTable(line.text, _STATUS | {_UPDATED: _TIME})
            if not headed.has(*_STATUS):
                raise foreign(line, "topicStatus")
            whole(line)
            table = headed
            return None
        if line.text.startswith(_TPS):
            tps = decimal_of(whole(line)[len(_TPS) :].strip(), "Topic Put TPS")
            return Fact("topic_put_tps", None, {"tps": tps}, line.source)
        if table is None:
            raise stray(line)
        return _queue(line, table, time_zone)

    results = read_lines(output.lines, read)
    if table is not None and not (results or output.others):
        results = [cut_off(source, output.lines, FIRST_ROW)]
    elif table is not None and not table.padded:
        results = refused_rows(results, "queue_offsets", ("broker_name",), output.lines)
    return marked([*(results if table else unheaded(results, output.others)), *output.others])


def _queue(line: Line, table: HeadedTable, time_zone: tzinfo) -> Fact:
    cells = table.read(whole(line))
    updated = cells.get(_UPDATED, "")
    lowest, highest = cells["Min Offset"], cells["Max Offset"]
    if not (updated or lowest == highest or line.text.endswith(" ") or not table.has(_UPDATED)):
        table.refuse()
        raise Unreadable(fact.UNPARSABLE_LINE, "the row may end inside its offsets")
    values = {
        "broker_name": cells["Broker Name"],
        "broker_name_truncated": is_truncated(cells["Broker Name"], BROKER_WIDTH),
        "queue_id": count_of(cells["QID"], "queue id"),
        "min_offset": offset_of(lowest, "min offset"),
        "max_offset": offset_of(highest, "max offset"),
        "last_updated_ms": dashed_ms(updated, time_zone) if updated else None,
    }
    return Fact("queue_offsets", None, values, line.source)
