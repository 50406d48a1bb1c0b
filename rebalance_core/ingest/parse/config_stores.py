"""The way a broker keeps its configurations, from a listing of its store or the files of a RocksDB
in it.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.java_numbers import INT_MAX, long_of
from rebalance_core.ingest.parse.json_tables import (
    Entry,
    Results,
    name_of,
    object_of,
    read_document,
)
from rebalance_core.ingest.parse.offset_stores import KindAndFields, Stated, each_part, read_store
from rebalance_core.model.request_mode import DEFAULT_SHARE_QUEUE_NUM, PULL_MODE, RequestMode
from rebalance_core.model.times import SECOND_MS

# How a broker keeps its topics, consumer groups and offsets (rocketmq.md §15).
JSON, ROCKSDB, SINGLE_ROCKSDB, ROCKSDB_V2 = "JSON", "ROCKSDB", "SINGLE_ROCKSDB", "ROCKSDB_V2"
"""Three JSON files that are always current; three RocksDBs below config/
(storeType=defaultRocksDB); a single RocksDB, config/metadata (useSingleRocksDBForAllConfigs=true);
and config/rdb (configManagerVersion=v2), which no command exports.
"""

FORM_OF_FOLDER = {"topics": ROCKSDB, "metadata": SINGLE_ROCKSDB, "rdb": ROCKSDB_V2}
"""The form by the folder below ``config/`` whose file CURRENT indicates it."""


# A listing of a broker's store, in which the files of a RocksDB show how it keeps its
# configuration.  RocketMQ writes no such listing, but ``find`` or collect.sh does: one line per
# file with its path and, if known, its size and the time at which it was written (epoch seconds).
DIGITS = 20
"""Longer numbers are neither sizes nor times."""

_SIGN = re.compile(rf"(?:.*/)?config(?:-\d+)?/(?P<folder>{'|'.join(FORM_OF_FOLDER)})/CURRENT")
_STORE = re.compile(r"(?:.*/)?config/(?P<name>(?:topics|subscriptionGroup|consumerOffset)\.json)")


def parse_store_listing(text: str, source: str) -> list[Fact | Unread]:
    """Read a listing.

    Paths may begin at the store or anywhere above it. Never raises; linear in the text.

    Facts:
        store_form: how the broker keeps its configurations: forms (JSON, or the RocksDB forms whose
            files are present), modified (pairs of a JSON store and the time at which it was
            written, epoch ms, if the listing has it)
    """
    paths = list(_paths(text))
    if not any("config/" in path for path, _ in paths):
        why = Unreadable(fact.WRONG_FILE, "it lists no file below config/")
        return [fact.unread(source, text, why)]
    signs = {match["folder"] for path, _ in paths if (match := _SIGN.fullmatch(path))}
    modified = {
        match["name"]: seconds * SECOND_MS
        for path, seconds in paths
        if (match := _STORE.fullmatch(path)) and seconds is not None
    }
    return [_form(signs, modified, source)]


def parse_rocksdb_sign(text: str, source: str) -> list[Fact | Unread]:
    """Read the same from a copied file CURRENT, whose path shows the form rather than its text."""
    return [_form({PurePosixPath(source).parts[-2]} & FORM_OF_FOLDER.keys(), {}, source)]


def _form(signs: set[str], modified: dict[str, int], source: str) -> Fact:
    forms = [form for folder, form in FORM_OF_FOLDER.items() if folder in signs]
    values = {"forms": forms or [JSON], "modified": sorted(modified.items())}
    return Fact("store_form", None, values, source)


def _paths(text: str) -> Iterator[tuple[str, int | None]]:
    for line in text.splitlines():
        words = line.strip().rsplit(" ", 2)
        numbers = [word.isdecimal() and len(word) < DIGITS for word in words[1:]]
        if numbers == [True, True]:
            yield words[0], int(words[2])
        elif numbers[-1:] == [True]:
            yield " ".join(words[:-1]), None
        elif words[0]:
            yield " ".join(words), None


def parse_subscription_group_json(text: str, source: str) -> list[Fact | Unread]:
    """Read the store of ``SubscriptionGroupManager``.

    Never raises; linear in the text.

    Facts:
        subscription_group: a consumer group on the broker to which the file belongs:
            consumer_group, consume_enable, consume_broadcast_enable, consume_from_min_enable,
            consume_message_orderly (5.x), notify_consumer_ids_changed_enable (4.9.1),
            retry_queue_nums, retry_max_times, broker_id, which_broker_when_consume_slowly,
            consume_timeout_minute (5.x), group_sys_flag (5.x), subscriptions (5.x: pairs of topic
            and expression), attributes (5.x); None if the version that wrote the file has no such
            field
        forbidden: a topic that a group may not read (5.x): consumer_group, topic, flags (bits, not
            0)
    """
    return read_store(text, source, "subscriptionGroupTable", _group, forbiddenTable=_forbidden)


def group_values(key: str, value: Any) -> Mapping[str, object]:
    """Read a ``SubscriptionGroupConfig``.

    Raises:
        Unreadable: a field's value is of the wrong type.
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


def parse_topics_json(text: str, source: str) -> list[Fact | Unread]:
    """Read the store of ``TopicConfigManager``.

    Never raises; linear in the text.

    Facts:
        topic_config: a topic on the broker to which the file belongs: topic, read_queue_nums,
            write_queue_nums, perm (bits: 4 read, 2 write, 1 inherit), order, topic_sys_flag,
            attributes (5.x; otherwise empty)
    """
    return read_store(text, source, "topicConfigTable", _topic)


def topic_values(key: str, value: Any) -> Mapping[str, object]:
    """Read a ``TopicConfig``.

    Raises:
        Unreadable: a field is missing or not a number.
    """
    topic = name_of(key, "the key of a topic")
    entry = Entry(value, f"topic {topic}")
    return {
        "topic": topic,
        "read_queue_nums": entry.count("readQueueNums"),
        "write_queue_nums": entry.count("writeQueueNums"),
        "perm": entry.count("perm"),
        "order": bool(entry.flag("order")),
        "topic_sys_flag": entry.count("topicSysFlag", 0),
        "attributes": dict(entry.mapping("attributes")),
    }


def _topic(key: str, value: Any) -> Stated:
    yield "topic_config", topic_values(key, value)


def parse_message_request_mode_json(text: str, source: str) -> list[Fact | Unread]:
    """Read the store of ``MessageRequestModeManager``.

    Never raises; linear in the text.

    Facts:
        request_mode: the mode in which a group receives a topic's messages from the broker to which
            the file belongs: consumer_group, topic, mode (like the detail of REQUEST_MODE); a
            switch back is written as PULL, and a mode that was never set has no entry and is PULL
    """
    return read_store(text, source, "messageRequestModeMap", _modes, versioned=False)


def _modes(key: str, value: Any) -> Stated:
    topic = name_of(key, "a topic of messageRequestModeMap")

    def of_group(name: Any, body: Any) -> KindAndFields:
        group = name_of(name, f"a group of {topic}")
        mode = _mode(Entry(body, f"{group} of {topic}"), f"{group} of {topic}")
        return "request_mode", {"consumer_group": group, "topic": topic, "mode": str(mode)}

    return each_part(object_of(value, f"groups of {topic}"), of_group)


def _mode(entry: Entry, what: str) -> RequestMode:
    mode = entry.text("mode")
    if mode == "PULL":
        return PULL_MODE
    if mode != "POP":
        raise Unreadable(fact.BAD_ENTRY, f"mode of {what} is {fact.shown(mode)}, not PULL or POP")
    number = entry.optional_long("popShareQueueNum")
    share = DEFAULT_SHARE_QUEUE_NUM if number is None else number
    if not -INT_MAX - 1 <= share <= INT_MAX:
        raise Unreadable(
            fact.BAD_NUMBER, f"popShareQueueNum of {what} is {share}, not a 32-bit number"
        )
    return RequestMode(share)


MODES = ("CLUSTER", "LOCAL")
"""ProxyMode; RocketMQ ignores letter case."""


def parse_proxy_config_json(text: str, source: str) -> list[Fact | Unread]:
    """Read the mode; there is no fact if the file leaves it at the default.

    Never raises.

    Facts:
        proxy_mode: mode: CLUSTER (a separate process) or LOCAL (inside a broker)
    """
    return read_document(text, source, _facts)


def _facts(document: Mapping[str, object], source: str) -> Results:
    mode = Entry(document, "the document").text("proxyMode")
    if mode is None:
        return
    if mode.upper() not in MODES:
        raise Unreadable(fact.BAD_ENTRY, f"proxyMode is {fact.shown(mode)}, not CLUSTER or LOCAL")
    yield Fact("proxy_mode", None, {"mode": mode.upper()}, source)
