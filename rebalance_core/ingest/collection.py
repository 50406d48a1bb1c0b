"""A folder of files collected by operators: the kind of each file by its path, log rotation, and
refusals.
"""

import errno
import filecmp
import os
import re
import stat
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import dropwhile, islice
from os import PathLike, fspath
from pathlib import Path, PurePosixPath

from rebalance_core.contracts.paths import local_path, refuse_no_folder, without_user
from rebalance_core.ingest.collection_settings import (
    SETTINGS_NAME,
    CollectionSettings,
    NotCollected,
    no_settings,
    settings_if_written,
)
from rebalance_core.ingest.copied_names import (
    client_id_of,
    may_be,
    names_nothing,
    original_part,
    unescaped,
)
from rebalance_core.ingest.fact import Unread, Unreadable
from rebalance_core.ingest.fact_subjects import answers
from rebalance_core.ingest.group_names import OtherName
from rebalance_core.ingest.parse.client_log import WORDS as CLIENT_WORDS
from rebalance_core.ingest.parse.cluster_list import parse_cluster_list
from rebalance_core.ingest.parse.config_stores import FORM_OF_FOLDER
from rebalance_core.ingest.parse.encodings import UTF_8, decoded, encoding_of
from rebalance_core.ingest.parse.go_and_cpp_logs import Translator
from rebalance_core.ingest.parse.wrapped_lines import (
    LINE_ENDS,
    UNWRAPPED,
    Unwrapper,
    Wrapping,
    wrapping_of,
)
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.files_to_read import FolderToRead
from rebalance_core.storage.place import Location, place_of
from rebalance_core.storage.store_answers import is_of_store, refusal

NAMESRV_LOG, BROKER_LOG, LOCK_LOG, POP_LOG, CLIENT_LOG = (
    "namesrv_log",
    "broker_log",
    "lock_log",
    "pop_log",
    "client_log",
)
PROXY_LOG = "proxy_log"
LOGS = (NAMESRV_LOG, BROKER_LOG, LOCK_LOG, POP_LOG, CLIENT_LOG, PROXY_LOG)
BROKERS_LOGS = (BROKER_LOG, LOCK_LOG, POP_LOG)
"""Logs written by one broker, with one clock."""
COMPARED_LOGS = (NAMESRV_LOG, BROKER_LOG, CLIENT_LOG)
"""Logs with events that other logs also record."""
TOPICS, GROUPS, OFFSETS = "topics_json", "subscription_group_json", "consumer_offset_json"
MODES, ORDER_INFO = "message_request_mode_json", "consumer_order_info_json"
LOCAL_OFFSETS, ADMIN, GIVEN_GROUPS = "local_offset_json", "mqadmin", "consumer_groups"
PROXY_CONFIG = "proxy_config"
PROXIES = "proxy/"
"""The folder for proxies' files; the place of a proxy's file or dump is this folder plus the
proxy's name.
"""
STORE_LISTING, ROCKSDB_SIGN = "store_listing", "rocksdb_sign"
BROKER_METRICS = "broker_metrics"

STORES = {
    "topics.json": TOPICS,
    "subscriptionGroup.json": GROUPS,
    "consumerOffset.json": OFFSETS,
    "messageRequestMode.json": MODES,
    "consumerOrderInfo.json": ORDER_INFO,
}
UNREAD_STORES = ("consumerFilter.json", "delayOffset.json", "topicQueueMapping.json")
"""Stores beside them; an empty delayOffset.json looks like an empty consumerOffset.json."""
STORE_KINDS = frozenset(STORES.values())
"""The files in a broker's config folder; copies of it are named after the time of the copy."""
CONFIG_STORES = (TOPICS, GROUPS, OFFSETS)
"""Stores that a broker may keep in RocksDB instead."""
_BROKER_LOGS = {"broker": BROKER_LOG, "lock": LOCK_LOG, "filter": LOCK_LOG, "pop": POP_LOG}
_PROXY_LOGS = ("broker", "proxy")
_ROTATED = re.compile(
    r"^(?P<stem>[A-Za-z_]+?)(?:[._-]?\d[\d._-]*)?\.log(?:[._-]\d[\d._-]*)?(?:\.gz)?$"
)
"""RocketMQ's own names: ``broker.3.log.gz``, ``rocketmq_client-3.log.gz``,
``rocketmq_client.log.3``; logrotate's: ``broker.log-20261121.gz``."""
_CONFIG = re.compile(r"^config(?:-(?P<ms>\d{10,16}))?$")
_ADMIN = re.compile(r"^(?P<ms>\d{10,16})-(?P<command>[A-Za-z]+)(?:-(?P<arguments>.*))?$")

STORE_COMMANDS = ("rocksDBConfigToJson", "exportMetadataInRocksDB", "exported")
"""Commands that read a broker's own store; ``exported`` is a file written by ``-e`` of the
first.
"""
EXPORT_METADATA = "exportMetadata"
MEMBERS, CLUSTER_LIST = "consumerConnection", "clusterList"

# Files that this project's recorder writes in addition to operators' files, and its answers; never
# read.
NOT_INPUT_FOLDERS = ("tables", "truth")
NOT_INPUT_FILES = {
    "cluster.json": "is a recorder's own file",
    "events.jsonl": "is a recorder's own file",
    SETTINGS_NAME: "has the settings of the collection",
}
NOT_INPUT_SUFFIXES = (".csv", ".md")
PART = ".part"
"""The suffix that the collector gives to an unfinished copy."""
OLDER = ".bak"  # the previous generation, which RocketMQ reads if the store itself is missing
# Other RocketMQ logs and stores, which state nothing relevant here.
_OTHER_LOGS = re.compile(
    r"^(?:remoting|store|storeerror|transaction|watermark|stats|commercial|protection|tools|"
    r"broker_traffic|broker_default|auth|proxy|namesrv_traffic|tiered_store|rocksdb|coldctr|"
    r"dledger)[\w.-]*\.log"
)
_OTHER_STORES = re.compile(r"^[A-Za-z]+\.json$")
_LISTING = re.compile(r"^store-files(?:-(?P<ms>\d{10,16}))?(?:-.*)?\.txt$")
_METRICS = re.compile(r"^metrics-(?P<ms>\d{10,16})\.(?:txt|prom)$")
_ROCKSDB = (*FORM_OF_FOLDER, "consumerOffsets", "subscriptionGroups")
"""Folders of RocksDBs below ``config/``."""


@dataclass(frozen=True)
class CollectedFile:
    """A file to read.

    Attributes:
        name: path in the collection, with ``/``; the ``file`` of every source.
        kind: one of the constants of this module.
        place: the broker, client or name server to which it belongs; empty for other files.
        size: bytes on disk.
        written_ms: the time of a document's statements; None if unknown.
        arguments: for ``mqadmin``, the command and what follows it; for local offsets, client id
            and group.
        newest: True for the last store of its kind collected from its broker.
        turn: for logs, how many files of its kind and place begin before it.
        wrapping: for logs, how their lines were stored.
        group: for consumerProgress, the group in its name if other dumps name that group, too, and
            for a pasted client's log, the group if its lines name none; empty if only its content
            can show it.
        begins_at: for logs, how many bytes an earlier run read, whose evidence stands.
        lines_before: for logs, how many lines these are.
        left_out: for logs, how many of these bytes the file does not contain.
        earlier: whether an earlier run read the file and it is not in this collection.
    """

    name: str
    kind: str
    place: str = ""
    size: int = 0
    written_ms: int | None = None
    arguments: tuple[str, ...] = ()
    newest: bool = False
    turn: int = 0
    wrapping: Wrapping = UNWRAPPED
    group: str = ""
    begins_at: int = 0
    lines_before: int = 0
    left_out: int = 0
    earlier: bool = False

    @property
    def is_log(self) -> bool:
        """True for a file that is read line by line."""
        return self.kind in LOGS

    @property
    def gzipped(self) -> bool:
        """True for a rotated log that was compressed."""
        return self.name.endswith(".gz")


@dataclass(frozen=True)
class UnusedFile:
    """A file that adds nothing, as its name or location shows without reading it, and the
    reason.
    """

    name: str
    why: str


def answer(name: str) -> str:
    """Return why ingest must not read the file, or an empty string if it may.

    A recording also contains its ground truth and its tables, which operators do not have.
    """
    path = PurePosixPath(name)
    if path.parts[0] in NOT_INPUT_FOLDERS:
        return f"lies in {path.parts[0]}/, which a recording has beside what operators collect"
    if name in NOT_INPUT_FILES:
        return NOT_INPUT_FILES[name]
    if path.suffix in NOT_INPUT_SUFFIXES and path.parts[0] != "clients":
        return f"is a note or a table ({path.suffix}), not a log, store or dump"
    return ""


def other(name: str) -> str:
    """Return why files with this name state nothing about consumers, or an empty string if they
    may.

    Below ``clients/`` an application may choose any name for its log, so no name there indicates
    another kind of log.
    """
    path = PurePosixPath(name.removesuffix(OLDER))
    if path.parts[0] == "clients":
        of_grpc = path.name.startswith("rocketmq-client") and ".log" in path.name
        return "is a gRPC client's log, which contains nothing about its group" if of_grpc else ""
    if _OTHER_LOGS.match(path.name):
        return "is a RocketMQ log that contains nothing about consumers"
    if any(_CONFIG.match(part) for part in path.parts[:-1]):
        if _is_rocksdb(path.parts):
            return "is part of a RocksDB, from which only CURRENT is read"
        if _OTHER_STORES.match(path.name):
            return "is a RocketMQ store file without consumer data"
    return ""


@lru_cache(maxsize=65_536)
def original_name(name: str) -> str:
    """Return the path without the marks of a copy; host folders may have any name.

    >>> original_name("mqadmin/1795231735000-consumerProgress-g (1).txt")
    'mqadmin/1795231735000-consumerProgress-g.txt'
    """
    *folders, last = name.split("/")
    if folders[:1] == ["mqadmin"]:
        folders = [original_part(part) for part in folders]
    elif folders and _CONFIG.match(original_part(folders[-1])):
        folders[-1] = original_part(folders[-1])
    return "/".join([*folders, original_part(last)])


def _is_rocksdb(parts: tuple[str, ...]) -> bool:
    return len(parts) > 3 and parts[-2] in _ROCKSDB and bool(_CONFIG.match(parts[-3]))


def identify(name: str, size: int = 0) -> CollectedFile | None:
    """Return the file at this path in a collection, or None if it is not part of the layout.

    A copy counts as the file from which it was copied.
    """
    parts = PurePosixPath(original_name(name)).parts
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
    metrics = _METRICS.match(parts[-1])
    if metrics is not None and len(parts) == 3:
        return CollectedFile(name, BROKER_METRICS, parts[1], size, int(metrics["ms"]))
    if parts[-1] == "CURRENT" and parts[-2] in FORM_OF_FOLDER and _is_rocksdb(parts):
        config = _CONFIG.match(parts[-3])
        written = int(config["ms"]) if config and config["ms"] else None
        return CollectedFile(name, ROCKSDB_SIGN, parts[1], size, written)
    config = _CONFIG.match(parts[-2])
    if config is not None and parts[-1] in STORES:
        written = int(config["ms"]) if config["ms"] else None
        return CollectedFile(name, STORES[parts[-1]], parts[1], size, written)
    return None


def _client(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    rotated = _ROTATED.match(parts[-1])
    if rotated is not None and rotated["stem"] == "rocketmq_client":
        return CollectedFile(name, CLIENT_LOG, parts[1], size)
    if parts[-1] == "offsets.json" and len(parts) >= 5:
        of_group = client_id_of(parts[-3]), unescaped(parts[-2])
        return CollectedFile(name, LOCAL_OFFSETS, parts[1], size, arguments=of_group)
    return None


def _proxy(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    place = PROXIES + parts[1]
    if parts[-1] == "rmq-proxy.json":
        return CollectedFile(name, PROXY_CONFIG, place, size)
    rotated = _ROTATED.match(parts[-1])
    if rotated is not None and rotated["stem"] in _PROXY_LOGS:
        return CollectedFile(name, PROXY_LOG, place, size)
    return None


ANSWER_SUFFIX = re.compile(r"\.(?:txt|json|log|out)$", re.IGNORECASE)
"""The suffix of an answer's name, which a Windows share may write in capitals."""


def _admin(name: str, parts: tuple[str, ...], size: int) -> CollectedFile | None:
    stem = ANSWER_SUFFIX.sub("", parts[1])
    command = _ADMIN.match(stem)
    if command is None or len(parts) > 3:
        return None
    arguments: tuple[str, ...] = (command["command"], unescaped(command["arguments"] or ""))
    if len(parts) == 3:
        arguments = (*arguments, client_id_of(re.sub(r"(?i)\.txt$", "", parts[2])))
    return CollectedFile(name, ADMIN, "", size, int(command["ms"]), arguments)


_ESCAPABLE = re.compile(r"[^0-9A-Za-z._-]")


def with_broker_name(file: CollectedFile, brokers: AnyCollection[str]) -> CollectedFile:
    """Return the file, with the broker at the end of a dump's name spelt as in the cluster.

    Programs that copy files replace @ and the like with other characters.

    Args:
        file: a file of any kind.
        brokers: names of the known ones.
    """
    if file.kind != ADMIN or file.arguments[0] not in (MEMBERS, *STORE_COMMANDS):
        return file
    command, argument, *client = file.arguments
    if any(f"-{argument}".endswith(f"-{broker}") for broker in brokers):
        return file
    for broker in sorted(filter(_ESCAPABLE.search, brokers), key=len, reverse=True):
        before, end = argument[: -len(broker)], argument[-len(broker) :]
        if may_be(end, broker) and before[-1:] in ("", "-"):
            return replace(file, arguments=(command, before + broker, *client))
    return file


def asked_at(file: CollectedFile, proxies: AnyCollection[str]) -> CollectedFile:
    """Return the file; a dump whose name ends in ``-<proxy>`` gets that proxy as its place.

    Args:
        file: a file of any kind.
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


def hosts_of_dumps(files: Iterable[CollectedFile], brokers: AnyCollection[str]) -> set[str]:
    """Return the proxies shown only by the names of dumps: hosts that are not brokers.

    clusterList has no group; a list of members is named after the group and the queried server. A
    word counts if it follows several groups about which brokers were also queried.

    Args:
        files: files of any kind.
        brokers: names of the known ones.
    """
    arguments = [f.arguments[1] for f in files if f.kind == ADMIN and f.arguments[0] == MEMBERS]
    at_brokers = {word for word in arguments for broker in brokers if word.endswith(f"-{broker}")}
    groups = {word.removesuffix(f"-{b}") for word in at_brokers for b in brokers} - at_brokers
    after: dict[str, set[str]] = {}
    for word in {*arguments} - at_brokers - groups:
        for group in groups:
            if word.startswith(f"{group}-"):
                after.setdefault(word.removeprefix(f"{group}-"), set()).add(group)
    named = {host for host, of in after.items() if len(of) > 1}
    lists = {f.arguments[1] for f in files if f.kind == ADMIN and f.arguments[0] == CLUSTER_LIST}
    return (named | lists) - {*brokers, ""}


NAMING_COMMANDS = (CLUSTER_LIST, "topicRoute", "getBrokerConfig")
_CLUSTER_FIELD = re.compile(
    r'"cluster" *: *"([^"\\]+)"|^brokerClusterName *= *(\S+)\s*$', re.MULTILINE
)
_BROKER_FIELD = re.compile(r'"brokerName" *: *"([^"\\]+)"|^brokerName *= *(\S+)\s*$', re.MULTILINE)


def brokers_of_dumps(
    files: Iterable[CollectedFile], known_brokers: AnyCollection[str], heads: Mapping[str, bytes]
) -> set[str]:
    """Return brokers with which the names of dumps may end and that no folder or setting names.

    clusterList, topicRoute and getBrokerConfig name them. Without these, a word is a broker if it
    ends the names of member lists of several groups that other dumps name.

    Args:
        files: files of any kind.
        known_brokers: names of brokers; if there are any, a word that dumps do not list is not a
            broker.
        heads: the first bytes of dumps of `NAMING_COMMANDS`, by name.
    """
    named: set[str] = set()
    for head in heads.values():
        text = decoded(head)
        named |= {match[1] or match[2] for match in _BROKER_FIELD.finditer(text)}
        rows = answers(parse_cluster_list(text, ""))
        named |= {row.values["broker_name"] for row in rows if row.kind == "broker"}
    if named or known_brokers:
        return named - {*known_brokers}
    groups = {f.arguments[1].removeprefix("s-") for f in files if _of_one_group(f)}
    after: dict[str, set[str]] = {}
    for file in files:
        if file.kind == ADMIN and file.arguments[0] == MEMBERS and file.arguments[1] not in groups:
            for group in groups:
                if file.arguments[1].startswith(f"{group}-"):
                    after.setdefault(file.arguments[1].removeprefix(f"{group}-"), set()).add(group)
    return {word for word, of in after.items() if len(of) > 1}


def _of_one_group(file: CollectedFile) -> bool:
    """Return True for a dump whose name ends with a group, whatever else is known."""
    return file.kind == ADMIN and file.arguments[0] in ("consumerStatus", "consumerProgress")


NAMED_COMMANDS = (MEMBERS, "consumerProgress", "consumerStatus", "topicRoute", "topicStatus")
"""Commands whose dumps are named after a group or a topic."""


def known_groups(files: Iterable[CollectedFile], brokers: AnyCollection[str]) -> set[str]:
    """Return the groups in the names of dumps that contain only a group, or a group and a
    broker.
    """
    of_brokers = tuple(f"-{broker}" for broker in brokers)
    groups = set()
    for file in files:
        if file.kind == ADMIN and file.arguments[0] == MEMBERS:
            ends = [end for end in of_brokers if file.arguments[1].endswith(end)]
            groups |= {file.arguments[1].removesuffix(max(ends, key=len))} if ends else set()
        elif _of_one_group(file) and not file.arguments[1].startswith(("s-", "t-")):
            groups.add(file.arguments[1])
    return groups - {*EVERYTHING}


EVERYTHING = ("", "all")
"""The text in the name of a ``consumerProgress`` dump without a group."""


def of_known_group(file: CollectedFile, groups: AnyCollection[str]) -> CollectedFile:
    """Return the file with the group whose progress it shows and with % in a retry topic's name.

    Args:
        file: a file of any kind.
        groups: `known_groups`.
    """
    if file.kind != ADMIN or file.arguments[0] not in NAMED_COMMANDS:
        return file
    command, argument, *client = file.arguments
    if command == "consumerProgress":
        matching = {argument, argument.removeprefix("s-")} & {*groups}
        if not matching and argument.startswith("t-"):
            matching = {group for group in groups if argument.endswith(f"-{group}")}
            matching = {max(matching, key=len)} if matching else matching
        return replace(file, group=matching.pop()) if len(matching) == 1 else file
    match = _FLAT_TOPIC.fullmatch(argument)
    if match is None or match[2] not in groups:
        return file
    return replace(file, arguments=(command, f"%{match[1]}%{match[2]}", *client))


_FLAT_TOPIC = re.compile(r"_(RETRY|DLQ)_(.+)")


def with_newest(files: list[CollectedFile]) -> list[CollectedFile]:
    """Return the files with the newest store of each kind and broker marked; undated stores are
    newest.

    So is the newest output of each command that reads a store.
    """
    newest: dict[tuple[str, ...], CollectedFile] = {}
    for file in files:
        if file.kind in STORES.values():
            key: tuple[str, ...] = (file.place, file.kind)
        elif file.arguments and file.arguments[0] in (*STORE_COMMANDS, EXPORT_METADATA):
            key = (file.kind, *file.arguments)
        else:
            continue
        so_far = newest.setdefault(key, file)
        if _age(so_far) < _age(file):
            newest[key] = file
    names = {file.name for file in newest.values()}
    return [replace(file, newest=True) if file.name in names else file for file in files]


def _age(file: CollectedFile) -> tuple[bool, int]:
    return file.written_ms is None, file.written_ms or 0


_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[,.]\d{3})?")
_INDEX = re.compile(r"[.-](\d{1,4})\.log(?:\.gz)?$|\.log\.(\d{1,4})(?:\.gz)?$")
_GZIP = 31  # zlib: a gzip header, 32 KB window
_UNPACKED = 64 * 1024


def first_lines(file: CollectedFile, head: bytes) -> list[str]:
    """Return the lines in the first bytes of a log, without the last, which may be cut off.

    Args:
        file: the log.
        head: its first bytes, compressed if the file is.
    """
    lines = decoded(_unpacked(file, head)).split("\n")
    return [line.strip(LINE_ENDS) for line in lines[:-1] or lines]


def _unpacked(file: CollectedFile, head: bytes) -> bytes:
    """Return the first bytes of a log, decompressed; none if it is not compressed as its name
    states.
    """
    if not file.gzipped:
        return head
    try:
        return zlib.decompressobj(wbits=_GZIP).decompress(head, _UNPACKED)
    except zlib.error:
        return b""


def head_of(file: CollectedFile, place: FolderToRead, size: int) -> bytes:
    """Return the first bytes of a log, decompressed; empty if it cannot be read.

    Args:
        file: the log.
        place: its location.
        size: the maximum number of bytes.

    Raises:
        OSError: the store failed.
    """
    try:
        return _unpacked(file, place.head(SNIFFED if file.gzipped else size))[:size]
    except OSError as error:
        if is_of_store(error):
            raise
        return b""


def with_wrapping(file: CollectedFile, head: bytes) -> CollectedFile:
    """Return the log with the wrapping in which its lines were stored.

    Args:
        file: the log.
        head: its first bytes, compressed if the file is.

    Raises:
        Unreadable: its lines come from several containers.
    """
    encoding, of_client = encoding_of(_unpacked(file, head)), file.kind == CLIENT_LOG
    wrapping = wrapping_of(first_lines(file, head), client=of_client, encoding=encoding)
    return replace(file, wrapping=wrapping)


def first_time(file: CollectedFile, lines: Iterable[str]) -> str:
    """Return the first time in a log, as RocketMQ writes it; empty if its first lines contain none.

    Args:
        file: the log.
        lines: its first lines.
    """
    if file.wrapping:
        unwrapper = Unwrapper(file.wrapping, (), file.kind == CLIENT_LOG, lambda text: None)
        lines = (each.text for line in tuple(lines) for each in unwrapper.lines(line, file.name))
    return next((match[0] for line in lines if (match := _TIME.match(line))), "")


def with_turns(
    files: Iterable[CollectedFile], begins: Mapping[str, str]
) -> tuple[CollectedFile, ...]:
    """Return the files, with each log numbered by first time among the logs of its kind and place.

    Logs that begin in the same second are ordered as RocketMQ numbers them: 1 is the last file
    rotated.

    Args:
        files: the files of a collection.
        begins: `first_time` of each log, by name.
    """
    files = tuple(files)
    turns: dict[str, int] = {}
    count: dict[tuple[str, str], int] = {}
    logs = [file for file in files if file.is_log]
    for file in sorted(logs, key=lambda f: (begins.get(f.name, ""), -_index(f.name), f.name)):
        of_place = (file.kind, file.place)
        turns[file.name] = count.get(of_place, 0)
        count[of_place] = turns[file.name] + 1
    return tuple(replace(file, turn=turns.get(file.name, 0)) for file in files)


def _index(name: str) -> int:
    """Return the number that rotation gave the file; 0 for the file being written.

    >>> _index("broker.12.log.gz"), _index("rocketmq_client.log.3"), _index("broker.log")
    (12, 3, 0)
    """
    match = _INDEX.search(name)
    return int(match[1] or match[2]) if match else 0


UNKNOWN_FILE, COPY_DIFFERS = "UNKNOWN_FILE", "COPY_DIFFERS"
DOCUMENT_LIMIT = 64 * 1024**2
"""Maximum size of a store or dump in bytes; the largest real ones, with 100,000 topics, have some
30 MB.
"""
INCOMPLETE_COPY = "INCOMPLETE_COPY"
SNIFFED = 64 * 1024
"""The number of bytes that identify a file (for a compressed log, decompressed bytes)."""
_TEXT_SNIFFED = 4096
"""The number of bytes checked to see whether a file is text; after a crash, a log may end in NULs.
"""


@dataclass(frozen=True)
class Collection:
    """The files to read, sorted by name, and those refused before being read."""

    root: FolderToRead
    settings: CollectionSettings
    files: tuple[CollectedFile, ...]
    refused: tuple[Unread, ...]
    unused: tuple[UnusedFile, ...] = ()
    dumped_brokers: tuple[str, ...] = ()
    """Brokers that dumps name in their contents."""
    other_names: tuple[OtherName, ...] = ()
    """Groups whose logs are read under the name that dumps use."""
    begins: Mapping[str, str] = field(default_factory=dict)
    """A log's first time (`first_time`)."""

    @cached_property
    def own_files(self) -> tuple[CollectedFile, ...]:
        """Return the folder's own files, without those from an earlier run."""
        return tuple(file for file in self.files if not file.earlier)

    @cached_property
    def broker_folders(self) -> tuple[str, ...]:
        """Names of the folders below ``brokers/``."""
        places = {file.place for file in self.files if file.name.startswith("brokers/")}
        return tuple(sorted(places))

    @cached_property
    def brokers(self) -> tuple[str, ...]:
        """Return the names that dumps may use for a broker: those of folders, of expected brokers,
        and of brokers that dumps list.
        """
        names = {*self.broker_folders, *self.settings.brokers, *self.dumped_brokers}
        return tuple(sorted(names))

    def path_of(self, file: CollectedFile) -> FolderToRead:
        """Return the file's location."""
        return self.root / file.name

    def refuse_without_state(self) -> None:
        """Raise `InputRefused` if the collection's logs lack content that an earlier run has
        read.
        """
        if self.settings.continued:
            raise InputRefused(
                f"--collection {self.root}: its logs begin where those of an earlier run ended; "
                f"name that run: --state {self.settings.continues}"
            )


def open_collection(folder: Location | FolderToRead) -> Collection:
    """List a collection; reads ``collection.toml`` and the first bytes of each file.

    Without ``collection.toml``, the cluster has the name on which clusterList, topicRoute and
    getBrokerConfig agree.

    Symbolic links that lead out of the folder, special files, unreadable files, binaries and files
    above the limits are refused by name; all others are read.

    Args:
        folder: A path, another place that this process can reach, or a folder that Spark can reach.

    Raises:
        InputRefused: the folder does not exist, ``collection.toml`` is invalid, the cluster has no
            name, or there is nothing to read.
        StoreFailed: the store denies, throttles or does not answer.
        UsageError: the place cannot be reached without Spark.
    """
    place = place_of(folder) if isinstance(folder, str | PathLike) else folder
    shown = without_user(fspath(folder) if isinstance(folder, str | PathLike) else folder.url)
    try:
        return _opened(place, shown)
    except OSError as error:
        raise refusal(error, f"--collection {shown} cannot be read", InputRefused) from error


def _opened(place: FolderToRead, folder: str) -> Collection:
    listing: _Listing
    if place.is_local:
        refuse_no_folder("--collection", local_path(folder))
        real = Path(place.path).resolve()
        written = settings_if_written(real)
        listing = _LocalListing(place_of(real))
        names = set(_names(real, listing.refused))
    else:
        sizes = dict(place.sizes())
        if not sizes:
            raise InputRefused(f"--collection {folder}: no such folder")
        written = settings_if_written(place)
        listing = _StoreListing(place, sizes=sizes)
        names = set(sizes)
    settings = written or CollectionSettings("")
    for name in sorted(names, key=_order):
        newer = name.removesuffix(OLDER)
        if newer != name and newer in names and not name.startswith("mqadmin/"):
            listing.unused.append(
                UnusedFile(name, "is the previous generation of the file beside it")
            )
        elif not listing.is_copy(name):
            listing.add(name, settings)
    files, refused = sorted(listing.files, key=lambda file: file.name), listing.refused
    if not files:
        raise InputRefused(
            f"--collection {folder}: nothing to read beside {SETTINGS_NAME}; expected namesrv/, "
            "brokers/<name>/, proxy/<name>/, clients/<name>/ or mqadmin/ (docs/ingest.md)"
        )
    if written is None:
        settings = _settings_of_dumps(listing.root, listing.heads)
    folders = {f.place.removeprefix(PROXIES) for f in files if f.name.startswith(PROXIES)}
    brokers = {f.place for f in files if f.name.startswith("brokers/")} | {*settings.brokers}
    dumped = brokers_of_dumps(files, brokers, listing.heads)
    brokers |= dumped
    files = [with_broker_name(file, brokers) for file in files]
    proxies = {*folders, *settings.proxies} | hosts_of_dumps(files, brokers)
    files = [asked_at(file, proxies) for file in with_newest(files)]
    groups = known_groups(files, brokers)
    files = [of_known_group(file, groups) for file in files]
    nameless = [file for file in files if _names_nothing(file, brokers)]
    refused += [_nameless(file) for file in nameless]
    return Collection(
        listing.root,
        settings,
        with_turns([file for file in files if file not in nameless], listing.begins),
        tuple(sorted(refused, key=lambda piece: piece.source)),
        tuple(listing.unused),
        tuple(sorted(dumped)),
        begins=listing.begins,
    )


def _order(name: str) -> tuple[str, int, str]:
    """Return the key that orders files: a file comes before its copies."""
    return original_name(name), len(name), name


def _settings_of_dumps(root: FolderToRead, heads: Mapping[str, bytes]) -> CollectionSettings:
    """Return settings that name the only cluster shown by dumps of `NAMING_COMMANDS`.

    Raises:
        InputRefused: they show no cluster, or several.
    """
    sources: dict[str, str] = {}
    for source, head in sorted(heads.items()):
        text = decoded(head)
        for row in answers(parse_cluster_list(text, source)):
            if row.kind == "broker":
                sources.setdefault(row.values["cluster"], source)
        for match in _CLUSTER_FIELD.finditer(text):
            sources.setdefault(match[1] or match[2], source)
    if not sources:
        raise no_settings(root)
    if len(sources) > 1:
        raise InputRefused(f"{no_settings(root)}; dumps show {', '.join(sorted(sources))}")
    (cluster, source), *_ = sources.items()
    why = (
        f"the folder has none, so the cluster is {cluster}, as in {source}, and no server is "
        "expected"
    )
    return CollectionSettings(cluster, failed=(NotCollected(SETTINGS_NAME, why),))


def _names_nothing(file: CollectedFile, brokers: AnyCollection[str]) -> bool:
    """Return the refusal of a dump whose name does not end with what was queried."""
    if file.kind != ADMIN or file.arguments[0] not in NAMED_COMMANDS:
        return False
    argument = file.arguments[1]
    ends = [b for b in brokers if file.arguments[0] == MEMBERS and argument.endswith(f"-{b}")]
    return names_nothing(argument.removesuffix(max(ends, key=len, default="")))


def _nameless(file: CollectedFile) -> Unread:
    what = "topic" if file.arguments[0].startswith("topic") else "group"
    why = f"belongs to no {what}: {file.arguments[1]!r} cannot be a name; rename the file"
    return _refuse(file.name, "BAD_NAME", why)


def _lacks_zone(file: CollectedFile, settings: CollectionSettings) -> bool:
    """Return the refusal of a server's log in an unknown time zone: all times would be off."""
    of_server = file.is_log and file.kind != CLIENT_LOG
    return of_server and file.wrapping.local and settings.zone_of(file.name) is None


def _names(root: Path, refused: list[Unread]) -> Iterator[str]:

    def unlisted(error: OSError) -> None:
        name = Path(error.filename).relative_to(root).as_posix()
        why = f"cannot be opened: {error.strerror}; nothing below it is read"
        refused.append(_refuse(name, "UNREADABLE_FILE", why))

    for folder, folders, files in os.walk(root, onerror=unlisted):
        inside = Path(folder).relative_to(root)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links))
        for name in (*files, *links):
            yield (inside / name).as_posix()


@dataclass
class _Listing(ABC):
    """The content of a collection, file by file.

    Attributes:
        root: its location.
        files: the files to read.
        refused: files that cannot be read or do not belong to the layout.
        unused: files that add nothing.
        begins: the first time of each log.
        heads: the first bytes of dumps that may name brokers.
    """

    root: FolderToRead
    files: list[CollectedFile] = field(default_factory=list)
    refused: list[Unread] = field(default_factory=list)
    unused: list[UnusedFile] = field(default_factory=list)
    begins: dict[str, str] = field(default_factory=dict)
    heads: dict[str, bytes] = field(default_factory=dict)
    _originals: dict[str, str] = field(default_factory=dict)

    @abstractmethod
    def _first_bytes(self, name: str) -> "tuple[int, bytes] | Unread | UnusedFile":
        """Return a file's size and first bytes, or why it is not read."""

    @abstractmethod
    def _note_read(self) -> None:
        """Record that the file passed to the last `_first_bytes` is read."""

    @abstractmethod
    def _equal(self, name: str, other: str) -> bool:
        """Return True if two files have the same bytes; raise `OSError` if one is unreadable."""

    def is_copy(self, name: str) -> bool:
        """Return True, and record it, if the file is a copy of an earlier file and is therefore not
        read.

        A copy of a log that differs is another part of the log.
        """
        original = self._originals.setdefault(original_name(name), name)
        if original == name:
            return False
        try:
            same = self._equal(original, name)
        except OSError as error:
            if is_of_store(error):
                raise
            return False
        file = identify(name)
        if same:
            self.unused.append(UnusedFile(name, f"is a copy of {original}"))
        elif file is not None and not file.is_log:
            why = f"is a copy of {original} but differs from it; only {original} is read"
            self.refused.append(_refuse(name, COPY_DIFFERS, why))
        else:
            return False
        return True

    def add(self, name: str, settings: CollectionSettings) -> None:
        """Add a file to those to read, those refused or those that add nothing."""
        entry = self._identified(name)
        if isinstance(entry, CollectedFile) and _lacks_zone(entry, settings):
            why = (
                "has heads of another logger, whose times name no zone: name it in collection.toml "
                f'under [time_zones], as "{name}" = "Asia/Shanghai"'
            )
            entry = _refuse(name, "NO_TIME_ZONE", why)
        if isinstance(entry, CollectedFile):
            self.files.append(entry)
        elif isinstance(entry, UnusedFile):
            self.unused.append(entry)
        else:
            self.refused.append(entry)

    def _identified(self, name: str) -> CollectedFile | Unread | UnusedFile:
        by_name = _by_name(name)
        if by_name is not None:
            return by_name
        found = self._first_bytes(name)
        if not isinstance(found, tuple):
            return found
        size, head = found
        file = identify(name, size) or _client_of(name, size, head)
        if file is None:
            what = other(name)
            return UnusedFile(name, what) if what else _refuse(name, UNKNOWN_FILE, _unknown(name))
        self._note_read()
        refused = refusal_of_content(file, head)
        if refused is not None or not file.is_log:
            if file.kind == ADMIN and file.arguments[0] in NAMING_COMMANDS:
                self.heads[name] = head
            return refused or file
        lines = first_lines(file, head)
        try:
            file = with_wrapping(file, head)
            self.begins[name] = first_time(file, lines)
        except Unreadable as error:
            return _refuse(name, error.code, error.message)
        return file


@dataclass
class _LocalListing(_Listing):
    """The content of a folder on this machine, which may have links and special files."""

    _seen: set[Path] = field(default_factory=set)
    _real: Path = Path()

    def _first_bytes(self, name: str) -> tuple[int, bytes] | Unread | UnusedFile:
        root = Path(self.root.path)
        try:
            real = (root / name).resolve()
            if not real.is_relative_to(root):
                why = "is a link that leaves the collection; not read"
                return _refuse(name, "LEAVES_COLLECTION", why)
            status = real.stat()
            if stat.S_ISDIR(status.st_mode) or real in self._seen:
                inside = real.relative_to(root)
                return UnusedFile(name, f"is a link to {inside}, which is read in its own place")
            if not stat.S_ISREG(status.st_mode):
                return _refuse(
                    name, "NO_PLAIN_FILE", "is not a plain file (pipe, socket or device)"
                )
            self._real = real
            with real.open("rb") as opened:
                return status.st_size, opened.read(SNIFFED)
        except OSError as error:
            return _refuse(name, "UNREADABLE_FILE", f"cannot be opened: {error.strerror or error}")
        except RuntimeError:  # Python before 3.13, for links that form a cycle
            return _refuse(name, "UNREADABLE_FILE", f"cannot be opened: {os.strerror(errno.ELOOP)}")

    def _note_read(self) -> None:
        self._seen.add(self._real)

    def _equal(self, name: str, other: str) -> bool:
        root = Path(self.root.path)
        return filecmp.cmp(root / name, root / other, shallow=False)


_REQUESTS = 16
"""The number of a store's files requested at once; each costs two round trips."""
_AHEAD = 256
"""The number of files whose first bytes are cached: 16 MB."""


@dataclass
class _StoreListing(_Listing):
    """The content of a folder in a store, which may have thousands of files.

    Attributes:
        sizes: the size of each file in bytes.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    _heads: dict[str, bytes | OSError] = field(default_factory=dict)

    @cached_property
    def _to_read(self) -> Iterator[str]:
        """Return the names of the files that count, in the order in which they are requested."""
        return iter(sorted((n for n in self.sizes if _by_name(n) is None), key=_order))

    def _read_ahead(self, name: str) -> None:
        """Read the first bytes of a file and of those requested after it."""
        names = list(islice(dropwhile(lambda each: each != name, self._to_read), _AHEAD))
        with ThreadPoolExecutor(_REQUESTS) as pool:
            self._heads = dict(zip(names, pool.map(self._head, names), strict=True))

    def _head(self, name: str) -> bytes | OSError:
        try:
            return (self.root / name).head(SNIFFED) if self.sizes[name] else b""
        except OSError as error:
            if is_of_store(error):
                raise
            return error

    def _first_bytes(self, name: str) -> tuple[int, bytes] | Unread | UnusedFile:
        if name not in self._heads:
            self._read_ahead(name)
        head = self._heads.pop(name)
        if isinstance(head, OSError):
            why = f"cannot be opened: {head.strerror or head}"
            return _refuse(name, "UNREADABLE_FILE", why)
        return self.sizes[name], head

    def _note_read(self) -> None:
        pass  # a store has no links

    def _equal(self, name: str, other: str) -> bool:
        if self.sizes[name] != self.sizes[other]:
            return False
        with (self.root / name).open() as one, (self.root / other).open() as two:
            while (block := one.read(_COMPARED)) == two.read(_COMPARED):
                if not block:
                    return True
        return False


_COMPARED = 1 << 20


def _by_name(name: str) -> Unread | UnusedFile | None:
    """Return the refusal of a file that must not be opened because of its name; None if it may
    be.
    """
    if why := answer(name):
        return UnusedFile(name, why)
    if name.endswith(PART):
        return _refuse(name, INCOMPLETE_COPY, "is an unfinished copy; not read")
    if not name.isprintable():
        return _refuse(name, "BAD_NAME", "its name holds control or undecodable characters")
    return None


_CLIENT_WORDS = tuple(word for word in CLIENT_WORDS if len(word) > len("Group: "))


def _client_of(name: str, size: int, head: bytes) -> CollectedFile | None:
    """Return a client's log that has an application's own file name, judging by its content.

    The result is True if a line in its first bytes has the words of a template.
    """
    parts = PurePosixPath(name).parts
    if len(parts) < 3 or parts[0] != "clients":
        return None
    file = CollectedFile(name, CLIENT_LOG, parts[1], size)
    translator = Translator()
    for line in (*first_lines(file, head), *_unwrapped(file, head)):
        inner = translator.line(line)
        if any(word in (inner.message if inner else line) for word in _CLIENT_WORDS):
            return file
    return None


def _unwrapped(file: CollectedFile, head: bytes) -> Iterator[str]:
    """Yield the first lines of a client's log without the form in which a container stores them."""
    try:
        wrapping = with_wrapping(file, head).wrapping
        unwrapper = Unwrapper(wrapping, CLIENT_WORDS, client=True, to_server=lambda text: None)
        for line in first_lines(file, head) if wrapping else ():
            yield from (own.text for own in unwrapper.lines(line, file.name))
    except Unreadable:
        return  # of several containers


def refusal_of_content(file: CollectedFile, head: bytes) -> Unread | None:
    """Return why the file is not read, judging by its first bytes: it is not text, or it is too
    large.
    """
    if file.gzipped:
        if not head.startswith(b"\x1f\x8b"):
            return _refuse(file.name, "WRONG_FILE", "is named .gz and is not compressed by gzip")
        return None
    if _is_binary(file, head):
        return _refuse(file.name, "BINARY", "holds binary data where text is expected")
    if not file.is_log and file.size > DOCUMENT_LIMIT:
        return _refuse(
            file.name, "TOO_LARGE", f"has {file.size} bytes, too many for such a document"
        )
    return None


def _is_binary(file: CollectedFile, head: bytes) -> bool:
    """Return True unless the bytes are text; a log may contain blocks of zeros left by a crash."""
    if head.startswith(b"\x1f\x8b"):
        return True
    begin = head[:_TEXT_SNIFFED]
    if encoding_of(head) != UTF_8 or b"\x00" not in begin:
        return False
    text = head.replace(b"\x00", b"")
    controls = len(text) - len(text.translate(None, _CONTROLS))
    return not file.is_log or not text or controls > _CONTROLS_IN_TEXT * len(text)


_CONTROLS = bytes({*range(32)} - {*b"\t\n\r\x1b"})
_CONTROLS_IN_TEXT = 0.01


def _unknown(name: str) -> str:
    if name.startswith("clients/"):
        return "has no line from RocketMQ's client and is not one of its stores"
    command = undated(name)
    if command:
        last = name.rpartition("/")[2]
        return f"{UNDATED} of its command: name it <epoch ms>-{last}"
    return "is not part of the layout"


UNDATED = "lacks the time"
"""The beginning of the message that refuses such an answer."""
_COMMANDS = (*NAMED_COMMANDS, CLUSTER_LIST, "topicList", "getBrokerConfig", EXPORT_METADATA)


def undated(name: str) -> str:
    """Return the command of an answer whose name lacks the time; empty for any other file.

    >>> undated("mqadmin/consumerProgress-g.txt"), undated("mqadmin/topicRoutes.txt")
    ('consumerProgress', '')
    """
    folder, _, last = original_name(name).partition("/")
    command = ANSWER_SUFFIX.sub("", last).partition("-")[0]
    return command if folder == "mqadmin" and command in _COMMANDS else ""


def _refuse(name: str, code: str, message: str) -> Unread:
    shown = name.encode("utf-8", "backslashreplace").decode()
    return Unread(shown, shown, code, f"{shown!r} {message}")
