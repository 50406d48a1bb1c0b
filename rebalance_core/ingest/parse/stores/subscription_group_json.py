"""``subscriptionGroup.json`` of a broker: the consumer groups it accepts and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.stores.json_store import JsonStore, Stated
from rebalance_core.ingest.parse.text.java_numbers import long_of
from rebalance_core.ingest.parse.text.json_tables import (
    DATA_VERSION,
    DATA_VERSION_KIND,
    Entry,
    name_of,
    object_of,
)

KINDS = {
    "subscription_group": (
        "a consumer group on the broker whose file this is: consumer_group, consume_enable, "
        "consume_broadcast_enable, consume_from_min_enable, consume_message_orderly (5.x), "
        "notify_consumer_ids_changed_enable (4.9.1), retry_queue_nums, retry_max_times, broker_id, "
        "which_broker_when_consume_slowly, consume_timeout_minute (5.x), group_sys_flag (5.x), "
        "subscriptions (5.x: pairs of topic and expression), attributes (5.x); None where the "
        "version that wrote the file has no such field"
    ),
    "forbidden": "a group may not read a topic (5.x): consumer_group, topic, flags (bits, not 0)",
    DATA_VERSION_KIND: DATA_VERSION,
}


def parse_subscription_group_json(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the text of the store of `SubscriptionGroupManager`.

    Never raises; linear in the text.
    """
    return _STORE.parse(text, source)


def group_values(key: str, value: Any) -> Mapping[str, Any]:
    """The fields of one ``SubscriptionGroupConfig``.

    Raises:
        Unreadable: a field holds something else than its type.
    """
    group = name_of(key, "the key of a group")
    entry = Entry(value, f"group {group}")
    return {
        "consumer_group": group,
        "consume_enable": entry.flag("consumeEnable"),
        "consume_broadcast_enable": entry.flag("consumeBroadcastEnable"),
        "consume_from_min_enable": entry.flag("consumeFromMinEnable"),
        "consume_message_orderly": entry.flag("consumeMessageOrderly"),
        "notify_consumer_ids_changed_enable": entry.flag("notifyConsumerIdsChangedEnable"),
        "retry_queue_nums": entry.count("retryQueueNums"),
        "retry_max_times": entry.optional_long("retryMaxTimes"),
        "broker_id": entry.optional_long("brokerId"),
        "which_broker_when_consume_slowly": entry.optional_long("whichBrokerWhenConsumeSlowly"),
        "consume_timeout_minute": entry.optional_long("consumeTimeoutMinute"),
        "group_sys_flag": entry.optional_long("groupSysFlag"),
        "subscriptions": tuple(map(_subscription, entry.items("subscriptionDataSet"))),
        "attributes": dict(entry.mapping("attributes")),
    }


def _subscription(value: Any) -> tuple[str, str | None]:
    entry = Entry(value, "an entry of subscriptionDataSet")
    return name_of(entry.text("topic"), "topic of subscriptionDataSet"), entry.text("expression")


def _group(key: str, value: Any) -> Stated:
    yield "subscription_group", group_values(key, value)


def _forbidden(key: str, value: Any) -> Stated:
    group = name_of(key, "the key of forbiddenTable")
    for topic, flags in object_of(value, f"forbiddenTable of {group}").items():
        bits = long_of(flags, f"forbiddenTable of {group}, {topic}")
        if bits:
            yield "forbidden", {"consumer_group": group, "topic": topic, "flags": bits}


_STORE = JsonStore("subscriptionGroupTable", _group, {"forbiddenTable": _forbidden})
