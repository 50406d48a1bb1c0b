"""The properties of a running consumer, as ``consumerStatus`` prints them, in typed fields.

Every bean field of the consumer is there under its Java name as its ``toString()``
(``MixAll.object2Properties``), and a few more that start with ``PROP_``
(``ConsumerRunningInfo``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_core.ingest.parse.text.java_numbers import long_of
from rebalance_core.strategies import name_of_class

CLIENT_FIELDS = (
    "consumer_group, consumer_type (PUSH, LITE_PULL, PULL), strategy (name as getName() prints it; "
    "its own class when it is no strategy of RocketMQ), message_model, consume_from_where, "
    "consume_timestamp (yyyyMMddHHmmss in the client's local time), ordered, client_rebalance "
    "(False: the broker assigns), version, start_ms, client_ip and instance_name (5.x), "
    "namesrv_addr, pull_threshold_for_queue, pull_threshold_size_for_queue, "
    "pull_threshold_for_topic, pull_threshold_size_for_topic, properties (all, name to text)"
)

_TEXTS = {
    "consumer_group": "consumerGroup",
    "message_model": "messageModel",
    "consume_from_where": "consumeFromWhere",
    "consume_timestamp": "consumeTimestamp",
    "version": "PROP_CLIENT_VERSION",
    "client_ip": "clientIP",
    "instance_name": "instanceName",
    "namesrv_addr": "PROP_NAMESERVER_ADDR",
}
_LONGS = {
    "start_ms": "PROP_CONSUMER_START_TIMESTAMP",
    "pull_threshold_for_queue": "pullThresholdForQueue",
    "pull_threshold_size_for_queue": "pullThresholdSizeForQueue",
    "pull_threshold_for_topic": "pullThresholdForTopic",
    "pull_threshold_size_for_topic": "pullThresholdSizeForTopic",
}


def client_values(properties: Mapping[str, str]) -> dict[str, Any]:
    """The fields of `CLIENT_FIELDS`; None for each that this version or type does not print.

    Raises:
        Unreadable: a number is none.
    """
    texts = {name: properties.get(key) for name, key in _TEXTS.items()}
    longs = {
        name: long_of(properties[key], key) if key in properties else None
        for name, key in _LONGS.items()
    }
    return {
        **texts,
        **longs,
        "consumer_type": _consumer_type(properties),
        "strategy": _strategy(properties.get("allocateMessageQueueStrategy")),
        "ordered": _flag(properties.get("PROP_CONSUMEORDERLY")),
        "client_rebalance": _flag(properties.get("clientRebalance")),
        "properties": dict(properties),
    }


def _consumer_type(properties: Mapping[str, str]) -> str | None:
    if properties.get("PROP_CONSUME_TYPE") == "CONSUME_PASSIVELY":
        return "PUSH"
    if "defaultLitePullConsumerImpl" in properties:
        return "LITE_PULL"
    return "PULL" if properties.get("PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY" else None


def _strategy(text: str | None) -> str | None:
    """``AVG`` for ``org.….AllocateMessageQueueAveragely@4659aa62``; parameters are not shown."""
    if text is None:
        return None
    java_class = text.partition("@")[0]
    return name_of_class(java_class) or java_class


def _flag(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get(text or "")
