"""The properties of a running consumer, as printed by ``consumerStatus``, in typed fields."""

import re
from collections.abc import Mapping

from rebalance_core.ingest.parse.java_numbers import long_of
from rebalance_core.strategies import name_of_class

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


def client_values(properties: Mapping[str, str]) -> dict[str, object]:
    """Read a client's properties; values that its version or type does not print are None.

    Raises:
        Unreadable: a number is invalid.
    """
    texts = {name: _text(name, properties.get(key)) for name, key in _TEXTS.items()}
    longs = {
        name: long_of(properties[key], key) if key in properties else None
        for name, key in _LONGS.items()
    }
    if longs["start_ms"] is not None and longs["start_ms"] < _FIRST_START_MS:
        longs["start_ms"] = None  # its line was cut off
    return {
        **texts,
        **longs,
        "consumer_type": _consumer_type(properties),
        "strategy": _strategy(properties.get("allocateMessageQueueStrategy")),
        "ordered": _flag(properties.get("PROP_CONSUMEORDERLY")),
        "client_rebalance": _flag(properties.get("clientRebalance")),
        "properties": dict(properties),
    }


_FIRST_START_MS = 10**12
"""RocketMQ did not exist earlier."""


_FORMS = {
    "message_model": re.compile("CLUSTERING|BROADCASTING"),
    "consume_from_where": re.compile("CONSUME_FROM_(?:LAST_OFFSET|FIRST_OFFSET|TIMESTAMP|M.+)"),
    "version": re.compile(r"V\d+_\d+_\d+\w*|(?!V\d).*"),
}
"""A value truncated in the middle matches none of these."""


def _text(name: str, value: str | None) -> str | None:
    """Return a property, or None if the client cannot have printed it like this."""
    form = _FORMS.get(name)
    return value if value is None or form is None or form.fullmatch(value.strip()) else None


def _consumer_type(properties: Mapping[str, str]) -> str | None:
    if properties.get("PROP_CONSUME_TYPE") == "CONSUME_PASSIVELY":
        return "PUSH"
    if "defaultLitePullConsumerImpl" in properties:
        return "LITE_PULL"
    return "PULL" if properties.get("PROP_CONSUME_TYPE") == "CONSUME_ACTIVELY" else None


_CLASS = re.compile(r"[A-Za-z_$][\w$]*(?:\.[\w$]*)+")


def _strategy(text: str | None) -> str | None:
    """Return ``AVG`` for ``org.….AllocateMessageQueueAveragely@4659aa62``, without parameters."""
    if text is None:
        return None
    java_class, hashed, _ = text.partition("@")
    if not hashed and _CLASS.fullmatch(java_class):
        return None  # Java prints the object's hash after its class, so the line was cut off
    return name_of_class(java_class) or java_class


def _flag(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get(text or "")
