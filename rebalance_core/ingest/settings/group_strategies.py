"""Which strategy each member uses: client logs and ``consumerStatus`` show names, not parameters.

Two parameters show in results: CONFIG returns its list as it is (rocketmq.md §2.4), and
every queue of MACHINE_ROOM's rooms goes to somebody, so the rooms of all results are its rooms
(rocketmq.md §2.5). MACHINE_ROOM_NEARBY's rooms show in nothing: what resolves them is the user's
code (rocketmq.md §2.6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.strategies import make_strategy, parse_strategy
from rebalance_core.strategies.machine_room_nearby import NEARBY, MachineRoomNearby

CONFIG, MACHINE_ROOM = "CONFIG", "MACHINE_ROOM"
_ROOM_SEPARATOR = "@"  # AllocateMessageQueueByMachineRoom
_ONE_ROOM = {"client_rooms": {"": "unknown"}, "broker_rooms": {"": "unknown"}}
"""Where nobody tells the rooms all are in one: whoever lacked one would freeze the group."""


@dataclass
class GroupStrategies:
    """What is known of the strategies of a group.

    Attributes:
        members: text by client id, for each client that any file shows.
        group: text for the others; None: no file and no given row tells.
        unknown: names by client id, of strategies that RocketMQ does not have or whose parameters
            no file tells and nothing stands for.
        assumed: texts whose parameters no file and no given row tells, by the field's name.
        roomless: clients and brokers without a room by the given text, although their allocation
            worked.
    """

    members: dict[str, str] = field(default_factory=dict)
    group: str | None = None
    unknown: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    roomless: set[str] = field(default_factory=set)

    def take_instead(self, text: str, other: str) -> None:
        """Everywhere the other text instead of one."""
        self.group = other if self.group == text else self.group
        for texts in (self.members, self.assumed):
            texts.update({key: other for key, its in texts.items() if its == text})


def group_strategies(
    pieces: Iterable[Evidence],
    given: str | None,
    presence: Presence,
    context: ClusterContext,
) -> GroupStrategies:
    """The strategies of one group.

    Args:
        pieces: evidence on the group, in order of time and place.
        given: text of the collection's consumer_groups.jsonl; it names the parameters of members
            whose strategy has the same name.
        presence: of its members.
        context: for times.
    """
    shown = _shown(pieces, context)
    strategies = GroupStrategies(group=given)
    rooms = _rooms(shown.results[c] for c in shown.results if shown.names.get(c) == MACHINE_ROOM)
    there = {client_id for client_id in presence.stays if presence.channels(client_id, shown.at_ms)}
    if (
        rooms
        and _name(given) != MACHINE_ROOM
        and not there <= shown.results.keys() | shown.held.keys()
    ):
        # the shares of the others may lie in other rooms
        text = str(make_strategy(MACHINE_ROOM, {"consumer_idcs": rooms}))
        strategies.assumed[f"parameters of {MACHINE_ROOM}"] = text
    for client_id, name in shown.names.items():
        results, held = shown.results.get(client_id, {}), shown.held.get(client_id, [])
        member = _text(name, given, results, rooms, strategies.assumed)
        if member is None:
            strategies.unknown[client_id] = name
            continue
        strategies.members[client_id] = member
        if member == given and (results or held):
            queues = [queue for of_topic in results.values() for queue in of_topic]
            strategies.roomless |= _roomless(member, client_id, queues + held)
    if strategies.members and given is None:
        texts = list(strategies.members.values())
        strategies.group = max(sorted(set(texts)), key=texts.count)
    return strategies


@dataclass
class _Shown:
    """What files show of the members' strategies.

    Attributes:
        names: by client id.
        results: what the strategy gave by client id and topic, where a log tells the queues.
        held: queues by client id, as its ``consumerStatus`` shows them.
        at_ms: when queues were last shown.
    """

    names: dict[str, str] = field(default_factory=dict)
    results: dict[str, dict[str, list[list[object]]]] = field(default_factory=dict)
    held: dict[str, list[list[object]]] = field(default_factory=dict)
    at_ms: int = 0


def _shown(pieces: Iterable[Evidence], context: ClusterContext) -> _Shown:
    shown = _Shown()
    for piece in pieces:
        v = piece.values
        if piece.kind in ("allocated", "broker_allocated"):
            shown.names[v["client_id"]] = v["strategy"]
            if "queues" in v:
                shown.results.setdefault(v["client_id"], {})[v["topic"]] = v["queues"]
                shown.at_ms = context.time_of(piece)
        elif piece.kind == "client_queue" and not v["dropped"] and v.get("client_file"):
            queue = [v["topic"], v["broker_name"], v["queue_id"]]
            shown.held.setdefault(_client_id(piece), []).append(queue)
        elif piece.kind == "client" and v["strategy"]:
            # the class of MACHINE_ROOM_NEARBY hides its inner strategy: the log's name is better
            shown.names.setdefault(_client_id(piece), v["strategy"])
            shown.held.setdefault(_client_id(piece), [])
            shown.at_ms = context.time_of(piece)
    for client_id, name in shown.names.items():
        if name in (CONFIG, MACHINE_ROOM) and shown.held.get(client_id):
            # it holds what is listed, or its share
            shown.results.setdefault(client_id, {"": shown.held[client_id]})
    return shown


def _client_id(piece: Evidence) -> str:
    return str(piece.values.get("client_file", ""))


def _name(text: str | None) -> str:
    return (text or "").partition("(")[0]


def _rooms(results: Iterable[Mapping[str, list[list[object]]]]) -> list[str]:
    brokers = {str(q[1]) for topics in results for qs in topics.values() for q in qs}
    return sorted({b.partition(_ROOM_SEPARATOR)[0] for b in brokers if _ROOM_SEPARATOR in b})


def _roomless(text: str, client_id: str, queues: list[list[object]]) -> set[str]:
    """Which of the client and the brokers of its queues have no room; upstream would throw."""
    strategy = parse_strategy(text)
    if not isinstance(strategy, MachineRoomNearby):
        return set()
    brokers = {MessageQueue(str(t), str(b), int(str(q))) for t, b, q in queues}
    found = {queue.broker_name for queue in brokers if not strategy.rooms.broker_room(queue)}
    return found if strategy.rooms.client_room(client_id) else found | {client_id}


def _text(
    name: str,
    given: str | None,
    results: Mapping[str, list[list[object]]],
    rooms: list[str],
    assumed: dict[str, str],
) -> str | None:
    """The member's text, None for a name that RocketMQ does not have, or without parameters."""
    if name == NEARBY:
        name = _name(given) if given and given.startswith(name) else f"{name}-AVG"
    same_name = _name(given) == name
    if name == CONFIG and results:
        queues = max(results.values(), key=len)
        config = sort_queues(MessageQueue(str(t), str(b), int(str(q))) for t, b, q in queues)
        return str(make_strategy(CONFIG, {"config": config}))
    if same_name:
        return given
    if name == MACHINE_ROOM and rooms:
        return str(make_strategy(MACHINE_ROOM, {"consumer_idcs": rooms}))
    if name in (CONFIG, MACHINE_ROOM):
        return None  # without a list or rooms upstream gives everything up, or fails
    try:
        text = str(make_strategy(name, _ONE_ROOM if name.startswith(NEARBY) else None))
    except UsageError:
        return None
    if name not in ("AVG", "AVG_BY_CIRCLE"):
        assumed[f"parameters of {name}"] = text
    return text
