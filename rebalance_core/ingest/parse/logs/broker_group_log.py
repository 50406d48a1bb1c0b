"""Lines of broker.log on a group's configuration, subscriptions and commits
(rocketmq.md §10.2, §13).
"""

from __future__ import annotations

from rebalance_core.ingest.fact import Unreadable
from rebalance_core.ingest.parse.logs import pop_log
from rebalance_core.ingest.parse.logs.pop_log import QUERY
from rebalance_core.ingest.parse.text.java_text import (
    _INT_MAX,
    between,
    long_of,
    sub_version_ms,
    whole,
)
from rebalance_core.ingest.parse.text.log_lines import NOTHING, Fields, Template, named

_AUTO = "auto create a subscription group, "
_ADMIN = "create new subscription group, "
_DELETED = "delete subscription group OK, subscription group:"
_CHANGED = "subscription changed, group: "
_ADDED = "subscription changed, add new topic, group: "
_EMPTIED = (
    "unregister consumer ok, no any connection, and remove consumer group, ",
    "SCAN: remove expired channel from ConsumerManager consumerTable, all clear, consumerGroup=",
)
_REFUSED = "the consumer's subscription not exist, group: "
_UNKNOWN = "the consumer's group info not exist, group: "
_CORRECTED = "PULL_OFFSET_MOVED:correction offset. topic="
_BACK = "[NOTIFYME]update consumer offset less than store. clientHost="
_THREW = "], allocate message queue exception. strategy name: "


def _group_config(message: str) -> Fields:
    """4.9 renders ``SubscriptionGroupConfig [groupName=…, …]``, 5.0 ``{groupName='…', …}``, 5.1 and
    newer ``{groupName=…, …}``.
    """
    config = message[message.find("SubscriptionGroupConfig") :]
    pieces = between(config, "SubscriptionGroupConfig", "groupName=", ", ")
    return None if pieces is None else named(("group",), [pieces[1].strip("'")])


def _auto(message: str) -> Fields:
    fields = _group_config(message)
    return None if fields is None else fields | {"by": "auto"}


def _admin(message: str) -> Fields:
    fields = _group_config(message)
    return None if fields is None else fields | {"by": "admin"}


def _changed(message: str) -> Fields:
    dropped = between(message, _CHANGED, " remove topic ", " SubscriptionData [")
    if dropped is not None:
        return named(("group", "topic"), dropped)
    expression = (", topic=", ", subString=", ", tagsSet=", ", subVersion=", ", expressionType=")
    pieces = between(
        message,
        _CHANGED,
        " OLD: SubscriptionData [",
        *expression,
        " NEW: SubscriptionData [",
        *expression,
    )
    if pieces is None or not pieces[0] or not pieces[2]:
        return None
    group, _, topic, old, _, _, _, _, _, new, _, version, *_ = pieces
    fields = {"group": group, "topic": topic, "version": sub_version_ms(version)}
    if fields["version"] is None:
        return None
    return fields if old == new else fields | {"old": old, "new": new}


def _refused(message: str) -> Fields:
    return named(("group", "topic"), between(message, _REFUSED, ", topic:", ""))


def _unknown(message: str) -> Fields:
    return named(("group",), [message.removeprefix(_UNKNOWN)])


def _corrected(message: str) -> Fields:
    """A pull beyond an end of its queue, which the line does not name."""
    pieces = between(
        message, _CORRECTED, ", groupId=", ", requestOffset=", ", newOffset=", ", suggestBrokerId="
    )
    fields = named(("topic", "group"), pieces[:2] if pieces else None)
    if fields is None or pieces is None:
        return None
    try:
        return fields | {
            "asked": long_of(pieces[2], "offset"),
            "given": long_of(pieces[3], "offset"),
        }
    except Unreadable:
        return None


def _back(message: str) -> Fields:
    pieces = between(
        message, _BACK, ", key=", ", queueId=", ", requestOffset=", ", storeOffset=", ""
    )
    if pieces is None:
        return None
    host, key, queue, asked, stored = pieces
    topic, _, group = key.rpartition("@")
    queue_id = whole(queue, _INT_MAX)
    try:
        offsets = {"asked": long_of(asked, "offset"), "stored": long_of(stored, "offset")}
    except Unreadable:
        return None
    if not topic or not group or queue_id is None:
        return None
    return {"group": group, "topic": topic, "queue_id": queue_id, "host": host, **offsets}


def _query(message: str) -> Fields:
    pieces = between(message, QUERY, "] topic[", _THREW, ", ex: ", "")
    if pieces is None:
        return None if _THREW in message else NOTHING
    fields = named(("group", "topic", "strategy"), pieces[:3])
    return None if fields is None else fields | {"message": pieces[3]}


def _added(message: str) -> Fields:
    pieces = between(message, _ADDED, " SubscriptionData [", ", topic=", ", subString=", ", tags")
    return named(("group", "topic", "expression"), [pieces[0], *pieces[2:]] if pieces else None)


def _last_word(message: str) -> Fields:
    return named(("group",), [message.rpartition(" ")[2].rpartition("=")[2]])


TEMPLATES: tuple[Template, ...] = (
    ("subscription_changed", _CHANGED, _changed),
    ("group_topic", _ADDED, _added),
    *(("group_emptied", words, _last_word) for words in _EMPTIED),
    ("no_subscription", _REFUSED, _refused),
    ("group_not_known", _UNKNOWN, _unknown),
    ("offset_corrected", _CORRECTED, _corrected),
    ("offset_went_back", _BACK, _back),
    ("group_created", _AUTO, _auto),
    ("group_created", _ADMIN, _admin),
    ("group_deleted", _DELETED, _group_config),
    ("broker_allocation_failed", QUERY, _query),
    *pop_log.BROKER_TEMPLATES,
)
