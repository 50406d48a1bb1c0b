"""An output of mqadmin as a whole: its arguments, its number of rows and its failures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard

from rebalance_core.contracts.document_facts import SUBJECTS
from rebalance_core.contracts.fact_declaration import (
    CLUSTER,
    COMMIT,
    GROUP,
    ONE_A_PLACE,
    TOPIC,
    Thinning,
)
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.ingest import collection
from rebalance_core.ingest.collection import CollectedFile
from rebalance_core.ingest.fact import UNPARSABLE_DOCUMENT, Fact, Stated, Unread
from rebalance_core.ingest.fact_subjects import answers
from rebalance_core.ingest.parse.command_output import is_partial
from rebalance_core.ingest.piece import Piece
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX, is_retry_topic, retry_topic
from rebalance_core.model.system_groups import REVIVE_GROUP
from rebalance_core.protocol.routes import PERM_READ

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ClusterEvidence,
        DumpValues,
        GroupEvidence,
        NoMembersValues,
        QueueProgressPiece,
        TopicCreatedValues,
        TopicsEvidence,
        TopicUpdatedValues,
    )

    Evidence: TypeAlias = Piece[str, Mapping[str, object]]
else:
    Evidence = Piece

_NO_ROWS = (
    "no_output", "no_members", "admin_error", "group_connection", "same_subscription",
    "progress_total",
)  # fmt: skip


def dump_fact(
    file: CollectedFile, results: Collection[Fact | Unread], brokers: Collection[str]
) -> Stated[Literal["dump"], DumpValues]:
    """Return the fact `dump` with command, group, topic, broker, client_id (None if not requested),
    rows, error and, for a client's answer, queues_told.

    ``rejected`` counts lines that were not understood. An output is ``partial`` if it was cut off
    or rows were refused, so that rows may be missing.
    """
    command, argument = file.arguments[:2]
    kinds = [piece.kind for piece in results if isinstance(piece, Stated)]
    values: DumpValues = {
        "command": command,
        "group": None,
        "topic": None,
        "broker": None,
        "client_id": file.arguments[2] if len(file.arguments) > 2 else None,
        "rows": sum(kind not in _NO_ROWS for kind in kinds),
        "rejected": len(results) - len(kinds),
        "error": _error(results),
        "cut_off": any(
            isinstance(piece, Unread) and piece.code == UNPARSABLE_DOCUMENT for piece in results
        ),
        "partial": is_partial(results),
    }
    if command == "consumerConnection" and file.place:
        values["group"] = argument
    elif command == "consumerConnection":
        values["group"], values["broker"] = asked(argument, _subscriptions(results), brokers)
    elif command == "consumerStatus":
        values["group"] = argument
        queues_shown = [f.values["queues_told"] for f in answers(results) if f.kind == "client"]
        of_client = values["client_id"] is not None
        values["queues_told"] = any(queues_shown) if of_client or queues_shown else None
    elif command == "consumerProgress":
        values["group"] = file.group or _group_of_progress(argument, results)
    elif command in ("topicRoute", "topicStatus"):
        values["topic"] = argument
    elif command in (*collection.STORE_COMMANDS, collection.EXPORT_METADATA):
        values["broker"] = asked("-" + argument, (), brokers)[1]
    return Stated("dump", file.written_ms, values, file.name)


def asked(
    argument: str, subscriptions: Iterable[tuple[str, str]], brokers: Collection[str]
) -> tuple[str, str]:
    """Return the group and broker in ``<group>-<broker>``; no broker if it ends with no known one.

    If the group is unknown, its retry topic among the subscriptions shows it.
    """
    ends = [broker for broker in brokers if argument.endswith("-" + broker)]
    broker = max(ends, key=len, default="")
    if broker:
        return argument[: -len(broker) - 1], broker
    retry = (topic for topic, _ in subscriptions if is_retry_topic(topic))
    groups = (topic.removeprefix(RETRY_TOPIC_PREFIX) for topic in retry)
    return next((group for group in groups if argument.startswith(group + "-")), argument), ""


def _subscriptions(results: Iterable[Fact | Unread]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for fact in answers(results):
        if fact.kind in ("member", "group_connection"):
            pairs += fact.values["subscriptions"]
        elif fact.kind == "no_members":
            pairs += _of_refusal(fact.values)
    return pairs


def group_of_rows(argument: str, with_clients: bool, topic: str) -> str:
    """Return the group in ``consumerProgress-<group>``, ``-s-<group>`` or ``-t-<topic>-<group>``.

    Args:
        argument: the part of the file's name after the command.
        with_clients: whether it was run with ``-s true``.
        topic: the topic in the rows.
    """
    return (argument.removeprefix("s-") if with_clients else argument).removeprefix(f"t-{topic}-")


def _group_of_progress(argument: str, results: Collection[Fact | Unread]) -> str | None:
    for fact in answers(results):
        if fact.kind == "queue_progress":
            v = fact.values
            return group_of_rows(argument, v["with_clients"], v["topic"])
    # without rows, only the name shows whether -s was used, or where a topic ends
    group = argument.removeprefix("s-")
    return None if group in collection.EVERYTHING or group.startswith("t-") else group


def _error(results: Collection[Fact | Unread]) -> str:
    """Return the class, code and message of the failure, or empty values if none was printed."""
    for fact in answers(results):
        if fact.kind == "admin_error":
            code = fact.values["code"]
            parts = (fact.values["exception"], "" if code is None else f"CODE {code}")
            return " ".join((*filter(None, parts), fact.values["message"])).strip()
    return ""


# The subject of a fact: a group, a topic, the cluster or a commit.
#
# All evidence about a subject is combined in one place; pieces are plain values, so that they can
# be sent between machines.
PERM_INHERIT = 1
"""PermName.PERM_INHERIT."""


_STORES = {
    "topic_config": (TOPIC, "topic"),
    "subscription_group": (GROUP, "consumer_group"),
    "request_mode": (GROUP, "consumer_group"),
    "order_info": (GROUP, "consumer_group"),
    "proxy_mode": (CLUSTER, ""),
    "exported_topic": (TOPIC, "topic"),
    "exported_subscription_group": (GROUP, "consumer_group"),
    "committed_offset": (COMMIT, "consumer_group"),
    "local_offset": (COMMIT, "consumer_group"),
    "store_form": (CLUSTER, ""),
    "revive_metrics": (CLUSTER, ""),
    "pop_counts": (GROUP, "consumer_group"),
}
"""Facts from stores: the part that combines them, and the field that names the group or topic."""
_FACTS_ONLY = ("subscription_group", "order_info", "pop_counts", "dump")
"""Facts from stores and dumps that are used only for `observed_facts`."""
_REPEATED = ("route_broker", "broker_local", "broker_topic", "proxy_local", "lite_topic")
"""Evidence about the cluster from dumps and from facts about other subjects, repeated at each
place.
"""
GROUP_CONNECTED = "group_connected"
"""Evidence of a retry topic: a broker registered a member of the group, and with that heartbeat
creates the topic unless it exists.
"""


def thinning_of(part: str) -> dict[str, Thinning]:
    """Return how repeated evidence of a part is thinned, by its kind."""
    of_logs = {
        fact.kind: fact.thinning
        for fact in LOG_FACTS.values()
        if fact.part == part and fact.thinning is not None
    }
    others = {CLUSTER: _REPEATED, TOPIC: (GROUP_CONNECTED,)}.get(part, ())
    return of_logs | dict.fromkeys(others, ONE_A_PLACE)


def is_fact_only(kind: str) -> bool:
    """Return True for evidence that only `observed_facts` uses; it does not bound a log."""
    return kind in _FACTS_ONLY or (kind in LOG_FACTS and LOG_FACTS[kind].facts_only)


def _address(kind: str) -> tuple[str, str]:
    """Return the part to which a kind of fact belongs, and the field with its group or topic."""
    if kind in LOG_FACTS:
        return LOG_FACTS[kind].part, LOG_FACTS[kind].key
    return _STORES.get(kind, ("", ""))


@dataclass(frozen=True)
class Shown:
    """Facts that the logged connections also show, each of them once.

    Most lines would only repeat them; as in `Thinning`, a later statement counts only if its time
    is earlier.

    Attributes:
        first_ms: the earliest time of each fact, by kind and subject.
    """

    first_ms: dict[tuple[str, str], int] = field(default_factory=dict)

    def is_new(self, kind: str, about: str, at_ms: int | None) -> bool:
        """Return True, and record it, if no earlier line shows the same at that time or before."""
        first_ms = self.first_ms.get((kind, about))
        if first_ms is not None and first_ms <= (at_ms or 0):
            return False
        self.first_ms[kind, about] = at_ms or 0
        return True


def evidence_of(
    file: CollectedFile, fact: Fact, position: int, brokers: Collection[str], shown: Shown
) -> Iterator[Evidence]:
    """Yield the fact once for each part that uses it; nothing for facts that no table needs.

    Args:
        file: the file that states it.
        fact: the fact.
        position: its place in the file.
        brokers: known broker names, with which the names of ``consumerConnection`` dumps end.
        shown: the facts shown by earlier facts of the file.
    """
    if file.kind == collection.ADMIN:
        at_ms = file.written_ms if fact.at_ms is None else fact.at_ms
        piece = Evidence(
            CLUSTER, "", fact.kind, at_ms, file.place, position, fact.source, fact.values
        )
        yield from _of_dump(file, piece, brokers)
        return
    part, name = _address(fact.kind)
    if not part or (file.kind == collection.GROUPS and not file.newest):
        return
    values = fact.values
    if fact.kind == "local_offset":
        client_id, group = file.arguments
        values = {**values, "client_id": client_id, "consumer_group": group}
    piece = Evidence(
        part,
        str(values[name]) if name else "",
        fact.kind,
        file.written_ms if fact.at_ms is None else fact.at_ms,
        file.place,
        position,
        fact.source,
        values,
    )
    yield piece
    if part == TOPIC:
        yield from _of_topic(file, piece)
    elif piece.kind in ("offset_went_back", "offset_reset"):
        yield replace(piece, part=COMMIT)
        if piece.kind == "offset_reset":
            # readers of a refused commit need it
            yield _of_cluster(piece, "reset_kept", values)
    elif (
        piece.kind == "consumer_connected"
        and _beats(piece)
        and shown.is_new(GROUP_CONNECTED, piece.key, piece.at_ms)
    ):
        yield _of_retry_topic(piece)
    if file.kind == collection.BROKER_LOG:
        local = values.get("local")  # the broker's end of a connection is its own address
        if local and shown.is_new("broker_local", str(local), piece.at_ms):
            yield _of_cluster(piece, "broker_local", {"address": local})
    elif values.get("proxy_addr") and not values["remote"]:
        yield _of_cluster(piece, "proxy_local", {"address": values["proxy_addr"]})


_ON_CLUSTER, _ON_GROUP = frozenset(SUBJECTS["cluster"]), frozenset(SUBJECTS["group"])
_ON_TOPIC = frozenset(SUBJECTS["topics"])


def is_on_cluster(piece: Evidence) -> TypeGuard[ClusterEvidence]:
    """Return True for facts of brokers, name servers, proxies and dumps about cluster processes."""
    return piece.kind in _ON_CLUSTER


def is_on_group(piece: Evidence) -> TypeGuard[GroupEvidence]:
    """Return True for facts about a group's members and their events."""
    return piece.kind in _ON_GROUP


def is_on_topic(piece: Evidence) -> TypeGuard[TopicsEvidence]:
    """Return True for facts about a topic's queues and their ends."""
    return piece.kind in _ON_TOPIC


LITE = "LITE"
TYPE_ATTRIBUTES = ("message.type", "+message.type")
"""The forms in which a broker stores it and mqadmin receives it."""


def is_lite(piece: Evidence) -> bool:
    """Return True if a store has its topic with type LITE (5.5)."""
    if piece.part != TOPIC:
        return False
    attributes = piece.values.get("attributes")
    return isinstance(attributes, Mapping) and any(
        attributes.get(name) == LITE for name in TYPE_ATTRIBUTES
    )


def changes_queues(piece: Evidence) -> bool:
    """Return True for a line in a broker's log that changes the queues which members allocate.

    A retry topic begins with its group, and each member reads it.
    """
    if not is_on_topic(piece) or is_retry_topic(piece.key):
        return False
    if piece.kind == "topic_updated":
        return _readable(piece.values["old"]) != _readable(piece.values)
    return piece.kind in ("topic_created", "topic_deleted")


def _readable(values: TopicCreatedValues | TopicUpdatedValues) -> int:
    """Return the number of queues that members may read under a topic's setup."""
    return values["read"] if values["perm"] & PERM_READ else 0


def _beats(piece: Evidence) -> bool:
    """Return True if the member on a connection sends the broker heartbeats.

    Members behind a proxy, with gRPC or remote channels, send the broker no heartbeat.
    """
    values = piece.values
    return bool(piece.place and not values.get("protocol") and not values.get("remote"))


def _of_retry_topic(piece: Evidence) -> Evidence:
    """Return the evidence about a group's retry topic at a broker, given by its connection
    there.
    """
    return Evidence(
        TOPIC,
        retry_topic(piece.key),
        GROUP_CONNECTED,
        piece.at_ms,
        piece.place,
        piece.position,
        piece.source,
        {},
    )


def _of_topic(file: CollectedFile, piece: Evidence) -> Iterator[Evidence]:
    """Yield what a line or store about a topic shows about the cluster.

    A broker has a topic with its own name, created inheritable with one queue
    (``TopicConfigManager``).
    """
    if changes_queues(piece):
        yield _of_cluster(piece, "queues_changed", {"topic": piece.key})
    if is_lite(piece):
        yield _of_cluster(piece, "lite_topic", {"topic": piece.key})
    if file.kind == collection.TOPICS and is_on_topic(piece) and piece.kind == "topic_config":
        v = piece.values
        if v["perm"] & PERM_INHERIT and v["read_queue_nums"] == 1:
            yield _of_cluster(piece, "broker_topic", {"topic": v["topic"]})


def _of_cluster(piece: Evidence, kind: str, values: Mapping[str, object]) -> Evidence:
    """Return the piece as evidence on the cluster, with this kind and these values."""
    return Evidence(
        CLUSTER, "", kind, piece.at_ms, piece.place, piece.position, piece.source, values
    )


def _of_progress(
    file: CollectedFile, argument: str, piece: QueueProgressPiece
) -> Iterator[Evidence]:
    """Yield the evidence in a row of consumerProgress about its group, its topic and, if brokers
    read their revive topic, the cluster.
    """
    v = piece.values
    group = file.group or group_of_rows(argument, v["with_clients"], v["topic"])
    yield replace(piece, part=GROUP, key=group)
    yield replace(piece, part=COMMIT, key=group)
    yield replace(piece, part=TOPIC, key=v["topic"])
    if group == REVIVE_GROUP:
        progress = {
            "broker_name": v["broker_name"],
            "queue_id": v["queue_id"],
            "broker_offset": v["broker_offset"],
            "consumer_offset": v["consumer_offset"],
        }
        yield _of_cluster(piece, "revive_progress", progress)


def _of_dump(file: CollectedFile, piece: Evidence, brokers: Collection[str]) -> Iterator[Evidence]:
    """Yield the group or topic for which a dump was requested, from its file's name."""
    command, argument = file.arguments[:2]
    if command == "consumerConnection":
        group, broker = argument, file.place
        if not broker:
            group, broker = asked(argument, _subscribed(piece), brokers)
        listed = replace(piece, part=GROUP, key=group, place=broker)
        yield listed
        if listed.kind == "member" and _beats(listed):
            yield _of_retry_topic(listed)
    elif command == "consumerStatus":
        client = {"client_file": file.arguments[2]} if len(file.arguments) > 2 else {}
        yield replace(piece, part=GROUP, key=argument, values={**piece.values, **client})
    elif is_on_group(piece) and piece.kind == "queue_progress":
        yield from _of_progress(file, argument, piece)
    elif command == "topicRoute" and file.place:
        return  # a proxy returns its own address for every broker
    elif command in collection.STORE_COMMANDS or command == collection.EXPORT_METADATA:
        yield from _of_store_command(file, piece, brokers)
    elif piece.kind == "queue_mapping":
        yield replace(piece, values={"topic": argument})
    elif command in ("topicRoute", "topicStatus"):
        yield replace(piece, part=TOPIC, key=argument)
        if piece.kind == "route_broker":
            yield piece
    elif piece.kind in ("broker", "server_settings"):
        yield piece


def _subscribed(piece: Evidence) -> Iterable[tuple[str, str]]:
    """Return the group's subscriptions from the list of ``consumerConnection``, or its retry topic
    from the refusal that names it.
    """
    if is_on_group(piece) and piece.kind in ("member", "group_connection"):
        return piece.values["subscriptions"]
    if is_on_group(piece) and piece.kind == "no_members":
        return _of_refusal(piece.values)
    return ()


def _of_refusal(values: NoMembersValues) -> list[tuple[str, str]]:
    return [(retry_topic(values["offline_group"]), "*")] if "offline_group" in values else []


def _of_store_command(
    file: CollectedFile, piece: Evidence, brokers: Collection[str]
) -> Iterator[Evidence]:
    """Yield an export requested from brokers, or the contents that local mode read from a broker's
    store.
    """
    _, broker = asked("-" + file.arguments[1], (), brokers)
    part, name = _STORES.get(piece.kind, ("", ""))
    if piece.kind == "rocksdb_export":
        values = {**piece.values, "argument": file.arguments[1]}
        yield replace(piece, place=broker, values=values)
    elif part and broker and (part != GROUP or file.newest):
        stored = replace(piece, part=part, key=str(piece.values[name]), place=broker)
        yield stored
        if is_lite(stored):
            yield _of_cluster(stored, "lite_topic", {"topic": stored.key})


def of_document(
    file: CollectedFile, results: Collection[Fact | Unread], brokers: Collection[str]
) -> Iterator[Evidence]:
    """Yield the evidence from a document as a whole: that it was collected, and how much it
    contained.
    """
    if file.kind == collection.ADMIN:
        dump = dump_fact(file, results, brokers)
        fact: Stated[str, Mapping[str, object]] = dump
        group, place = dump.values["group"] or None, file.place or dump.values["broker"] or ""
        stored = {piece.kind for piece in results if isinstance(piece, Stated)}
        if place and file.newest and "subscription_group" in stored:
            yield _group_configs(file, results, place)
        elif place and file.newest and "exported_subscription_group" in stored:
            configs = _group_configs(file, results, place)
            yield replace(configs, kind="exported_group_configs")
    elif file.kind == collection.GROUPS and file.newest:
        if results and not any(isinstance(piece, Stated) for piece in results):
            return  # it is not such a store, or only part of one
        yield _group_configs(file, results, file.place)
        return
    elif file.kind == collection.MODES:
        if any(isinstance(piece, Unread) for piece in results):
            return  # a missing entry may be one that could not be read
        fact = Fact("request_modes", file.written_ms, {}, file.name)
        group, place = None, file.place
    else:
        return
    part = CLUSTER if group is None else GROUP
    yield Evidence(part, group or "", fact.kind, fact.at_ms, place, 0, fact.source, fact.values)


def _group_configs(file: CollectedFile, results: Collection[Fact | Unread], place: str) -> Evidence:
    """State the number of groups read from a broker's store and the number of refused entries."""
    kinds = [piece.kind for piece in results if isinstance(piece, Stated)]
    groups = sum(kind in ("subscription_group", "exported_subscription_group") for kind in kinds)
    count = {"groups": groups, "rejected": len(results) - len(kinds)}
    return Evidence(CLUSTER, "", "group_configs", file.written_ms, place, 0, file.name, count)
