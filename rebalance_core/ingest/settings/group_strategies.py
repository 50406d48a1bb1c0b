"""Which strategy each member uses: client logs and ``consumerStatus`` show names, not parameters.

Two parameters show in results: CONFIG returns its list as it is (rocketmq.md §2.4), and
every queue of MACHINE_ROOM's rooms goes to somebody, so the rooms of all results are its rooms
(rocketmq.md §2.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.strategies import make_strategy, parse_strategy

CONFIG, MACHINE_ROOM = "CONFIG", "MACHINE_ROOM"
NEARBY_OUTER = "MACHINE_ROOM_NEARBY"
_ROOM_SEPARATOR = "@"  # AllocateMessageQueueByMachineRoom


@dataclass
class GroupStrategies:
    """What is known of the strategies of a group.

    Attributes:
        members: text by client id, for each client that any file shows.
        group: text for the others; None: no file and no given row tells.
        unknown: names that are none of RocketMQ's, by client id.
        assumed: parameters taken by default, as field to value.
    """

    members: dict[str, str] = field(default_factory=dict)
    group: str | None = None
    unknown: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)


def group_strategies(
    pieces: Iterable[Evidence], given: str | None, context: ClusterContext
) -> GroupStrategies:
    """The strategies of one group.

    Args:
        pieces: evidence on the group.
        given: text of the collection's consumer_groups.jsonl; it names the parameters of members
            whose strategy has the same name.
        context: for times.
    """
    names: dict[str, str] = {}
    results: dict[str, dict[str, list[list[object]]]] = {}
    held: dict[str, list[list[object]]] = {}
    for piece in sorted(pieces, key=lambda p: (context.time_of(p), p.place, p.position)):
        v = piece.values
        if piece.kind in ("allocated", "broker_allocated"):
            names[v["client_id"]] = v["strategy"]
            if "queues" in v:
                results.setdefault(v["client_id"], {})[v["topic"]] = v["queues"]
        elif piece.kind == "client_queue" and not v["dropped"] and v.get("client_file"):
            queue = [v["topic"], v["broker_name"], v["queue_id"]]
            held.setdefault(_client_id(piece), []).append(queue)
        elif piece.kind == "client" and v["strategy"]:
            # the class of MACHINE_ROOM_NEARBY hides its inner strategy: the log's name is better
            names.setdefault(_client_id(piece), v["strategy"])
    strategies = GroupStrategies(group=given)
    rooms = _rooms(results)
    for client_id, name in names.items():
        if name == CONFIG and client_id in held:
            results.setdefault(client_id, {"": held[client_id]})  # it holds what is listed
        text = _text(name, given, results.get(client_id, {}), rooms, strategies.assumed)
        if text is None:
            strategies.unknown[client_id] = name
        else:
            strategies.members[client_id] = text
    if strategies.members and given is None:
        texts = list(strategies.members.values())
        strategies.group = max(sorted(set(texts)), key=texts.count)
    return strategies


def _client_id(piece: Evidence) -> str:
    return str(piece.values.get("client_file", ""))


def _rooms(results: Mapping[str, Mapping[str, list[list[object]]]]) -> list[str]:
    brokers = {str(q[1]) for topics in results.values() for qs in topics.values() for q in qs}
    return sorted({b.partition(_ROOM_SEPARATOR)[0] for b in brokers if _ROOM_SEPARATOR in b})


def _text(
    name: str,
    given: str | None,
    results: Mapping[str, list[list[object]]],
    rooms: list[str],
    assumed: dict[str, str],
) -> str | None:
    """The member's text, None for a name that RocketMQ does not have."""
    if name == NEARBY_OUTER:
        name = given.partition("(")[0] if given and given.startswith(name) else f"{name}-AVG"
    same_name = given is not None and given.partition("(")[0] == name
    if name == CONFIG and results:
        queues = max(results.values(), key=len)
        config = sort_queues(MessageQueue(str(t), str(b), int(str(q))) for t, b, q in queues)
        return str(make_strategy(CONFIG, {"config": config}))
    if same_name:
        return given
    if name == MACHINE_ROOM and rooms:
        return str(make_strategy(MACHINE_ROOM, {"consumer_idcs": rooms}))
    try:
        text = str(parse_strategy(name))
    except UsageError:
        return None
    if name not in ("AVG", "AVG_BY_CIRCLE"):
        assumed[f"parameters of {name}"] = text
    return text
