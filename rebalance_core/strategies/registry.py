"""Strategies by name: the literal table of what exists and which parameters each takes."""

from collections.abc import Callable, Mapping
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.model.versions import Version, parse_version
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.averagely_by_circle import AveragelyByCircle
from rebalance_core.strategies.charsets import UTF_8
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.consistent_hash import DEFAULT_VIRTUAL_NODES, ConsistentHash
from rebalance_core.strategies.machine_room import MachineRoom
from rebalance_core.strategies.machine_room_nearby import NEARBY, MachineRoomNearby
from rebalance_core.strategies.nearest import unknown_name
from rebalance_core.strategies.parameters import (
    optional_names,
    optional_queues,
    prefixes,
    text,
    whole_number,
)
from rebalance_core.strategies.pop import DEFAULT_POP_SHARE_QUEUE_NUM, Pop
from rebalance_core.strategies.rooms import DEFAULT_ROOM_SEPARATOR, RoomResolver
from rebalance_core.strategies.spi import AllocationStrategy

DEFAULT_VERSION = "5.3.3"
CHECKS_IN_BASE_CLASS = (4, 9, 4)  # before: MACHINE_ROOM takes a blank client id for an empty one
ROOM_PARAMETERS = ("room_separator", "client_rooms", "broker_rooms")

Params = Mapping[str, Any]


def _config(params: Params, version: Version) -> AllocationStrategy:
    return Config(optional_queues("config", params.get("config")))


def _machine_room(params: Params, version: Version) -> AllocationStrategy:
    return MachineRoom(
        optional_names("consumer_idcs", params.get("consumer_idcs")),
        blank_is_empty=version < CHECKS_IN_BASE_CLASS,
    )


def _consistent_hash(params: Params, version: Version) -> AllocationStrategy:
    charset = text("platform_charset", params.get("platform_charset", UTF_8))
    return ConsistentHash(
        whole_number("virtual_nodes", params.get("virtual_nodes", DEFAULT_VIRTUAL_NODES)),
        charset if version.is_v4 else UTF_8,
    )


def _pop(params: Params, version: Version) -> AllocationStrategy:
    inner = text("inner", params.get("inner", "AVG"))
    if inner not in BROKER_STRATEGIES:
        raise UsageError(
            f"POP: inner {inner!r} is not what brokers know: {', '.join(BROKER_STRATEGIES)}"
        )
    share = params.get("pop_share_queue_num", DEFAULT_POP_SHARE_QUEUE_NUM)
    return Pop(
        make_strategy(inner, version=str(version)), whole_number("pop_share_queue_num", share)
    )


BROKER_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")  # QueryAssignmentProcessor

# name -> (how it is made, its parameters)
_STRATEGIES: dict[str, tuple[Callable[[Params, Version], AllocationStrategy], tuple[str, ...]]] = {
    "AVG": (lambda params, version: Averagely(), ()),
    "AVG_BY_CIRCLE": (lambda params, version: AveragelyByCircle(), ()),
    "CONFIG": (_config, ("config",)),
    "MACHINE_ROOM": (_machine_room, ("consumer_idcs",)),
    "CONSISTENT_HASH": (_consistent_hash, ("virtual_nodes", "platform_charset")),
    "POP": (_pop, ("inner", "pop_share_queue_num")),
}

KNOWN_NAMES = (*_STRATEGIES, f"{NEARBY}-<inner>")


def make_strategy(
    name: str, params: Params | None = None, version: str = DEFAULT_VERSION
) -> AllocationStrategy:
    """The strategy called ``name`` as the client of ``version`` has it.

    Args:
        name: As ``getName()`` prints it; ``MACHINE_ROOM_NEARBY`` alone takes ``inner`` from params.
        params: ``virtual_nodes``; ``consumer_idcs`` [..]; ``inner``, ``room_separator``,
            ``client_rooms`` {..}, ``broker_rooms`` {..} and those of the inner strategy;
            ``config`` ["T|broker|qid", ..]; ``pop_share_queue_num``; ``platform_charset`` (4.9).
        version: Of the client.

    Raises:
        UsageError: An unknown name or parameter (the known and the nearest ones are listed), or a
            value of the wrong type.
        StrategyRefused: Upstream's constructor throws (both an AllocationError and a UsageError).

    >>> str(make_strategy("CONSISTENT_HASH", {"virtual_nodes": 20}))
    'CONSISTENT_HASH(virtual_nodes=20)'
    """
    given = dict(params or {})
    parsed = parse_version(version)
    if name == NEARBY or name.startswith(NEARBY + "-"):
        return _nearby(name, given, version)
    if name not in _STRATEGIES:
        raise unknown_name("strategy", name, (*_STRATEGIES, NEARBY + "-AVG"), KNOWN_NAMES)
    make, known = _STRATEGIES[name]
    for key in given:
        if key not in known:
            raise unknown_name(f"parameter of {name}", key, known)
    return make(given, parsed)


def known_parameters(name: str) -> tuple[str, ...]:
    """The parameters `make_strategy` accepts for a strategy that exists."""
    inner = name.removeprefix(NEARBY).removeprefix("-")
    if inner != name:
        rest = known_parameters(inner) if inner else ()
        return tuple(dict.fromkeys(("inner", *ROOM_PARAMETERS, *rest)))
    return _STRATEGIES[name][1] if name in _STRATEGIES else ()


def _nearby(name: str, params: dict[str, Any], version: str) -> AllocationStrategy:
    inner_name = name.removeprefix(NEARBY).removeprefix("-")
    stated = params.pop("inner", None)
    inner_name = inner_name or text("inner", stated or "")
    if not inner_name:
        raise UsageError(f"{name} needs its inner strategy, e.g. {NEARBY}-AVG")
    if stated is not None and stated != inner_name:
        raise UsageError(f"{name} contradicts its parameter inner={stated!r}")
    if inner_name == "POP":
        raise UsageError(f"{name}: POP is the broker's, it cannot be the inner strategy")
    rooms = {key: params[key] for key in ROOM_PARAMETERS if key in params}
    is_nested = inner_name.startswith(NEARBY)
    passed = {key: params[key] for key in params if is_nested or key not in ROOM_PARAMETERS}
    for key in passed:
        known = known_parameters(f"{NEARBY}-{inner_name}")
        if known_parameters(inner_name) and key not in known:
            raise unknown_name(f"parameter of {NEARBY}-{inner_name}", key, known)
    return MachineRoomNearby(
        make_strategy(inner_name, passed, version),
        RoomResolver(
            text("room_separator", rooms.get("room_separator", DEFAULT_ROOM_SEPARATOR)),
            prefixes("client_rooms", rooms.get("client_rooms")),
            prefixes("broker_rooms", rooms.get("broker_rooms")),
        ),
    )
