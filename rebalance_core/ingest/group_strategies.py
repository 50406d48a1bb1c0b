"""The strategy of each member: client logs and ``consumerStatus`` show names, not parameters.

Two parameters are visible in results: CONFIG returns its list unchanged (rocketmq.md §2.4), and
every queue of MACHINE_ROOM's rooms has an owner, so the rooms of all results are its rooms
(rocketmq.md §2.5). MACHINE_ROOM_NEARBY's rooms are not visible anywhere, because the user's code
resolves them (rocketmq.md §2.6).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

from rebalance_core.contracts.document_facts import SUBJECTS
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.parse.wire_versions import version_of_ordinal
from rebalance_core.ingest.rows import Finding, finding
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import LITE_PULL
from rebalance_core.model.languages import GO
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_queues
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.model.verdicts import INFO, WARNING
from rebalance_core.model.versions import nearest_version
from rebalance_core.protocol.client_reports import tells_queues
from rebalance_core.protocol.shares import MemberStrategy, shares_of
from rebalance_core.strategies import custom, make_strategy, parse_strategy
from rebalance_core.strategies.machine_room_nearby import NEARBY, MachineRoomNearby
from rebalance_core.strategies.registry import CANDIDATES, parameters_of

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ConsumerConnectedPiece,
        QueueProgressPiece,
        StrategiesEvidence,
    )

# The strategy of each member: client logs and ``consumerStatus`` show names, not parameters.
#
# Results show two parameters: CONFIG returns its list unchanged (rocketmq.md §2.4), and every
# queue of MACHINE_ROOM's rooms has an owner, so the rooms of all results are its rooms
# (rocketmq.md §2.5). Nothing shows MACHINE_ROOM_NEARBY's rooms, because the user's code resolves
# them (rocketmq.md §2.6).
CONFIG, MACHINE_ROOM = "CONFIG", "MACHINE_ROOM"
SEVERAL = 2
_ROOM_SEPARATOR = "@"  # AllocateMessageQueueByMachineRoom
_ONE_ROOM = {"client_rooms": {"": "unknown"}, "broker_rooms": {"": "unknown"}}
"""If no file shows the rooms, all clients and brokers are assumed to be in one room, because a
member without a room would freeze the group.
"""


@dataclass
class GroupStrategies:
    """The known strategies of a group.

    Attributes:
        members: the strategy text by client id, for each client shown by any file.
        group: the text for the others; None if no file or given row states it.
        unknown: by client id, names of strategies that RocketMQ does not have or whose parameters
            no file states and nothing can replace.
        assumed: texts whose parameters no file or given row states, by the field's name.
        roomless: clients and brokers without a room in the given text, although their allocation
            worked.
    """

    members: dict[str, str] = field(default_factory=dict)
    group: str | None = None
    unknown: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    roomless: set[str] = field(default_factory=set)

    def take_instead(self, text: str, other: str) -> None:
        """Replace a text wherever it occurs."""
        self.group = other if self.group == text else self.group
        for texts in (self.members, self.assumed):
            texts.update({key: other for key, strategy in texts.items() if strategy == text})


def group_strategies(
    pieces: Iterable[Evidence], stated: str | None, presence: Presence, context: ClusterContext
) -> GroupStrategies:
    """Return the strategies of a group.

    Args:
        pieces: evidence on the group, ordered by time and place.
        stated: the text in the collection's consumer_groups.jsonl, which gives the parameters for
            members whose strategy has the same name.
        presence: the presence of its members.
        context: the context, used for times.
    """
    shown = _shown(pieces, context)
    strategies = GroupStrategies(group=stated)
    rooms = _rooms(shown.results[c] for c in shown.results if shown.names.get(c) == MACHINE_ROOM)
    alive = {
        client_id for client_id in presence.memberships if presence.channels(client_id, shown.at_ms)
    }
    if (
        rooms
        and _name(stated) != MACHINE_ROOM
        and not alive <= shown.results.keys() | shown.held.keys()
    ):
        # the others' shares may be in other rooms
        text = str(make_strategy(MACHINE_ROOM, {"consumer_idcs": rooms}))
        strategies.assumed[f"parameters of {MACHINE_ROOM}"] = text
    for client_id, name in shown.names.items():
        results, held = shown.results.get(client_id, {}), shown.held.get(client_id, [])
        member = _text(name, stated, results, rooms, strategies.assumed)
        if member is None:
            strategies.unknown[client_id] = name
            continue
        strategies.members[client_id] = member
        if member == stated and (results or held):
            queues = [queue for of_topic in results.values() for queue in of_topic]
            strategies.roomless |= _roomless(member, client_id, queues + held)
    if strategies.members and not _stands(stated, shown.names):
        texts = list(strategies.members.values())
        strategies.group = max(sorted(set(texts)), key=texts.count)
    of_all = stated is not None and {stated}.issuperset(strategies.members.values())
    if _name(strategies.group) == CONFIG and not of_all:
        # a list belongs to one member, so without evidence of whose it is, it applies to no other
        for client_id in presence.memberships.keys() - strategies.members.keys():
            strategies.unknown.setdefault(client_id, CONFIG)
    return strategies


@dataclass
class _Shown:
    """The members' strategies as shown by files.

    Attributes:
        names: the names, by client id.
        results: the strategy's results by client id and topic, if a log has the queues.
        held: queues by client id, as shown by its ``consumerStatus``.
        at_ms: when queues were last shown.
    """

    names: dict[str, str] = field(default_factory=dict)
    results: dict[str, dict[str, Sequence[Sequence[object]]]] = field(default_factory=dict)
    held: dict[str, list[Sequence[object]]] = field(default_factory=dict)
    at_ms: int = 0


_KINDS = frozenset(SUBJECTS["strategies"])


def _of_strategies(piece: Evidence) -> TypeGuard[StrategiesEvidence]:
    return piece.kind in _KINDS


def _shown(pieces: Iterable[Evidence], context: ClusterContext) -> _Shown:
    shown = _Shown()
    for piece in filter(_of_strategies, pieces):
        if piece.kind in ("allocated", "broker_allocated"):
            shown.names[piece.values["client_id"]] = piece.values["strategy"]
        if piece.kind == "allocated":
            divided = piece.values
            if "queues" in divided:
                of_topics = shown.results.setdefault(divided["client_id"], {})
                of_topics[divided["topic"]] = divided["queues"]
                shown.at_ms = context.time_of(piece)
        elif piece.kind == "client_queue":
            held, client_id = piece.values, piece.values.get("client_file")
            if client_id and not held["dropped"]:
                queue = [held["topic"], held["broker_name"], held["queue_id"]]
                shown.held.setdefault(client_id, []).append(queue)
        elif piece.kind == "client" and piece.values["strategy"]:
            client_id = piece.values.get("client_file", "")
            # MACHINE_ROOM_NEARBY's class hides its inner strategy, so the log's name is better
            shown.names.setdefault(client_id, piece.values["strategy"])
            shown.held.setdefault(client_id, [])
            shown.at_ms = context.time_of(piece)
    for client_id, name in shown.names.items():
        if name in (CONFIG, MACHINE_ROOM) and shown.held.get(client_id):
            # it holds the listed queues, or its share
            shown.results.setdefault(client_id, {"": shown.held[client_id]})
    return shown


def _stands(stated: str | None, names: Mapping[str, str]) -> bool:
    """Return True if the stated strategy also applies to members whose strategy no file shows.

    The stated strategy is outdated if several members show theirs and none uses it.
    """
    shown = set(names.values())
    shown |= {f"{name}-AVG" for name in shown}
    return stated is not None and (len(names) < SEVERAL or _name(stated) in shown)


def _name(text: str | None) -> str:
    return (text or "").partition("(")[0]


def _rooms(results: Iterable[Mapping[str, Sequence[Sequence[object]]]]) -> list[str]:
    brokers = {str(q[1]) for topics in results for qs in topics.values() for q in qs}
    return sorted({b.partition(_ROOM_SEPARATOR)[0] for b in brokers if _ROOM_SEPARATOR in b})


def _roomless(text: str, client_id: str, queues: Sequence[Sequence[object]]) -> set[str]:
    """Return which of the client and its queues' brokers have no known room (upstream throws)."""
    strategy = parse_strategy(text)
    if not isinstance(strategy, MachineRoomNearby):
        return set()
    held = {MessageQueue(str(t), str(b), int(str(q))) for t, b, q in queues}
    roomless = {queue.broker_name for queue in held if not strategy.rooms.known_room(queue)}
    return roomless if strategy.rooms.known_room(client_id) else roomless | {client_id}


def _text(
    name: str,
    stated: str | None,
    results: Mapping[str, Sequence[Sequence[object]]],
    rooms: list[str],
    assumed: dict[str, str],
) -> str | None:
    """Return the member's strategy text, or None if RocketMQ does not have it or its parameters are
    missing.
    """
    if name == NEARBY:
        name = _name(stated) if stated and stated.startswith(name) else f"{name}-AVG"
    same_name = _name(stated) == name
    if name == CONFIG and results:
        queues = max(results.values(), key=len)
        config = sort_queues(MessageQueue(str(t), str(b), int(str(q))) for t, b, q in queues)
        return str(make_strategy(CONFIG, {"config": config}))
    if same_name:
        return stated
    if name == MACHINE_ROOM and rooms:
        return str(make_strategy(MACHINE_ROOM, {"consumer_idcs": rooms}))
    if name in (CONFIG, MACHINE_ROOM):
        return None  # without a list or rooms RocketMQ drops all queues, or fails
    try:
        text = str(make_strategy(name, _ONE_ROOM if name.startswith(NEARBY) else None))
    except UsageError:
        return None
    if parameters_of(name):
        assumed[f"parameters of {name}"] = text
    return text


# The strategy that explains the current ownership of a group if no file names its strategy.
#
# ``consumerProgress -s true`` lists every queue of the group's topics with the holder's address. A
# known strategy that gives exactly this ownership for the members at that time may be the group's.
# Otherwise, it may be a strategy that fits all holders shown, in which case queues without a holder
# are the fault rather than the strategy. If there is none, the group's ownership is UNKNOWN rather
# than a difference.
LISTED = 5
"""Maximum number of clients and brokers that a finding names."""
RING = "CONSISTENT_HASH"
GO_RINGS = tuple(
    f"{RING}(virtual_nodes={number})"
    for number in (1, 2, 3, 4, 5, 8, 16, 20, 32, 50, 64, 100, 128, 150, 160, 200, 256, 500, 1000)
)
"""Strategies for Go members, whose ring has no default number of points, unlike Java's (10)."""
QUIET_MS = MINUTE_MS
"""Ownership reflects the members once none has joined or left for this time (rocketmq.md §6.4)."""

HOLDERS = 2
"""A single holder fits many strategies, so it can only support the assumed one."""

Owners = dict[MessageQueue, str | None]
"""Each queue's holder: a client id, an address that belongs to no member, or None for N/A."""


def fit_strategy(
    group: str,
    pieces: Iterable[Evidence],
    presence: Presence,
    assumed: str,
    context: ClusterContext,
    languages: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str | None, list[Finding]]:
    """Return the strategy that fits all dumps, and findings.

    Each member allocates with its own client's variant, a Go member with Go's ring.

    Args:
        group: the group.
        pieces: its evidence.
        presence: the presence of its members.
        assumed: the strategy to try first.
        context: the cluster.
        languages: the languages by client id; missing ones are unknown.

    Returns:
        The first of the assumed strategy, `CANDIDATES` and custom ones that explains all dumps;
        otherwise, in a group with Go members, the only one of `GO_RINGS` that does; otherwise the
        first that explains every holder in them; None if no dump shows one or none explains them.
    """
    pieces = list(pieces)
    whole = [*_dumps(pieces, presence, context)]
    dumps = [
        (clients, owners)
        for clients, owners in whole
        if any(
            owner and MemberStrategy(owner, text, languages.get(owner)).share_known
            for owner in owners.values()
            for text in (assumed, *CANDIDATES)
        )
    ]
    if not dumps and not whole:
        cut = "the dumps that show the holders of its queues may lack rows"
        return None, [_unknown(group, assumed, cut)] if _partial_topics(pieces) else []
    if not dumps:
        return None, [_unknown(group, assumed, "no dump names a holder of its queues")]
    holders = {owner for _, owners in dumps for owner in owners.values()} - {None}
    texts = [*_tried(assumed)]
    for text in texts:
        if all(_explains(text, clients, owners, languages) for clients, owners in dumps):
            return text, [_inferred(group, text)]
    if len(holders) >= HOLDERS and (ring := _go_ring(dumps, languages)):
        return ring, [_inferred(group, ring)]
    for text in texts if len(holders) >= HOLDERS else [assumed]:
        if all(_explains(text, *dump, languages, unheld=True) for dump in dumps):
            return text, [_inferred(group, text)]
    tried = ", ".join(_tried(assumed))
    return None, [_unknown(group, assumed, "no known strategy explains its live ownership", tried)]


def _go_ring(
    dumps: Iterable[tuple[list[str], Owners]],
    languages: Mapping[str, str],
    of_others: str | None = None,
) -> str | None:
    """Return the only strategy in `GO_RINGS` with which Go members take the queues in the dumps, or
    None if none or several fit or there is no Go member.

    ``of_others`` is the strategy of all other members, or None if it is the same.
    """
    dumps = list(dumps)
    if not any(languages.get(client) == GO for clients, _ in dumps for client in clients):
        return None
    rings = [
        ring
        for ring in GO_RINGS
        if all(_explains(of_others or ring, *dump, languages, of_go=ring) for dump in dumps)
    ]
    return rings[0] if len(rings) == 1 else None


def check_parameters(
    group: str,
    pieces: Iterable[Evidence],
    presence: Presence,
    strategies: GroupStrategies,
    context: ClusterContext,
    languages: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Return a finding if the strategy is known only by name, or its rooms only from live
    ownership.

    It is known only by name if live ownership does not match the assumed parameters; if these are
    rooms, which have no default, and no dump confirms them; or if members whose allocation worked
    have no room in the given text. Assumed rooms are replaced by the prefixes of names if only
    these fit all dumps.

    Args:
        group: the group.
        pieces: its evidence.
        presence: the presence of its members.
        strategies: the strategies named in files; assumed rooms are replaced here.
        context: the cluster.
        languages: the languages by client id; missing ones are unknown.
    """
    text = strategies.group or ""
    by_text = (
        strategy
        for strategy in sorted({text, *strategies.members.values()})
        if _reads_ids(strategy)
    )
    if context.redacted and (named := next(by_text, "")):
        why = f"{group} allocates with {named}, which reads client ids, and these are redacted"
        return [_without_parameters(group, named, why, "Audit the original collection.")]
    if strategies.roomless:
        names = ", ".join(sorted(strategies.roomless)[:LISTED])
        why = f"{group} allocates, although {text} has no room for {names}"
        return [_without_parameters(group, text, why)]
    if not strategies.assumed:
        return []
    dumps = [*_dumps(pieces, presence, context)]
    # rooms may leave out queues by design, whereas a ring does not
    ring = text.startswith(RING)
    if not all(_explains(text, *dump, languages, unheld=ring) for dump in dumps):
        if text.startswith(NEARBY) and text in strategies.assumed.values():
            # like the resolver in RocketMQ's own example
            from_names = str(make_strategy(text.partition("(")[0]))
            if all(_explains(from_names, *dump, languages) for dump in dumps):
                strategies.take_instead(text, from_names)
                return [_inferred(group, from_names)]
        if ring and (of_go := _go_ring(dumps, languages, text)):
            go = (client_id for client_id, language in languages.items() if language == GO)
            strategies.members.update(dict.fromkeys(go, of_go))
            return [_inferred(group, of_go)]
        why = f"The live ownership of {group} does not match {text}, whose parameters are assumed"
        return [_without_parameters(group, text, why)]
    if not dumps and any(
        strategy.startswith(MACHINE_ROOM) for strategy in strategies.assumed.values()
    ):
        why = (
            f"No file shows all machine rooms of {group}, and no dump shows who holds all its "
            "queues"
        )
        return [_without_parameters(group, text, why)]
    return []


def assumed_of_departed(
    group: str,
    pieces: Iterable[Evidence],
    presence: Presence,
    strategies: GroupStrategies,
    context: ClusterContext,
    proxied: Collection[str],
) -> list[Finding]:
    """Return a finding if members that have left are assumed to have used the present ones'
    strategy.

    They may have been stopped to change it. Nothing is assumed for a member whose strategy is shown
    by a file, or by a dump of its queues' holders from the time when it was present.

    Args:
        group: the group.
        pieces: its evidence.
        presence: the presence of its members.
        strategies: the strategies named in files or shown by a dump.
        context: the cluster.
        proxied: clients behind proxies, which use no strategy.
    """
    departed = {
        client_id
        for client_id, memberships in presence.memberships.items()
        if memberships and all(until is not None for _, _, until in memberships)
    }
    departed -= {*strategies.members, *strategies.unknown, *proxied}
    if strategies.group is None or not departed:
        return []
    for clients, _ in _dumps(pieces, presence, context):
        departed -= set(clients)
    if not departed:
        return []
    names = ", ".join(sorted(departed)[:LISTED]) + (", ..." if len(departed) > LISTED else "")
    members = "1 member" if len(departed) == 1 else f"{len(departed)} members"
    return [
        finding(
            "INGEST_ASSUMED",
            f"No file shows the strategy of {members} of {group} that left ({names}): "
            f"{strategies.group} is assumed. If they used another strategy, the past owners shown "
            "here are wrong.",
            "Collect the clients' logs, continue a night that shows these members (--state), or "
            "name the strategy in the collection's consumer_groups.jsonl.",
            consumer_group=group,
            evidence={"strategy of members that left": strategies.group, "clients": names},
        )
    ]


def _reads_ids(strategy: str) -> bool:
    """Return True if owners depend on the text of client ids, not only on their order."""
    return strategy.startswith((RING, f"GO_{RING}", NEARBY)) or _name(strategy) in custom.names(
        custom.STRATEGIES
    )


_NAME_IT = "Name the strategy with its parameters in the collection's consumer_groups.jsonl."


def _without_parameters(group: str, strategy: str, why: str, remedy: str = _NAME_IT) -> Finding:
    return finding(
        "INGEST_STRATEGY_UNKNOWN",
        f"{why}: its ownership is UNKNOWN and cannot be compared.",
        remedy,
        WARNING,
        consumer_group=group,
        evidence={"strategy": strategy},
    )


def _dumps(
    pieces: Iterable[Evidence],
    presence: Presence,
    context: ClusterContext,
) -> Iterable[tuple[list[str], Owners]]:
    """Yield the members and owners for each topic in each dump that shows a settled group.

    A broker on which the group never committed is missing from the dump (rocketmq.md §13 no. 3), so
    only topics that it shows on every broker with a connection of the group are complete. Nor is a
    dump settled if rows may be missing, or if a queue without an owner may belong to a member that
    does not report its queues.
    """
    used = list(filter(_of_strategies, pieces))
    cut = _partial_topics(used)
    silent = any(_is_silent(piece) for piece in used if piece.kind == "consumer_connected")
    connected = {p.place for p in used if p.kind in ("consumer_connected", "member") and p.place}
    connected -= context.slave_places
    tables: dict[tuple[int, str, str], list[QueueProgressPiece]] = {}
    for piece in used:
        if piece.kind == "queue_progress" and piece.values["with_clients"]:
            topic = piece.values["topic"]
            if not is_retry_topic(topic) and not piece.values["topic_truncated"]:
                key = (context.time_of(piece), file_of(piece.source), topic)
                tables.setdefault(key, []).append(piece)
    for (at_ms, *dumped), rows in sorted(tables.items()):
        if tuple(dumped) in cut:
            continue
        clients = presence.clients(at_ms - QUIET_MS, at_ms)
        process_ids = [c for c in presence.memberships for _ in presence.channels(c, at_ms)]
        by_address = {client.partition("@")[0]: client for client in clients}
        if connected - {row.values["broker_name"] for row in rows}:
            continue
        if silent and not all(row.values["client_ip"] for row in rows):
            continue
        if sorted(process_ids) != clients or len(by_address) != len(clients) or not clients:
            continue  # a member joined late, or two members share an id or an address
        owners: Owners = {}
        for v in (row.values for row in rows):
            address = v["client_ip"] or None
            queue = MessageQueue(v["topic"], v["broker_name"], v["queue_id"])
            owners[queue] = by_address.get(address, address) if address else None
        yield clients, owners


def _partial_topics(pieces: Iterable[Evidence]) -> set[tuple[str, str]]:
    """Return the files of consumerProgress -s, each with the topics whose rows may be missing."""
    return {
        (file_of(piece.source), piece.values["topic"])
        for piece in filter(_of_strategies, pieces)
        if piece.kind == "queue_progress"
        and piece.values["with_clients"]
        and piece.values.get("partial")
    }


def _is_silent(connection: ConsumerConnectedPiece) -> bool:
    values = connection.values
    if values["consume_type"] == "CONSUME_PASSIVELY" or values["version"] is None:
        return False
    version = nearest_version(version_of_ordinal(values["version"]) or "")
    return version is not None and not tells_queues(LITE_PULL, str(version))


def _explains(
    text: str,
    clients: list[str],
    owners: Owners,
    languages: Mapping[str, str],
    *,
    unheld: bool = False,
    of_go: str | None = None,
) -> bool:
    """Return True if the strategy gives the queues to exactly these owners.

    If members of several languages take a queue, the dump names one of them; a member whose queues
    are unknown contradicts no strategy.

    Args:
        text: the strategy.
        clients: the members.
        owners: the owners of all queues.
        languages: the languages of the clients, where known.
        unheld: whether a queue without a holder is compatible with any strategy.
        of_go: the strategy of Go members, if it is a different one.
    """
    texts = {GO: of_go or text}
    members = [
        MemberStrategy(client_id, texts.get(language or "", text), language)
        for client_id, language in ((client, languages.get(client)) for client in clients)
    ]
    unknown = {member.client_id for member in members if not member.share_known}
    shares = shares_of(
        [member for member in members if member.client_id not in unknown], owners, clients
    )
    takers: dict[MessageQueue, set[str]] = {queue: set() for queue in owners}
    for member, share in shares.items():
        if share is None:
            return False
        for queue in share:
            takers.setdefault(queue, set()).add(member.client_id)
    return all(
        owner in takers[queue] if owner else unheld or not takers[queue]
        for queue, owner in owners.items()
        if owner not in unknown
    )


def _tried(assumed: str) -> dict[str, None]:
    """Return strategies that may explain a group if no file names one, custom ones last."""
    return dict.fromkeys((assumed, *CANDIDATES, *custom.names(custom.STRATEGIES)))


def _inferred(group: str, text: str) -> Finding:
    return finding(
        "INGEST_STRATEGY_INFERRED",
        f"No file names the strategy of {group} with its parameters; the known holders of its "
        f"queues match {text}.",
        "To be certain, name it in the collection's consumer_groups.jsonl.",
        consumer_group=group,
        evidence={"strategy": text},
    )


def _unknown(group: str, assumed: str, why: str, tried: str = "") -> Finding:
    """Return the finding; if no strategy was ``tried``, it names only the missing files."""
    return finding(
        "INGEST_STRATEGY_UNKNOWN",
        f"No file names the strategy of {group}, and {why}: its ownership is UNKNOWN and cannot "
        f"be compared. {assumed} is assumed.",
        "Name the strategy in the collection's consumer_groups.jsonl, or collect consumerStatus.",
        WARNING if tried else INFO,
        consumer_group=group,
        evidence={"tried": tried},
    )
