"""Lines of a client's log on what failed: members, strategies, heartbeats, pulls
(rocketmq.md §13).
"""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.between import between
from rebalance_core.ingest.parse.text.log_line import ClientClock
from rebalance_core.ingest.parse.text.rendered import message_queues
from rebalance_core.ingest.parse.text.templates import NOTHING, Fields, Template, named, not_read

NO_LIST = ", get consumer id list failed"
PULL_FAILED = ("execute the pull request exception", "An error occurred in pull message process")
"""The line before the refusal of a pull, which stands in the exception's own line."""
REJECTED = "[REJECTREQUEST]"
"""In the exception of a pull that a busy broker, or a slave that is not to be read, refuses."""
BROADCAST = "] can not consume by broadcast way"
_REBALANCE = "doRebalance, "
_NOT_LISTED = "[BUG] ConsumerGroup: "
_EXPIRED = "[BUG]doRebalance, "
_THREW = "allocate message queue exception. strategy name: "
_THREW_4_9 = "AllocateMessageQueueStrategy.allocate Exception. allocateMessageQueueStrategyName="
_HEARTBEAT = "send heart beat to broker["
_HEARTBEAT_V2 = "sendHeartbeatToAllBrokerV2 " + _HEARTBEAT
_FAILED = ("] failed", "] exception, because the broker not up")


def no_member_list(message: str) -> Fields:
    """``doRebalance, {group} {topic}, get consumer id list failed``."""
    pieces = between(message, _REBALANCE, NO_LIST)
    words = pieces[0].split(" ") if pieces else []
    return named(("group", "topic"), words) if len(words) == 2 else None


def _not_listed(message: str) -> Fields:
    pieces = between(message, _NOT_LISTED, " The consumerId: ", " not in cidAll: [", "")
    fields = named(("group", "client_id"), pieces[:2] if pieces else None)
    if fields is None or pieces is None:
        return None
    ids = pieces[2].rpartition("]")[0]
    return fields | {"listed": ids.count(", ") + 1 if ids else 0}


def _pull_expired(message: str) -> Fields:
    """``[BUG]doRebalance, {group}, remove unnecessary mq, {queue}, because pull is pause, …``, in
    5.x ``try remove …``.
    """
    if ", because pull is pause" not in message:
        return NOTHING
    pieces = between(message, _EXPIRED, ", ", ", because pull is pause")
    queues = message_queues(pieces[1]) if pieces else []
    if not pieces or not pieces[0] or len(queues) != 1:
        return None
    topic, broker, queue_id = queues[0]
    return {"group": pieces[0], "topic": topic, "broker_name": broker, "queue_id": queue_id}


def _threw(message: str) -> Fields:
    pieces = between(message, _THREW, ", ex: ", "")
    fields = named(("strategy",), pieces[:1] if pieces else None)
    if fields is None or pieces is None:
        return None
    # an exception that is also the last argument is printed as a stack, and {} stays
    return fields | {"message": pieces[1].removeprefix("{}")}


def _threw_4_9(message: str) -> Fields:
    fields = named(("strategy",), [message.removeprefix(_THREW_4_9).strip()])
    return None if fields is None else fields | {"message": ""}


def _heartbeat(message: str) -> Fields:
    to = message[message.find(_HEARTBEAT) :]
    pieces = next(filter(None, (between(to, _HEARTBEAT, failed) for failed in _FAILED)), None)
    if pieces is None:
        return NOTHING if "]" in to else None
    words = pieces[0].rsplit(" ", 2)
    return named(("broker_name", "address"), words[::2]) if len(words) == 3 else None


def broadcast_refused(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """``…CODE: 16  DESC: the consumer group[{}] can not consume by broadcast way``.

    The line has no time of its own: it has that of the failed pull before it, and states nothing
    where that line is not known, as at the beginning of a split.
    """
    before = text.partition(BROADCAST)[0]
    group = before.rpartition("consumer group[")[2]
    if not group or group == before:
        return (not_read(text, source, BROADCAST),)
    failed, clock.failed_pull = clock.failed_pull, None
    if failed is None:
        return ()
    values = {"group": group}
    for topic, broker_name, _ in message_queues(failed.message):
        values |= {"topic": topic, "broker_name": broker_name}
    if failed.pid is not None:
        values["pid"] = failed.pid
    return (Fact("broadcast_refused", failed.at_ms, values, source),)


def pull_refused(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """``…CODE: 2  DESC: [REJECTREQUEST]system busy, … BROKER: {address}``.

    The time is that of the failed pull before it. Lines without the address state nothing: 4.9
    prints none.
    """
    address = text.rpartition(" BROKER: ")[2].strip()
    failed, clock.failed_pull = clock.failed_pull, None
    if failed is None or ":" not in address or " " in address:
        return ()
    return (Fact("pull_refused", failed.at_ms, {"address": address}, source),)


TEMPLATES: tuple[Template, ...] = (
    ("not_in_member_list", _NOT_LISTED, _not_listed),
    ("pull_expired", _EXPIRED, _pull_expired),
    ("allocation_failed", _THREW, _threw),
    ("allocation_failed", _THREW_4_9, _threw_4_9),
    ("heartbeat_failed", _HEARTBEAT, _heartbeat),
    ("heartbeat_failed", _HEARTBEAT_V2, _heartbeat),
)
WORDS = (*(words for _, words, _ in TEMPLATES), NO_LIST, *PULL_FAILED, BROADCAST, REJECTED)
