"""JSON exports from mqadmin: ``exportMetadata``, ``exportMetrics``, ``exportConfigs`` and RocksDB
configurations.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.command_output import Line, foreign, read_lines, read_output, whole
from rebalance_core.ingest.parse.config_stores import (
    group_values,
    parse_subscription_group_json,
    parse_topics_json,
    topic_values,
)
from rebalance_core.ingest.parse.json_tables import (
    Entry,
    Results,
    data_version,
    entries,
    name_of,
    read_document,
)
from rebalance_core.ingest.parse.offset_stores import parse_consumer_offset_json

# ``mqadmin rocksDBConfigToJson`` and ``exportMetadataInRocksDB`` (rocketmq.md §15).
#
# The first has two modes. By RPC the brokers write JSON files to their own disks, and standard
# output only announces it. Local mode (``-p``) opens a store and prints its content: JSON, or one
# line per entry.
_RPC = "Use [rpc mode] call "
_LOCAL = "Use [local mode] "
_DONE = "broker export done."
_FAILURES = ("Failed to initialize ConfigRocksDBStorage", "RocksDB load error, path=")
_STORES = {
    '"topicConfigTable"': parse_topics_json,
    '"subscriptionGroupTable"': parse_subscription_group_json,
    '"offsetTable"': parse_consumer_offset_json,
}
_ENTRY = re.compile(
    r"(?:type: offsetTable)?[0-9]+, Key: (?P<key>[^\s,]+), Value: \{(?P<offsets>[0-9=, -]*)\}"
)


def parse_rocksdb_config(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of a run; the printed content of a store is read like that store.

    Never raises; linear in the text.

    Facts:
        rocksdb_export: brokers were requested by RPC to write their JSON files: done; whole_cluster
        rocksdb_unreadable: local mode could not open the store: message
        rocksdb_printed: local mode opened the store and printed nothing, as with -e; no fields
    """
    body = text.lstrip("\ufeff \t\r\n")
    if body.startswith(_LOCAL):
        body = body.partition("\n")[2].lstrip()
    if body.startswith("{"):
        return _of_store(body, source)
    output = read_output(text, source)
    lines = [line for line in output.readable if not line.text.startswith(_LOCAL)]
    if not lines and output.lines:
        return [Fact("rocksdb_printed", None, {}, source), *output.others]
    rpc = [line for line in lines if line.text.startswith(_RPC)]
    done = any(line.text.strip() == _DONE for line in lines)
    results: list[Fact | Unread] = []
    for line in lines:
        results += _line(line, done)
    if done and not rpc:
        results.append(_export(False, done, source))
    return [*results, *output.others]


def _of_store(text: str, source: str) -> list[Fact | Unread]:
    parsers = {text.find(table): parse for table, parse in _STORES.items() if table in text}
    if not parsers:
        why = Unreadable(fact.WRONG_FILE, f"it holds none of {', '.join(_STORES)}")
        return [fact.unread(source, text, why)]
    return parsers[min(parsers)](text, source)


def _line(line: Line, done: bool) -> Iterator[Fact | Unread]:
    text = line.text.strip()
    if text == _DONE:
        return
    if text.startswith(_RPC):
        yield _export("all brokers in cluster" in text, done, line.source)
    elif text.startswith(_FAILURES):
        yield Fact("rocksdb_unreadable", None, {"message": text}, line.source)
    else:
        try:
            entry = _ENTRY.fullmatch(whole(line).strip())
            if entry is None:
                raise foreign(line, "rocksDBConfigToJson")
        except Unreadable as refusal:
            yield fact.unread(line.source, line.text, refusal)
            return
        offsets = entry["offsets"].replace("=", ":")
        document = f'{{"offsetTable":{{"{entry["key"]}":{{{offsets}}}}}}}'
        yield from parse_consumer_offset_json(document, line.source)


def _export(whole_cluster: bool, done: bool, source: str) -> Fact:
    values = {"done": done, "whole_cluster": whole_cluster}
    return Fact("rocksdb_export", None, values, source)


# ``mqadmin exportMetadata``, ``exportMetrics`` and ``exportConfigs``: their JSON files.
#
# Written by ``ExportMetadataCommand``, ``ExportMetricsCommand`` and ``ExportConfigsCommand``;
# standard output only names the file.
def parse_export(text: str, source: str) -> list[Fact | Unread]:
    """Read a file, or the standard output, of any of the three.

    Facts:
        exported_topic: like topic_config in topics.json (topic, read_queue_nums, write_queue_nums,
            perm, order, topic_sys_flag, attributes), plus summed: True if it covers a whole cluster
            (-c), in which case queue numbers are sums over its brokers and the rest comes from one
            of them
        exported_subscription_group: like subscription_group in subscriptionGroup.json
            (consumer_group and its settings: consume_enable, consume_broadcast_enable,
            consume_from_min_enable, consume_message_orderly, notify_consumer_ids_changed_enable,
            retry_queue_nums, retry_max_times, broker_id, which_broker_when_consume_slowly,
            consume_timeout_minute, group_sys_flag, subscriptions, attributes), plus summed as above
            (retry_queue_nums)
        broker_metrics: a broker in exportMetrics: broker_name, admin_version (mqadmin's version,
            which upstream calls rocketmqVersion), clients (the language and version of each
            consumer), quota (as printed)
        cluster_metrics: the sums over the brokers in exportMetrics: total_data (as printed)
        broker_config: non-default settings in exportConfigs: broker_name, properties
        cluster_scale: exportConfigs: name_servers, master_brokers, slave_brokers
        exported_to: standard output of the command: path of the file that it wrote
    """
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return read_document(text, source, _parse)
    output = read_output(text, source)
    return [*read_lines(output.lines, _exported_to), *output.others]


def _exported_to(line: Line) -> Fact:
    text = line.text.strip()
    if not (text.startswith("export ") and text.endswith(" success")):
        raise foreign(line, "an export")
    path = text.removeprefix("export ").removesuffix(" success")
    return Fact("exported_to", None, {"path": path}, line.source)


def _parse(document: Mapping[str, object], source: str) -> Results:
    parsers = {
        "topicConfigTable": _metadata,
        "subscriptionGroupTable": _metadata,
        "evaluateReport": _metrics,
        "brokerConfigs": _configs,
    }
    for table, parse in parsers.items():
        if table in document:
            yield from parse(Entry(document, "the export"), source)
            yield from data_version(document, source)
            return
    raise Unreadable(fact.WRONG_FILE, f"{fact.shown(document)} holds none of {', '.join(parsers)}")


def _metadata(export: Entry, source: str) -> Results:
    # Only the file of a whole cluster contains the time at which it was written, the at_ms of its
    # facts.
    written_ms = export.optional_long("exportTime")
    summed = {"summed": written_ms is not None}

    def topic(key: str, value: Any) -> Iterator[Fact]:
        yield Fact("exported_topic", written_ms, {**topic_values(key, value), **summed}, source)

    def group(key: str, value: Any) -> Iterator[Fact]:
        values = {**group_values(key, value), **summed}
        yield Fact("exported_subscription_group", written_ms, values, source)

    yield from entries(export.mapping("topicConfigTable"), source, topic)
    yield from entries(export.mapping("subscriptionGroupTable"), source, group)


def _metrics(export: Entry, source: str) -> Results:
    def broker(key: str, value: Any) -> Iterator[Fact]:
        report = Entry(value, f"broker {key}")
        version = Entry(report.mapping("runtimeVersion"), "runtimeVersion")
        values = {
            "broker_name": name_of(key, "the name of a broker"),
            "admin_version": version.text("rocketmqVersion"),
            "clients": tuple(sorted(map(_client, version.items("clientInfo")))),
            "quota": dict(report.mapping("runtimeQuota")),
        }
        yield Fact("broker_metrics", None, values, source)

    yield from entries(export.mapping("evaluateReport"), source, broker)
    values = {"total_data": dict(export.mapping("totalData"))}
    yield Fact("cluster_metrics", None, values, source)


def _client(value: Any) -> tuple[str, str]:
    """Return the language and version: ``JAVA%V5_3_3`` is Java, 5.3.3."""
    language, separator, version = value.partition("%") if isinstance(value, str) else ("", "", "")
    if not separator:
        raise Unreadable(
            fact.BAD_ENTRY, f"clientInfo holds {fact.shown(value)}, not <language>%<version>"
        )
    return language, version


def _configs(export: Entry, source: str) -> Results:
    def broker(key: str, value: Any) -> Iterator[Fact]:
        properties = dict(Entry({"properties": value}, f"broker {key}").mapping("properties"))
        values = {"broker_name": name_of(key, "the name of a broker"), "properties": properties}
        yield Fact("broker_config", None, values, source)

    yield from entries(export.mapping("brokerConfigs"), source, broker)
    scale = Entry(export.mapping("clusterScale"), "clusterScale")
    values = {
        "name_servers": scale.optional_count("namesrvSize"),
        "master_brokers": scale.optional_count("masterBrokerSize"),
        "slave_brokers": scale.optional_count("slaveBrokerSize"),
    }
    yield Fact("cluster_scale", None, values, source)
