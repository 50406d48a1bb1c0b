"""Lines in broker.log about a group's configuration, subscriptions and commits (rocketmq.md §10.2,
rocketmq.md §13).
"""

import re

from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse import java_numbers, java_text, lock_and_pop_logs, log_lines
from rebalance_core.ingest.parse.channels import channel_info
from rebalance_core.ingest.parse.lock_and_pop_logs import QUERY
from rebalance_core.ingest.parse.log_lines import (
    Clock,
    LineFields,
    LogLine,
    Template,
    Templates,
    marked,
)

_AUTO = "auto create a subscription group, "
_ADMIN = "create new subscription group, "
_UPDATED = "update subscription group config, old: "
_DELETED = "delete subscription group OK, subscription group:"
_SUBSCRIPTION_CHANGED = "subscription changed, group: "
_ADDED = "subscription changed, add new topic, group: "
_EMPTIED = (
    "unregister consumer ok, no any connection, and remove consumer group, ",
    "SCAN: remove expired channel from ConsumerManager consumerTable, all clear, consumerGroup=",
)
_REFUSED = "the consumer's subscription not exist, group: "
_UNKNOWN = "the consumer's group info not exist, group: "
_NOT_LATEST = "The broker's subscription is not latest, group: "
_CORRECTED = "PULL_OFFSET_MOVED:correction offset. topic="
_NOT_CORRECTED = "PULL_OFFSET_MOVED:none correction. topic="
_BACK = "[NOTIFYME]update consumer offset less than store. clientHost="
_THREW = "], allocate message queue exception. strategy name: "


def _group_config(message: str) -> LineFields:
    """4.9 renders ``SubscriptionGroupConfig [groupName=…, …]``, 5.0 ``{groupName='…', …}``, 5.1 and
    newer ``{groupName=…, …}``.
    """
    config = message[message.find("SubscriptionGroupConfig") :]
    pieces = java_text.between(config, "SubscriptionGroupConfig", "groupName=", ", ")
    return None if pieces is None else log_lines.named(("group",), [pieces[1].strip("'")])


def _auto(message: str) -> LineFields:
    return log_lines.with_fields(_group_config(message), by="auto")


def _admin(message: str) -> LineFields:
    return log_lines.with_fields(_group_config(message), by="admin")


def _group_updated(message: str) -> LineFields:
    """``old: SubscriptionGroupConfig{…} new: …`` from updateSubGroup: the differences, and the
    notice setting before and after.
    """
    old, _, new = message.removeprefix(_UPDATED).partition(" new: ")
    fields = _group_config(new)
    if fields is None:
        return None
    switch = "notifyConsumerIdsChangedEnable="
    was, now = (config.partition(switch)[2].startswith("true") for config in (old, new))
    fields = {**fields, "changes": _changes(old, new)}
    # 4.9 and some later versions do not print this setting
    return {**fields, "was": was, "now": now} if switch in old and switch in new else fields


def _changes(old: str, new: str) -> str:
    """Read ``name: old → new`` for each plain field that differs, in the order of the line."""
    before, after = (dict(reversed(_PLAIN.findall(config))) for config in (old, new))
    names = dict.fromkeys(name for name, _ in _PLAIN.findall(new))
    changed = [name for name in names if name in before and before[name] != after[name]]
    return ", ".join(f"{name}: {before[name]} → {after[name]}" for name in changed)


_PLAIN = re.compile(r"\b(\w+)=(true|false|-?\d{1,19})(?=[,\]}])")
"""A field with a plain value; nested fields, such as a retry policy, come later."""


def _changed(message: str) -> LineFields:
    dropped = java_text.between(
        message, _SUBSCRIPTION_CHANGED, " remove topic ", " SubscriptionData ["
    )
    if dropped is not None:
        return log_lines.named(("group", "topic"), dropped)
    expression = (", topic=", ", subString=", ", tagsSet=", ", subVersion=", ", expressionType=")
    pieces = java_text.between(
        message,
        _SUBSCRIPTION_CHANGED,
        " OLD: SubscriptionData [",
        *expression,
        " NEW: SubscriptionData [",
        *expression,
    )
    if pieces is None or not pieces[0] or not pieces[2]:
        return None
    group, _, topic, old, _, _, _, _, _, new, _, version, *_ = pieces
    version_ms = java_text.sub_version_ms(version)
    if version_ms is None:
        return None
    change = {} if old == new else {"old": old, "new": new}
    return {"group": group, "topic": topic, "version": version_ms, **change}


def _not_latest(message: str) -> LineFields:
    """Read ``…group: {} {}``, where the group's expression follows its name."""
    return log_lines.named(("group",), [message.removeprefix(_NOT_LATEST).partition(" ")[0]])


def _corrected(message: str) -> LineFields:
    """Read a pull beyond either end of its queue, which the line does not name."""
    pieces = java_text.between(
        message, _CORRECTED, ", groupId=", ", requestOffset=", ", newOffset=", ", suggestBrokerId="
    )
    fields = log_lines.named(("topic", "group"), pieces)
    if fields is None or pieces is None:
        return None
    try:
        return fields | {
            "asked": java_numbers.long_of(pieces[2], "offset"),
            "given": java_numbers.long_of(pieces[3], "offset"),
        }
    except Unreadable:
        return None


def _not_corrected(message: str) -> LineFields:
    """Read a pull beyond either end of a slave's queue; `sent_to` is the id of the broker to
    ask.
    """
    marks = (_NOT_CORRECTED, ", groupId=", ", requestOffset=", ", suggestBrokerId=", "")
    pieces = java_text.between(message, *marks)
    fields = log_lines.named(("topic", "group"), pieces)
    if fields is None or pieces is None:
        return None
    asked = java_text.whole(pieces[2], java_numbers.LONG_MAX)
    sent_to = java_text.whole(pieces[3], java_numbers.LONG_MAX)
    return (
        None if asked is None or sent_to is None else {**fields, "asked": asked, "sent_to": sent_to}
    )


def _back(message: str) -> LineFields:
    pieces = java_text.between(
        message, _BACK, ", key=", ", queueId=", ", requestOffset=", ", storeOffset=", ""
    )
    if pieces is None:
        return None
    host, key, queue, asked, stored = pieces
    topic, _, group = key.rpartition("@")
    queue_id = java_text.whole(queue, java_numbers.INT_MAX)
    try:
        offsets = {
            "asked": java_numbers.long_of(asked, "offset"),
            "stored": java_numbers.long_of(stored, "offset"),
        }
    except Unreadable:
        return None
    if not topic or not group or queue_id is None:
        return None
    return {"group": group, "topic": topic, "queue_id": queue_id, "host": host, **offsets}


def _query(message: str) -> LineFields:
    pieces = java_text.between(message, QUERY, "] topic[", _THREW, ", ex: ", "")
    if pieces is None:
        return None if _THREW in message else log_lines.NOTHING
    fields = log_lines.named(("group", "topic", "strategy"), pieces[:3])
    return None if fields is None else fields | {"message": pieces[3]}


def _added(message: str) -> LineFields:
    pieces = java_text.between(
        message, _ADDED, " SubscriptionData [", ", topic=", ", subString=", ", tags"
    )
    if pieces is None:
        return None
    group, _, topic, expression = pieces
    if not (group and topic and expression):
        return None
    return {"group": group, "topic": topic, "expression": expression}


def _last_word(message: str) -> LineFields:
    return log_lines.named(("group",), [message.rpartition(" ")[2].rpartition("=")[2]])


_RESET_ASKED = "[reset-offset] reset offset started by "

GROUP_TEMPLATES: tuple[Template, ...] = (
    ("subscription_changed", _SUBSCRIPTION_CHANGED, _changed),
    ("group_topic", _ADDED, _added),
    *(("group_emptied", words, _last_word) for words in _EMPTIED),
    ("no_subscription", _REFUSED, marked(("group", "topic"), _REFUSED, ", topic:", "")),
    ("group_not_known", _UNKNOWN, marked(("group",), _UNKNOWN, "")),
    ("subscription_not_latest", _NOT_LATEST, _not_latest),
    ("offset_corrected", _CORRECTED, _corrected),
    ("offset_not_corrected", _NOT_CORRECTED, _not_corrected),
    ("offset_went_back", _BACK, _back),
    ("group_created", _AUTO, _auto),
    ("group_created", _ADMIN, _admin),
    ("group_updated", _UPDATED, _group_updated),
    ("group_deleted", _DELETED, _group_config),
    ("broker_allocation_failed", QUERY, _query),
    (
        "reset_asked",
        _RESET_ASKED,
        marked(("by", "topic", "group"), _RESET_ASKED, ". topic=", ", group=", ", timestamp=", ""),
    ),
    *lock_and_pop_logs.BROKER_TEMPLATES,
)


# broker.log: offsets that an administrator reset (rocketmq.md §5.2).
#
# Brokers that perform resets themselves (useServerSideResetOffset, 5.2 and later) print the offsets
# that they set.
RESET = "Reset offset, topic="
REFUSED = "Update consumer offset is rejected because of previous offset-reset. Group="
_QUEUE = '{"brokerName":"'


def offsets_reset(line: LogLine, text: str, source: str) -> tuple[Fact | Unread, ...]:
    """Return one fact per queue of ``Reset offset, topic=, group=,
    queues={"offsetTable":{{queue}:n,…}}``.

    fastjson writes the queues as object keys, with their members ordered by name.
    """
    head = java_text.between(line.message, RESET, ", group=", ', queues={"offsetTable":{', "")
    if head is None or not line.message.endswith("}}"):
        return (log_lines.not_read(text, source, RESET),)
    topic, group, queues = head
    facts: list[Fact | Unread] = []
    for part in queues.split(_QUEUE)[1:]:
        pieces = java_text.between(part, "", '","queueId":', ',"topic":"', '"}:', "")
        if pieces is None:
            return (log_lines.not_read(text, source, RESET),)
        broker, queue, _, rest = pieces
        queue_id = java_text.whole(queue, java_numbers.INT_MAX)
        offset = java_text.whole(rest.partition(",")[0].rstrip("}"), java_numbers.LONG_MAX)
        if not broker or queue_id is None or offset is None or not group or not topic:
            return (log_lines.not_read(text, source, RESET),)
        fields = {
            "group": group,
            "topic": topic,
            "broker": broker,
            "queue_id": queue_id,
            "offset": offset,
        }
        facts.append(Fact("offset_reset", line.at_ms, fields, source))
    return tuple(facts)


def commit_refused(message: str) -> LineFields:
    """Read ``…Group={}, Topic={}, QueueId={}, Offset={}``: the stored offset is kept."""
    pieces = java_text.between(message, REFUSED, ", Topic=", ", QueueId=", ", Offset=", "")
    queue_id = java_text.whole(pieces[2], java_numbers.INT_MAX) if pieces else None
    fields = log_lines.named(("group", "topic"), pieces)
    return None if fields is None or queue_id is None else fields | {"queue_id": queue_id}


# broker.log: clients that registered, left or were dropped; topics; and starts of the broker
# (rocketmq.md §10.2).
BROKER_ID_MAX = 2**31 - 1
_EXPIRED = "SCAN: remove expired channel from ConsumerManager consumerTable. channel="
_CLOSED = "NETTY EVENT: remove not active channel["
_CLOSED_END = "] from ConsumerGroupInfo groupChannelTable, consumer group: "
_CHANGED = "registerConsumer info changed"
_BOOTED = marked(("broker", "address"), "The broker[", ", ", "] boot success")
_FULL = "event queue size["
"""``event queue size[10001] enough, so drop this event NettyEvent [type=CLOSE, …]``"""
_DROPPED = marked(("size", "type"), _FULL, "] enough, so drop this event NettyEvent [type=", ", ")


def _connected(message: str) -> LineFields:
    pieces = java_text.between(
        message, "new consumer connected, group: ", " ", " ", " channel: ", ""
    )
    if pieces is None:
        return None
    group, consume_type, model, rendered = pieces
    channel = channel_info(rendered)
    if channel is None or not (group and consume_type and model):
        return None
    return {"group": group, "consume_type": consume_type, "message_model": model, **channel}


def _data(message: str) -> LineFields:
    """Read the data; 4.9 prints the address last, 5.x first."""
    before, _, rendered = message.partition("ConsumerData [")
    data = java_text.consumer_data("ConsumerData [" + rendered)
    pieces = java_text.between(
        before, before.partition("SDK address=")[0] + "SDK address=", ", consumerData="
    )
    address = pieces[0] if pieces else message.rpartition("] ")[2]
    if data is None or ":" not in address:
        return None
    return data | {"channel": address.rpartition("/")[2]}


def _left(message: str) -> LineFields:
    return _of_group(
        java_text.between(message, "unregister a consumer[", "] from consumerGroupInfo ", "")
    )


def _closed(message: str) -> LineFields:
    channel, _, group = message.removeprefix(_CLOSED).rpartition(_CLOSED_END)
    return _of_group([group, channel])


def _of_group(pieces: list[str] | None) -> LineFields:
    channel = channel_info(pieces[1]) if pieces else None
    return (
        None
        if pieces is None or channel is None or not pieces[0]
        else {"group": pieces[0], **channel}
    )


def _expired(message: str) -> LineFields:
    fields = log_lines.named(
        ("channel", "group"), java_text.between(message, _EXPIRED, ", consumerGroup=", "")
    )
    if fields is not None:
        fields["channel"] = fields["channel"].rpartition("/")[2]
    return fields


def _created(message: str) -> LineFields:
    return java_text.topic_config(message[message.find("TopicConfig [") :])


def _updated(message: str) -> LineFields:
    pieces = java_text.between(message, "update topic config, old:[", "] new:[", "")
    old, new = (None, None) if pieces is None else map(java_text.topic_config, pieces)
    return None if old is None or new is None else new | {"old": old}


def _deleted(message: str) -> LineFields:
    name = message.partition("delete topic config OK, topic: ")[2]
    pieces = java_text.between(name, "TopicConfig [topicName=", ", ")
    topic = pieces[0] if pieces else name.strip("[] ")
    return {"topic": topic} if topic else None


def _permission(message: str) -> LineFields:
    perm = message.removeprefix("brokerPermission=")
    number = java_text.whole(perm, java_text.PERM_MAX)
    return None if number is None else {"perm": number}


def _property(message: str) -> LineFields:
    """Read ``name=value``; in other programs' lines, more follows the value."""
    name, _, value = message.partition("=")
    return {"name": name, "value": value} if value.split() == [value] else log_lines.NOTHING


def _replaced(message: str) -> LineFields:
    """Read ``Replace, key: {}, value: {} -> {}``."""
    pieces = java_text.between(message, _REPLACED, ", value: ", " -> ", "")
    return None if pieces is None else log_lines.named(("name", "value"), pieces[::2])


def _retention(message: str) -> LineFields:
    """Read hours: ``fileReservedTime={}``, ``Replace, key: fileReservedTime, value: {} -> {}``."""
    hours = java_text.whole(re.split("=| -> ", message)[-1], java_numbers.INT_MAX)
    return None if hours is None else {"hours": hours}


def _follows(message: str) -> LineFields:
    """Read ``Update slave … from master, ADDR`` or ``Sync… Exception, ADDR`` (SlaveSynchronize)."""
    address = message.rpartition(", ")[2]
    return {"address": address} if ":" in address else log_lines.NOTHING


def _min_broker(message: str) -> LineFields:
    """Read ``Min broker changed, old: 0-…, new 1-ADDR`` (onMinBrokerChange of 5.x)."""
    pieces = java_text.between(message, "Min broker changed, old: ", ", new ", "-", "")
    if pieces is None:
        return None
    _, broker_id, address = pieces
    number = java_text.whole(broker_id, BROKER_ID_MAX)
    return None if number is None else {"broker_id": number, "address": address}


def _role(message: str) -> LineFields:
    """``Change broker [id:2][address:ADDR] to SLAVE, …`` from ReplicasManager; 5.0 prints ``Change
    broker ADDR to slave, …`` and ``… to master success, …``.
    """
    who, _, what = message.removeprefix(_ROLE).partition(" to ")
    address = who.partition("][address:")[2].removesuffix("]") or who
    role = what.partition(", ")[0].removesuffix(" success")
    if ":" not in address or role not in _ROLES:
        return None
    return {"address": address, "slave": _ROLES[role]}


def _elected(message: str) -> LineFields:
    """``Begin to change to master brokerName={}``, ``… to slave brokerName={} brokerId={}`` from
    DLedger's role handler (4.5 and later).
    """
    role, _, rest = message.removeprefix(_ELECTED).partition(" brokerName=")
    name = rest.partition(" brokerId=")[0]
    return {"broker": name, "slave": _ROLES[role]} if name and role in _ROLES else None


_ROLE = "Change broker "
_ELECTED = "Begin to change to "
_ROLES = {
    "SYNC_MASTER": False, "ASYNC_MASTER": False, "SLAVE": True, "master": False, "slave": True,
}  # fmt: skip
"""Whether a controller or a DLedger election makes a broker a slave."""
_PROPERTIES = (
    "brokerClusterName=", "brokerName=", "brokerId=", "brokerRole=", "slaveReadEnable=",
    "enableSlaveActingMaster=",
)  # fmt: skip
"""What a broker prints when it starts also appears in other lines; a line without a time is not
RocketMQ's.
"""
_SWITCHES = ("notifyConsumerIdsChangedEnable", "realTimeNotifyConsumerChange")
MEMORY_RATIO = "accessMessageInMemoryMaxRatio"
"""The percentage of its memory that a broker before 5.1 assumes to be occupied by messages."""
_OFF_AT_START = (*(f"{name}=false" for name in _SWITCHES), f"{MEMORY_RATIO}=0")
RETENTION = "fileReservedTime"
"""The hours for which a broker keeps messages, unless its disk fills up."""
_REPLACED = "Replace, key: "
"""``Configuration.mergeIfExist``: a setting changes at run time."""

TEMPLATES = Templates(
    (
        ("consumer_connected", "new consumer connected, group: ", _connected),
        ("consumer_data", "ClientManageProcessor: " + _CHANGED, _data),
        ("consumer_data", "heartBeatV2 " + _CHANGED, _data),
        ("consumer_data", _CHANGED, _data),
        ("consumer_left", "unregister a consumer[", _left),
        ("consumer_closed", _CLOSED, _closed),
        ("consumer_expired", _EXPIRED, _expired),
        ("topic_created", "create new topic ", _created),
        ("topic_created", "Create new topic by default topic:[", _created),
        ("topic_updated", "update topic config, old:[", _updated),
        ("topic_loaded", "load exist local topic, ", _created),
        ("topic_deleted", "delete topic config OK, topic: ", _deleted),
        ("broker_starting", "brokerPermission=", _permission),
        ("broker_booted", "The broker[", _BOOTED),
        *(("broker_property", name, _property) for name in (*_PROPERTIES, *_OFF_AT_START)),
        *(("broker_property", f"{_REPLACED}{name}, value: ", _replaced) for name in _SWITCHES),
        ("message_retention", RETENTION + "=", _retention),
        ("message_retention", f"{_REPLACED}{RETENTION}, value: ", _retention),
        ("broker_follows", "Update slave ", _follows),
        ("broker_copy_failed", "SyncTopicConfig Exception, ", _follows),
        ("broker_copy_failed", "SyncConsumerOffset Exception, ", _follows),
        ("broker_copy_failed", "SyncDelayOffset Exception, ", _follows),
        ("broker_copy_failed", "SyncSubscriptionGroup Exception, ", _follows),
        ("broker_role", _ROLE, _role),
        *(
            ("broker_role", f"{_ELECTED}{role} brokerName=", _elected)
            for role in ("master", "slave")
        ),
        ("min_broker", "Min broker changed, old: ", _min_broker),
        ("channel_event_dropped", _FULL, _DROPPED),
        ("broker_stopping", "Shutdown hook was invoked, ", lambda message: {}),
        ("commit_refused", REFUSED, commit_refused),
        *GROUP_TEMPLATES,
    )
)
WORDS = (*TEMPLATES.words, RESET)
_AT_START = (*_PROPERTIES, *_OFF_AT_START, f"{RETENTION}=")
_HEADLESS_WORDS = tuple(words for words in WORDS if words not in _AT_START)


def parse_broker_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """Read one line of broker.log; most lines state nothing relevant here."""
    line = log_lines.server_line(text, clock)
    if line is None:
        return log_lines.headless(_HEADLESS_WORDS, text, source)
    if line.message.startswith(RESET):
        return offsets_reset(line, text, source)
    return TEMPLATES.read(line, text, source)
