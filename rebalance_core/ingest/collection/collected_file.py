"""What a file of a collection is, by its path alone (layout: docs/ingest.md)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from rebalance_core.ingest.parse.stores.store_listing import FORM_OF_FOLDER

NAMESRV_LOG, BROKER_LOG, LOCK_LOG, CLIENT_LOG = (
    "namesrv_log",
    "broker_log",
    "lock_log",
    "client_log",
)
PROXY_LOG = "proxy_log"
LOGS = (NAMESRV_LOG, BROKER_LOG, LOCK_LOG, CLIENT_LOG, PROXY_LOG)
TOPICS, GROUPS, OFFSETS = "topics_json", "subscription_group_json", "consumer_offset_json"
MODES, ORDER_INFO = "message_request_mode_json", "consumer_order_info_json"
LOCAL_OFFSETS, ADMIN, GIVEN_GROUPS = "local_offset_json", "mqadmin", "consumer_groups"
PROXY_CONFIG = "proxy_config"
PROXIES = "proxy/"
"""Where proxies' files lie; the place of a proxy's file or dump is this and the proxy's name."""
STORE_LISTING, ROCKSDB_SIGN = "store_listing", "rocksdb_sign"

_STORES = {
    "topics.json": TOPICS,
    "subscriptionGroup.json": GROUPS,
    "consumerOffset.json": OFFSETS,
    "messageRequestMode.json": MODES,
    "consumerOrderInfo.json": ORDER_INFO,
}
CONFIG_STORES = (TOPICS, GROUPS, OFFSETS)
"""What a broker may keep in RocksDB instead."""
_BROKER_LOGS = {"broker": BROKER_LOG, "lock": LOCK_LOG, "filter": LOCK_LOG}
_PROXY_LOGS = ("broker", "proxy")
_ROTATED = re.compile(
    r"^(?P<stem>[A-Za-z_]+?)(?:[._-]?\d[\d._-]*)?\.log(?:[._-]\d[\d._-]*)?(?:\.gz)?$"
)
"""RocketMQ's own: ``broker.3.log.gz``, ``rocketmq_client-3.log.gz``, ``rocketmq_client.log.3``;
logrotate's: ``broker.log-20261121.gz``."""
_CONFIG = re.compile(r"^config(?:-(?P<ms>\d{10,16}))?$")
_ADMIN = re.compile(r"^(?P<ms>\d{10,16})-(?P<command>[A-Za-z]+)(?:-(?P<arguments>.*))?$")

STORE_COMMANDS = ("rocksDBConfigToJson", "exportMetadataInRocksDB", "exported")
"""Commands that read a broker's own store; ``exported``: a file that ``-e`` of the first wrote."""
EXPORT_METADATA = "exportMetadata"

# Written by this project's recorder beside what operators have, and its answers: never read.
NOT_INPUT_FOLDERS = ("tables", "truth")
NOT_INPUT_FILES = ("cluster.json", "events.jsonl", "collection.toml")
NOT_INPUT_SUFFIXES = (".csv", ".md")
OLDER = ".bak"  # the generation before, which RocketMQ reads where the store itself is gone
# Other logs and stores of RocketMQ that state nothing of ours.
_OTHER_LOGS = re.compile(
    r"^(?:remoting|store|storeerror|transaction|watermark|stats|commercial|protection|pop|tools|"
    r"broker_traffic|broker_default|auth|proxy|namesrv_traffic|tiered_store|rocksdb|coldctr|"
    r"dledger|rocketmq-client)[\w.-]*\.log"  # the last: of the gRPC client
)
_OTHER_STORES = re.compile(r"^[A-Za-z]+\.json$")
_LISTING = re.compile(r"^store-files(?:-(?P<ms>\d{10,16}))?(?:-.*)?\.txt$")
_ROCKSDB = (*FORM_OF_FOLDER, "consumerOffsets", "subscriptionGroups")
"""Folders below ``config/`` that are RocksDBs."""


@dataclass(frozen=True)
class CollectedFile:
    """One file to read.

    Attributes:
        name: path in the collection, with ``/``; the ``file`` of every source.
        kind: one of the constants of this module.
        place: the broker, client or name server whose file it is; empty for others.
        size: bytes on disk.
        written_ms: when a document says what it says; None: not known.
        arguments: ``mqadmin``: the command and what follows it; local offsets: client id and group.
        newest: True for the last store of its kind that was collected of its broker.
        turn: logs: how many files of its kind and place begin before it.
    """

    name: str
    kind: str
    place: str = ""
    size: int = 0
    written_ms: int | None = None
    arguments: tuple[str, ...] = ()
    newest: bool = False
    turn: int = 0

    @property
    def is_log(self) -> bool:
        """True for a file that is read line by line."""
        return self.kind in LOGS

    @property
    def gzipped(self) -> bool:
        """True for a rotated log that was compressed."""
        return self.name.endswith(".gz")


def is_answer(name: str) -> bool:
    """True for what ingest must not look at: a recording's truth and tables, and derived files."""
    path = PurePosixPath(name)
    return (
        path.parts[0] in NOT_INPUT_FOLDERS
        or (len(path.parts) == 1 and path.name in NOT_INPUT_FILES)
        or path.suffix in NOT_INPUT_SUFFIXES
    )


def is_other(name: str) -> bool:
    """True for files of RocketMQ that are collected along and state nothing of ours."""
    path = PurePosixPath(name.removesuffix(OLDER))
    under_config = any(_CONFIG.match(part) for part in path.parts[:-1])
    return bool(_OTHER_LOGS.match(path.name)) or (
        under_config and (bool(_OTHER_STORES.match(path.name)) or _is_rocksdb(path.parts))
    )


def _is_rocksdb(parts: tuple[str, ...]) -> bool:
    return len(parts) > 3 and parts[-2] in _ROCKSDB and bool(_CONFIG.match(parts[-3]))


def identify(name: str, size: int = 0) -> CollectedFile | None:
    """The file that stands at this path of a collection, None if it is none of ours."""
    parts = PurePosixPath(name.removesuffix(OLDER)).parts
    if name == "consumer_groups.jsonl":
        return CollectedFile(name, GIVEN_GROUPS, size=size)
    if len(parts) < 2:
        return None
    if parts[0] == "namesrv":
        return _namesrv(name, parts, size)
    if parts[0] == "brokers" and len(parts) > 2:
        return _broker(name, parts, size)
    if parts[0] == "clients" and len(parts) > 2:
        return _client(name, parts, size)
    if name.startswith(PROXIES) and len(parts) > 2:
        return _proxy(name, parts, size)
    return _admin(name, parts, size) if parts[0] == "mqadmin" else None


def _namesrv(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    rotated = _ROTATED.match(parts[-1])
    if rotated is None or rotated["stem"] != "namesrv":
        return None
    # namesrv/namesrv.log, namesrv/<name>/namesrv.log, each with otherdays/ beside it
    folders = [part for part in parts[1:-1] if part not in ("otherdays", "other_days")]
    number = re.match(r"namesrv-\d{1,3}(?=\.log)", parts[-1])
    place = folders[0] if folders else number[0] if number else "namesrv"
    return CollectedFile(name, NAMESRV_LOG, place, size)


def _broker(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    rotated = _ROTATED.match(parts[-1])
    if rotated is not None and rotated["stem"] in _BROKER_LOGS:
        return CollectedFile(name, _BROKER_LOGS[rotated["stem"]], parts[1], size)
    listing = _LISTING.match(parts[-1])
    if listing is not None and len(parts) == 3:
        written = int(listing["ms"]) if listing["ms"] else None
        return CollectedFile(name, STORE_LISTING, parts[1], size, written)
    if parts[-1] == "CURRENT" and parts[-2] in FORM_OF_FOLDER and _is_rocksdb(parts):
        config = _CONFIG.match(parts[-3])
        written = int(config["ms"]) if config and config["ms"] else None
        return CollectedFile(name, ROCKSDB_SIGN, parts[1], size, written)
    config = _CONFIG.match(parts[-2])
    if config is not None and parts[-1] in _STORES:
        written = int(config["ms"]) if config["ms"] else None
        return CollectedFile(name, _STORES[parts[-1]], parts[1], size, written)
    return None


def _client(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    rotated = _ROTATED.match(parts[-1])
    if rotated is not None and rotated["stem"] == "rocketmq_client":
        return CollectedFile(name, CLIENT_LOG, parts[1], size)
    if parts[-1] == "offsets.json" and len(parts) >= 5:
        return CollectedFile(name, LOCAL_OFFSETS, parts[1], size, arguments=(parts[-3], parts[-2]))
    return None


def _proxy(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    place = PROXIES + parts[1]
    if parts[-1] == "rmq-proxy.json":
        return CollectedFile(name, PROXY_CONFIG, place, size)
    rotated = _ROTATED.match(parts[-1])
    if rotated is not None and rotated["stem"] in _PROXY_LOGS:
        return CollectedFile(name, PROXY_LOG, place, size)
    return None


def _admin(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    stem = re.sub(r"\.(?:txt|json|log|out)$", "", parts[1])
    command = _ADMIN.match(stem)
    if command is None or len(parts) > 3:
        return None
    arguments: tuple[str, ...] = (command["command"], command["arguments"] or "")
    if len(parts) == 3:
        arguments = (*arguments, re.sub(r"\.txt$", "", parts[2]))
    return CollectedFile(name, ADMIN, "", size, int(command["ms"]), arguments)


def asked_at(file: CollectedFile, proxies: Collection[str]) -> CollectedFile:
    """The file; of a dump whose name ends in ``-<proxy>`` with that proxy as its place.

    Args:
        file: of any kind.
        proxies: names.
    """
    if file.kind != ADMIN:
        return file
    command, argument, *client = file.arguments
    ends = [proxy for proxy in proxies if f"-{argument}".endswith("-" + proxy)]
    if not ends:
        return file
    proxy = max(ends, key=len)
    asked = argument.removesuffix(proxy).removesuffix("-")
    return replace(file, place=PROXIES + proxy, arguments=(command, asked, *client))


def with_newest(files: list[CollectedFile]) -> list[CollectedFile]:
    """The files, the newest store of each kind and broker marked; one without time is the last.

    So is the newest output of each command that reads a store.
    """
    newest: dict[tuple[str, ...], CollectedFile] = {}
    for file in files:
        if file.kind in _STORES.values():
            key: tuple[str, ...] = (file.place, file.kind)
        elif file.arguments and file.arguments[0] in (*STORE_COMMANDS, EXPORT_METADATA):
            key = (file.kind, *file.arguments)
        else:
            continue
        known = newest.setdefault(key, file)
        if _age(known) < _age(file):
            newest[key] = file
    names = {file.name for file in newest.values()}
    return [replace(file, newest=True) if file.name in names else file for file in files]


def _age(file: CollectedFile) -> tuple[bool, int]:
    return file.written_ms is None, file.written_ms or 0
