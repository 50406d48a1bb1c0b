"""``mqadmin rocksDBConfigToJson`` and ``exportMetadataInRocksDB`` (rocketmq.md §15).

The first has two ways. By RPC the brokers write JSON files on their own disks, and standard output
only says so. Local mode (``-p``) opens a store and prints its content: JSON, or a line an entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.command_output import Line, foreign, read_output, whole
from rebalance_core.ingest.parse.stores.consumer_offset_json import parse_consumer_offset_json
from rebalance_core.ingest.parse.stores.subscription_group_json import parse_subscription_group_json
from rebalance_core.ingest.parse.stores.topics_json import parse_topics_json
from rebalance_core.ingest.refusal import WRONG_FILE, Unreadable, unread

KINDS = {
    "rocksdb_export": "brokers were asked by RPC to write their JSON files: done; whole_cluster",
    "rocksdb_unreadable": "local mode could not open the store; what it said: message",
    "rocksdb_printed": "local mode opened the store and printed nothing, as with -e; no fields",
    **command_output.KINDS,
}
"""Beside those of the stores whose content local mode prints."""

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
    r"(?:type: offsetTable)?[0-9]+, Key: (?P<key>[^\s,]+), Value: \{(?P<offsets>[0-9=, ]*)\}"
)


def parse_rocksdb_config(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS`, or of the store whose content was printed.

    Never raises; linear in the text.
    """
    body = text.lstrip("\ufeff \t\r\n")
    if body.startswith(_LOCAL):
        body = body.partition("\n")[2].lstrip()
    if body.startswith("{"):
        return _of_store(body, source)
    output = read_output(text, source)
    lines = [line for line in output.lines if not line.text.startswith(_LOCAL)]
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
    found = {text.find(table): parse for table, parse in _STORES.items() if table in text}
    if not found:
        why = Unreadable(WRONG_FILE, f"it holds none of {', '.join(_STORES)}")
        return [unread(source, text, why)]
    return found[min(found)](text, source)


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
            yield unread(line.source, line.text, refusal)
            return
        offsets = entry["offsets"].replace("=", ":")
        document = f'{{"offsetTable":{{"{entry["key"]}":{{{offsets}}}}}}}'
        yield from parse_consumer_offset_json(document, line.source)


def _export(whole_cluster: bool, done: bool, source: str) -> Fact:
    values = {"done": done, "whole_cluster": whole_cluster}
    return Fact("rocksdb_export", None, values, source)
