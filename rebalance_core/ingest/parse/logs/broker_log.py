"""broker.log: who registered, left or was dropped; topics; starts of the broker; offsets that
were reset.
"""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.channels import channel_info
from rebalance_core.ingest.parse.logs import broker_group_log
from rebalance_core.ingest.parse.text.java_text import (
    _INT_MAX,
    _LONG_MAX,
    PERM_MAX,
    between,
    consumer_data,
    topic_config,
    whole,
)
from rebalance_core.ingest.parse.text.log_lines import (
    NOT_OURS,
    NOTHING,
    Clock,
    Fields,
    LogLine,
    Template,
    headless,
    named,
    not_read,
    read_message,
    server_line,
)

# broker.log: offsets that an administrator reset (rocketmq.md §5.2).
#
# Brokers that keep resets themselves (useServerSideResetOffset, 5.2 and newer) print what they
# set.

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
        queue_id = whole(queue, _INT_MAX)
        offset = whole(rest.partition(",")[0].rstrip("}"), _LONG_MAX)
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
    queue_id = whole(pieces[2], _INT_MAX) if pieces else None
    fields = named(("group", "topic"), pieces[:2] if pieces else None)
    return None if fields is None or queue_id is None else fields | {"queue_id": queue_id}


# broker.log: who registered, left or was dropped; topics; starts of the broker (rocketmq.md
# §10.2).

BROKER_ID_MAX = 2**31 - 1
_EXPIRED = "SCAN: remove expired channel from ConsumerManager consumerTable. channel="
_CLOSED = "NETTY EVENT: remove not active channel["
_CLOSED_END = "] from ConsumerGroupInfo groupChannelTable, consumer group: "
_CHANGED = "registerConsumer info changed"
_FULL = "event queue size["


def _connected(message: str) -> Fields:
    pieces = between(message, "new consumer connected, group: ", " ", " ", " channel: ", "")
    if pieces is None:
        return None
    head = named(("group", "consume_type", "message_model"), pieces[:3])
    channel = channel_info(pieces[3])
    return None if head is None or channel is None else head | channel


def _data(message: str) -> Fields:
    """4.9 prints the address last, 5.x first."""
    before, _, rendered = message.partition("ConsumerData [")
    data = consumer_data("ConsumerData [" + rendered)
    pieces = between(
        before, before.partition("SDK address=")[0] + "SDK address=", ", consumerData="
    )
    address = pieces[0] if pieces else message.rpartition("] ")[2]
    if data is None or ":" not in address:
        return None
    return data | {"channel": address.rpartition("/")[2]}


def _left(message: str) -> Fields:
    return _of_group(between(message, "unregister a consumer[", "] from consumerGroupInfo ", ""))


def _closed(message: str) -> Fields:
    channel, _, group = message.removeprefix(_CLOSED).rpartition(_CLOSED_END)
    return _of_group([group, channel])


def _of_group(pieces: list[str] | None) -> Fields:
    channel = channel_info(pieces[1]) if pieces else None
    return (
        None
        if pieces is None or channel is None or not pieces[0]
        else {"group": pieces[0]} | channel
    )


def _expired(message: str) -> Fields:
    fields = named(("channel", "group"), between(message, _EXPIRED, ", consumerGroup=", ""))
    if fields is not None:
        fields["channel"] = fields["channel"].rpartition("/")[2]
    return fields


def _dropped(message: str) -> Fields:
    """``event queue size[10001] enough, so drop this event NettyEvent [type=CLOSE, …]``."""
    return named(
        ("size", "type"),
        between(message, _FULL, "] enough, so drop this event NettyEvent [type=", ", "),
    )


def _created(message: str) -> Fields:
    return topic_config(message[message.find("TopicConfig [") :])


def _updated(message: str) -> Fields:
    pieces = between(message, "update topic config, old:[", "] new:[", "")
    old, new = (None, None) if pieces is None else map(topic_config, pieces)
    return None if old is None or new is None else new | {"old": old}


def _deleted(message: str) -> Fields:
    name = message.partition("delete topic config OK, topic: ")[2]
    pieces = between(name, "TopicConfig [topicName=", ", ")
    topic = pieces[0] if pieces else name.strip("[] ")
    return {"topic": topic} if topic else None


def _permission(message: str) -> Fields:
    perm = message.removeprefix("brokerPermission=")
    number = whole(perm, PERM_MAX)
    return None if number is None else {"perm": number}


def _booted(message: str) -> Fields:
    return named(("broker", "address"), between(message, "The broker[", ", ", "] boot success"))


def _property(message: str) -> Fields:
    name, _, value = message.partition("=")
    return {"name": name, "value": value} if value else NOTHING


def _follows(message: str) -> Fields:
    """``Update slave … from master, ADDR``, or ``Sync… Exception, ADDR``, of SlaveSynchronize."""
    address = message.rpartition(", ")[2]
    return {"address": address} if ":" in address else NOTHING


def _min_broker(message: str) -> Fields:
    """``Min broker changed, old: 0-…, new 1-ADDR`` (BrokerController.onMinBrokerChange, 5.x)."""
    pieces = between(message, "Min broker changed, old: ", ", new ", "-", "")
    if pieces is None:
        return None
    _, broker_id, address = pieces
    number = whole(broker_id, BROKER_ID_MAX)
    return None if number is None else {"broker_id": number, "address": address}


def _role(message: str) -> Fields:
    """``Change broker [id:2][address:ADDR] to SLAVE, …`` of ReplicasManager; 5.0 prints ``Change
    broker ADDR to slave, …`` and ``… to master success, …``.
    """
    who, _, what = message.removeprefix(_ROLE).partition(" to ")
    address = who.partition("][address:")[2].removesuffix("]") or who
    role = what.partition(", ")[0].removesuffix(" success")
    if ":" not in address or role not in _ROLES:
        return None
    return {"address": address, "slave": _ROLES[role]}


_ROLE = "Change broker "
_ROLES = {
    "SYNC_MASTER": False, "ASYNC_MASTER": False, "SLAVE": True, "master": False, "slave": True,
}  # fmt: skip
"""What a controller makes of a broker: a slave?"""
_PROPERTIES = (
    "brokerName=", "brokerId=", "brokerRole=", "slaveReadEnable=", "enableSlaveActingMaster=",
)  # fmt: skip
"""What a broker prints at its start stands in other lines too: without a time it is not ours."""

TEMPLATES: tuple[Template, ...] = (
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
    ("broker_booted", "The broker[", _booted),
    *(("broker_property", name, _property) for name in _PROPERTIES),
    ("broker_follows", "Update slave ", _follows),
    ("broker_copy_failed", "SyncTopicConfig Exception, ", _follows),
    ("broker_copy_failed", "SyncConsumerOffset Exception, ", _follows),
    ("broker_copy_failed", "SyncDelayOffset Exception, ", _follows),
    ("broker_copy_failed", "SyncSubscriptionGroup Exception, ", _follows),
    ("broker_role", _ROLE, _role),
    ("min_broker", "Min broker changed, old: ", _min_broker),
    ("channel_event_dropped", _FULL, _dropped),
    ("broker_stopping", "Shutdown hook was invoked, ", lambda message: {}),
    ("commit_refused", REFUSED, commit_refused),
    *broker_group_log.TEMPLATES,
)
WORDS = (*(words for _, words, _ in TEMPLATES), RESET)
_HEADLESS_WORDS = tuple(words for words in WORDS if words not in _PROPERTIES)


def parse_broker_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """What one line of broker.log states; most lines state nothing of ours."""
    line = server_line(text, clock)
    if line is None:
        return headless(_HEADLESS_WORDS, text, source)
    if not line.message.startswith(WORDS):
        return NOT_OURS
    if line.message.startswith(RESET):
        return offsets_reset(line, text, source)
    return read_message(TEMPLATES, line, text, source)
