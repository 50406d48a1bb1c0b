"""broker.log: offsets that an administrator reset (rocketmq.md §5.2).

Brokers that keep resets themselves (useServerSideResetOffset, 5.2 and newer) print what they set.
"""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.between import between
from rebalance_core.ingest.parse.text.log_line import LogLine
from rebalance_core.ingest.parse.text.rendered import INT_MAX, LONG_MAX, whole
from rebalance_core.ingest.parse.text.templates import Fields, named, not_read

RESET = "Reset offset, topic="
REFUSED = "Update consumer offset is rejected because of previous offset-reset. Group="
_QUEUE = '{"brokerName":"'


def offsets_reset(line: LogLine, text: str, source: str) -> tuple[Fact | Unread, ...]:
    """One fact a queue of ``Reset offset, topic=, group=, queues={"offsetTable":{{queue}:n,…}}``.

    The queues are fastjson's: objects as keys, members in order of their names.
    """
    head = between(line.message, RESET, ", group=", ', queues={"offsetTable":{', "")
    if head is None or not line.message.endswith("}}"):
        return (not_read(text, source, RESET),)
    topic, group, queues = head
    facts: list[Fact | Unread] = []
    for part in queues.split(_QUEUE)[1:]:
        pieces = between(part, "", '","queueId":', ',"topic":"', '"}:', "")
        if pieces is None:
            return (not_read(text, source, RESET),)
        broker, queue, _, rest = pieces
        queue_id = whole(queue, INT_MAX)
        offset = whole(rest.partition(",")[0].rstrip("}"), LONG_MAX)
        if not broker or queue_id is None or offset is None or not group or not topic:
            return (not_read(text, source, RESET),)
        fields = {
            "group": group,
            "topic": topic,
            "broker": broker,
            "queue_id": queue_id,
            "offset": offset,
        }
        facts.append(Fact("offset_reset", line.at_ms, fields, source))
    return tuple(facts)


def commit_refused(message: str) -> Fields:
    """``…Group={}, Topic={}, QueueId={}, Offset={}``: the offset that is stored stays."""
    pieces = between(message, REFUSED, ", Topic=", ", QueueId=", ", Offset=", "")
    queue_id = whole(pieces[2], INT_MAX) if pieces else None
    fields = named(("group", "topic"), pieces[:2] if pieces else None)
    return None if fields is None or queue_id is None else fields | {"queue_id": queue_id}
