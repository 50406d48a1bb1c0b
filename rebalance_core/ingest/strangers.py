"""Sets aside files in a broker's folder that belong to another broker, lists of clients from
elsewhere, and answers that concern another group or client, or are older than their names state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_core.ingest.broker_folders import SYNC_MEMBER_TOPIC, BrokerDirectory
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    CONFIG_STORES,
    TOPICS,
    Collection,
)
from rebalance_core.ingest.copied_names import may_be
from rebalance_core.ingest.evidence import Evidence, is_on_cluster
from rebalance_core.ingest.fact import (
    OTHER_BROKER,
    OTHER_CLUSTER,
    OTHER_SUBJECT,
    SEVERAL_BROKERS,
    Unread,
    Unreadable,
    file_of,
)
from rebalance_core.ingest.file_reader import OF_CLIENT, OF_GROUP, FileStats
from rebalance_core.ingest.foreign_files import foreign_files
from rebalance_core.ingest.old_answers import old_answers

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import ClusterEvidence


# A broker's log names it at each start; its topics.json has a topic with its name. All files in a
# folder belong to one broker, so of two names one is wrong: the right name is the folder's,
# otherwise the only one that collection.toml, mqadmin or a name server knows. A topic whose name no
# file knows as a broker's may be any topic, unless another copy in the folder has the broker's own.
# If neither decides, all files are read, and the folder belongs to no broker
# (`INGEST_BROKER_FOLDER_UNCLEAR`).  Two clusters may share name servers, and even a broker's name.
# A folder belongs to another cluster if its broker prints that name when it starts
# (brokerClusterName), or registers only under it, and some line has the cluster in collection.toml,
# which shows that this is RocketMQ's name for it.
@dataclass(frozen=True, slots=True)
class SetApart:
    """A collection without files that belong to others, which are among the refused ones.

    Attributes:
        collection: the files that are left.
        stats: the stats of each of these.
        strangers: the files set aside, each with the reason as its refusal.
    """

    collection: Collection
    stats: tuple[FileStats, ...]
    strangers: tuple[FileStats, ...] = ()

    @property
    def refused(self) -> list[Unread]:
        """The refusals of the files set aside."""
        return [Unread(o.name, o.first_line or o.name, o.code, o.why) for o in self.strangers]

    @property
    def names(self) -> frozenset[str]:
        """The files set aside."""
        return frozenset(stranger.name for stranger in self.strangers)


def set_apart(
    collection: Collection, stats: Iterable[FileStats], pieces: Iterable[Evidence]
) -> SetApart:
    """Omit each file from a different broker than the rest of its folder, each list of other
    clients, and each answer about a different group or client than its name states.

    Args:
        collection: the files.
        stats: the stats of each file.
        pieces: evidence on the cluster.
    """
    stats = tuple(stats)
    why = {
        **_misnamed_answers(collection, stats),
        **foreign_files(collection, stats),
        **_strangers(collection, pieces),
    }
    if not why:
        return SetApart(collection, stats)
    strangers = tuple(
        _refused(file_stats, why[file_stats.name]) for file_stats in stats if file_stats.name in why
    )
    kept = tuple(file_stats for file_stats in stats if file_stats.name not in why)
    apart = SetApart(collection, kept, strangers)
    files = tuple(file for file in collection.files if file.name not in why)
    refused = (*collection.refused, *apart.refused)
    return replace(apart, collection=replace(collection, files=files, refused=refused))


def _refused(file_stats: FileStats, why: Unreadable) -> FileStats:
    name, kind, codes = file_stats.name, file_stats.kind, {why.code: 1}
    refused = FileStats(name, kind, file_stats.lines, rejected=1, codes=codes, why=why.message)
    return replace(refused, first_line=file_stats.first_line)


# consumerConnection and consumerProgress have the group's retry topic among their rows, or name the
# group that is not online; the properties of a client have its group, address and instance. If
# another answer is named after this group or client, this one's name is wrong.
def _misnamed_answers(collection: Collection, stats: Iterable[FileStats]) -> dict[str, Unreadable]:
    """Return, by file, why each answer has the name of another group, client or time."""
    answers = [s for s in stats if s.kind == ADMIN]
    names = {f.name: f.arguments[2] for f in collection.files if f.arguments[2:]}
    return (
        old_answers(answers, collection.files)
        | _of_other_clients(answers, names)
        | _of_other_groups(answers)
    )


def _of_other_groups(answers: Iterable[FileStats]) -> dict[str, Unreadable]:
    by_file = {answer.name: list(_stated(answer, OF_GROUP)) for answer in answers}
    groups = {asked for pairs in by_file.values() for asked, _ in pairs}
    why: dict[str, Unreadable] = {}
    for name, pairs in by_file.items():
        others = {group for _, group in pairs} & groups
        if others and not any(_is_same_group(asked, stated) for asked, stated in pairs):
            why[name] = _misnamed(min(others), pairs[0][0])
    return why


def _of_other_clients(
    answers: Iterable[FileStats], names: Mapping[str, str]
) -> dict[str, Unreadable]:
    why: dict[str, Unreadable] = {}
    for answer in answers:
        own = names.get(answer.name, "")
        for _, stated in _stated(answer, OF_CLIENT) if own else ():
            if _is_same_client(own, stated):
                continue
            others = [name for name in names.values() if _is_same_client(name, stated)]
            if others:
                why[answer.name] = _misnamed(min(others), own)
    return why


def _misnamed(about: str, name: str) -> Unreadable:
    return Unreadable(OTHER_SUBJECT, f"it is an answer about {about}, and its name has {name}")


def _stated(answer: FileStats, about: str) -> Iterator[tuple[str, str]]:
    """Yield what an answer is named after, empty for a client, and what it states to be about."""
    for name in answer.witnessed:
        if name.startswith(about):
            asked, _, stated = name.removeprefix(about).rpartition(" ")
            yield asked, stated


def _is_same_group(asked: str, stated: str) -> bool:
    """Return True for the queried group; a client's namespace may precede it."""
    return stated == asked or stated.endswith(f"%{asked}")


def _is_same_client(named: str, stated_id: str) -> bool:
    """Return True if a file may be named after a client; an id may have a unit and @STREAM."""
    return may_be(named, stated_id) or named.startswith(f"{stated_id}@")


def _strangers(collection: Collection, pieces: Iterable[Evidence]) -> dict[str, Unreadable]:
    """Return, by file, the reason for each file of another broker or cluster."""
    on_cluster = list(filter(is_on_cluster, pieces))
    of_brokers = _of_other_brokers(collection, on_cluster)
    own = collection.settings.cluster
    others = (piece for piece in on_cluster if file_of(piece.source) not in of_brokers)
    elsewhere = _of_other_clusters(own, others)
    return of_brokers | {
        file.name: Unreadable(
            OTHER_CLUSTER,
            f"it is of cluster {elsewhere[file.place]}, and this collection is of cluster {own}",
        )
        for file in collection.files
        if file.name.startswith("brokers/") and file.place in elsewhere
    }


def _of_other_clusters(own: str, pieces: Iterable[ClusterEvidence]) -> dict[str, str]:
    """Return the cluster of each folder whose broker belongs to another cluster."""
    printed: dict[str, set[str]] = defaultdict(set)
    registered: dict[str, set[str]] = defaultdict(set)
    addresses: dict[str, set[str]] = defaultdict(set)
    for piece in pieces:
        if piece.kind == "broker_property" and piece.values["name"] == "brokerClusterName":
            printed[piece.place].add(piece.values["value"].strip())
        elif piece.kind == "broker_booted":
            addresses[piece.place].add(piece.values["address"])
        elif piece.kind in ("broker_registered", "broker_address", "broker_known"):
            registered[piece.values["address"]] |= {piece.values.get("cluster") or ""} - {""}
    if own not in set().union(*printed.values(), *registered.values()):
        return {}
    by_folder: dict[str, str] = {}
    for folder in printed.keys() | addresses.keys():
        of_name_servers = set().union(*(registered[address] for address in addresses[folder]))
        clusters = printed[folder] or of_name_servers
        if clusters and own not in clusters:
            by_folder[folder] = ", ".join(sorted(clusters))
    return by_folder


def _of_other_brokers(
    collection: Collection, on_cluster: list[ClusterEvidence]
) -> dict[str, Unreadable]:
    """Return, by file, the reason for each file of another broker."""
    directory = BrokerDirectory(known_brokers=set(collection.settings.brokers))
    for piece in on_cluster:
        directory.read(piece, 0)
    kinds = {file.name: file.kind for file in collection.files}
    logs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    stores: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for folder, file, name in _names(on_cluster):
        if kinds.get(file) == BROKER_LOG:
            logs[folder][file].add(name)
        elif kinds.get(file) == TOPICS:
            stores[folder][file].add(name)
    by_file: dict[str, Unreadable] = {}
    for folder in logs.keys() | stores.keys():
        own = _own_name(folder, logs.get(folder, {}), directory.known_brokers)
        for log, names in logs.get(folder, {}).items() if own else ():
            mixed = len(names & directory.known_brokers) > 1  # no line shows the owner
            if mixed:
                by_file[log] = Unreadable(
                    SEVERAL_BROKERS, f"it holds the logs of {' and '.join(sorted(names))}"
                )
            elif own not in names:
                by_file[log] = _of_broker(names, own)
        copies = stores.get(folder, {})
        shows_own = any(own in names for names in copies.values())
        for store, names in copies.items():
            if own and own not in names and (shows_own or names & directory.known_brokers):
                copy = store.rpartition("/")[0]
                by_file |= {
                    file: _of_broker(names, own)
                    for file, kind in kinds.items()
                    if kind in CONFIG_STORES and file.rpartition("/")[0] == copy
                }
    return by_file


def _names(pieces: Iterable[ClusterEvidence]) -> Iterator[tuple[str, str, str]]:
    """Yield the folder, file and broker name of each statement of a file about its owner."""
    for piece in pieces:
        file = file_of(piece.source)
        if piece.kind == "broker_booted":
            yield piece.place, file, piece.values["broker"]
        elif piece.kind == "broker_property" and piece.values["name"] == "brokerName":
            yield piece.place, file, piece.values["value"]
        elif piece.kind == "broker_topic" and not piece.values["topic"].startswith(
            SYNC_MEMBER_TOPIC
        ):
            yield piece.place, file, piece.values["topic"]


def _own_name(folder: str, logs: Mapping[str, set[str]], known_brokers: set[str]) -> str:
    """Return the broker to which a folder belongs, judging by its logs and name; empty if
    undecided.
    """
    names = set().union(*logs.values())
    for candidates in ({folder} & names, names & known_brokers, names, {folder} & known_brokers):
        if candidates:
            return next(iter(candidates)) if len(candidates) == 1 else ""
    return ""


def _of_broker(names: Iterable[str], own: str) -> Unreadable:
    why = f"it is of broker {', '.join(sorted(names))}, and its folder is of broker {own}"
    return Unreadable(OTHER_BROKER, why)
