"""The existing strategies by name, and lookups for plans, inference and kernels.

Custom strategies, hash functions and room resolvers are registered here; `texts` parses strategies.
"""

from collections.abc import Collection, Iterable
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.model.versions import parse_version
from rebalance_core.strategies import custom
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.averagely_by_circle import AveragelyByCircle
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.consistent_hash import ConsistentHash
from rebalance_core.strategies.go_consistent_hash import GoConsistentHash
from rebalance_core.strategies.go_machine_room import GoMachineRoom
from rebalance_core.strategies.machine_room import MachineRoom
from rebalance_core.strategies.machine_room_nearby import NEARBY, MachineRoomNearby, rooms_of
from rebalance_core.strategies.parameters import Parameter, Params, text, unknown_name
from rebalance_core.strategies.pop import Pop
from rebalance_core.strategies.spi import AllocationStrategy

STRATEGIES: tuple[type[AllocationStrategy], ...] = (
    Averagely,
    AveragelyByCircle,
    Config,
    MachineRoom,
    ConsistentHash,
    GoConsistentHash,
    GoMachineRoom,
    Pop,
)
"""All strategies with names of their own; ``MACHINE_ROOM_NEARBY-`` is a prefix to another
strategy's name.
"""
_DECLARED: tuple[type[AllocationStrategy], ...] = (*STRATEGIES, MachineRoomNearby)
CANDIDATES = tuple(strategy.NAME for strategy in STRATEGIES if strategy.CANDIDATE)
"""Strategies without required parameters, which a group may use if no file states its strategy, and
to which a mixed group could switch.
"""
LEAGUE = tuple(text for strategy in _DECLARED for text in strategy.LEAGUE)
"""The texts of the strategies in a plan's league."""
DEFAULT_VERSION = "5.3.3"
NAME_IT = "name a custom strategy in [strategies] of the configuration"
_BY_NAME = {strategy.NAME: strategy for strategy in STRATEGIES}
_JAVA_CLASSES = {
    strategy.JAVA_CLASS: strategy.NAME for strategy in _DECLARED if strategy.JAVA_CLASS
}
_JAVA_PACKAGE = ".rocketmq.client.consumer.rebalance."
_NEARBY_PREFIX = f"{NEARBY}-"
_INNER = Parameter(text)
KNOWN_NAMES = (*_BY_NAME, f"{_NEARBY_PREFIX}<inner>")
_NOT_FREE = ("POP", "STICKY_BALANCED", "CONSISTENT_HASH_BOUNDED", "league", "recorded")
"""Names in texts that are not client strategies, in addition to those in `STRATEGIES`."""


def make_strategy(
    name: str, params: Params | None = None, version: str = DEFAULT_VERSION
) -> AllocationStrategy:
    """Return the strategy called ``name`` of a client of ``version``.

    Args:
        name: The name, as returned by ``getName()``; only ``MACHINE_ROOM_NEARBY`` takes ``inner``
            from params.
        params: ``virtual_nodes``; ``consumer_idcs`` [..]; ``inner``, ``room_separator``,
            ``client_rooms`` {..}, ``broker_rooms`` {..} and those of the inner strategy;
            ``config`` ["T|broker|qid", ..]; ``pop_share_queue_num``; ``platform_charset`` (4.9).
        version: The client's version.

    Raises:
        UsageError: A name or parameter is unknown (the message lists the known and the nearest
            names), or a value has the wrong type.
        StrategyRefusedError: Upstream's constructor throws (an AllocationError and a UsageError).

    >>> str(make_strategy("CONSISTENT_HASH", {"virtual_nodes": 20}))
    'CONSISTENT_HASH(virtual_nodes=20)'
    """
    values = dict(params or {})
    if name == NEARBY and "inner" in values:
        name = f"{NEARBY}-{text('inner', values['inner'])}"
    declared = parameters_of(name)
    for key in values:
        if key not in declared:
            raise unknown_name(f"parameter of {name}", key, tuple(declared))
    checked = {key: declared[key].checked(key, value) for key, value in values.items()}
    return _made(name, checked, version)


def _made(name: str, params: Params, version: str) -> AllocationStrategy:
    if name in _BY_NAME:
        return _BY_NAME[name].make(params, parse_version(version))
    plugin = custom.find(custom.STRATEGIES, name)
    if plugin is not None:
        return custom.CustomStrategy(plugin)
    inner = name.removeprefix(_NEARBY_PREFIX)
    if params.get("inner", inner) != inner:
        raise UsageError(f"inner={params['inner']!r} contradicts {_NEARBY_PREFIX}{inner}")
    inner_parameters = parameters_of(inner)
    of_inner = {key: params[key] for key in params if key in inner_parameters and key != "inner"}
    return MachineRoomNearby(_made(inner, of_inner, version), rooms_of(params))


def parameters_of(name: str) -> dict[str, Parameter]:
    """Return the parameters of a strategy.

    Raises:
        UsageError: There is no strategy with that name.
    """
    if name in _BY_NAME:
        return dict(_BY_NAME[name].PARAMETERS)
    if custom.find(custom.STRATEGIES, name) is not None:
        return {}
    inner = name.removeprefix(_NEARBY_PREFIX)
    if name == NEARBY or inner == "POP":
        raise UsageError(f"{name!r} needs a client strategy inside, e.g. {_NEARBY_PREFIX}AVG")
    if inner == name:
        meant = _JAVA_CLASSES.get(name.partition("@")[0].rpartition(".")[2])
        nearby = f"{_NEARBY_PREFIX}AVG"
        meant = nearby if meant == NEARBY else meant
        customs = custom.known(custom.STRATEGIES)
        valid = (*_BY_NAME, nearby, *customs)
        error = unknown_name("strategy", name, valid, (*KNOWN_NAMES, *customs), meant)
        # a name with a dot is a user's class, as dumps show it
        raise error if "." not in name or meant else UsageError(f"{error}; {NAME_IT}")
    return {"inner": _INNER, **MachineRoomNearby.PARAMETERS, **parameters_of(inner)}


def name_of_class(java_class: str) -> str | None:
    """Return the name that a RocketMQ strategy prints, given its class, or None for other classes.

    The same classes are shipped in several packages: ``com.alibaba`` before 4.0, and shaded ones.

    >>> name_of_class("org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely")
    'AVG'
    """
    _, package, name = java_class.rpartition(_JAVA_PACKAGE)
    return _JAVA_CLASSES.get(name) if package else None


def register_strategy(name: str, strategy: Any) -> None:
    """Register a custom strategy for all strings parsed here; a later registration replaces it.

    Args:
        name: The name used in files: the class in ``consumerStatus``, or the result of
            ``getName()`` in a client's log.
        strategy: An object with ``allocate(client_id, queues, client_ids)``, a class of such
            objects that takes no arguments, or ``module:attribute``, which is imported, so that its
            code runs.

    Raises:
        UsageError: The object cannot be imported, is part of Python itself, is not a strategy, or
            gives random answers; or RocketMQ uses the name.
    """
    register(custom.STRATEGIES, name, strategy)


def register_hash_function(name: str, function: Any) -> None:
    """Register a function from a string to an integer as a ``hash_function`` of CONSISTENT_HASH.

    Arguments and errors are those of `register_strategy`.
    """
    register(custom.HASH_FUNCTIONS, name, function)


def register_room_resolver(name: str, resolver: Any) -> None:
    """Register an object as a ``room_resolver`` of MACHINE_ROOM_NEARBY.

    It has ``broker_room(queue)`` and ``client_room(client_id)``, which return a string or None.
    Arguments and errors are those of `register_strategy`.
    """
    register(custom.ROOM_RESOLVERS, name, resolver)


def register_plugins(plugins: Iterable[tuple[str, str, str]], allowed: Collection[str]) -> None:
    """Register the plugins named in a settings file.

    Args:
        plugins: The kind, name and ``module:attribute`` of each.
        allowed: The packages that the caller allows.

    Raises:
        UsageError: The message lists every plugin that is not allowed or unusable, with the reason.
    """
    mistakes = []
    for kind, name, where in plugins:
        try:
            register(kind, name, where, allowed)
        except UsageError as error:
            mistakes.append(str(error))
    if mistakes:
        raise UsageError("\n".join(mistakes))


def register(
    kind: str, name: str, source: Any, allowed: Collection[str] | None = None
) -> custom.Plugin:
    """Register a plugin with `custom.keep`.

    Raises:
        UsageError: RocketMQ or a plan uses the name, or in the cases listed for `custom.keep`.
    """
    taken = name in (*_BY_NAME, *_NOT_FREE) or name.startswith(NEARBY) or name_of_class(name)
    if kind == custom.STRATEGIES and taken:
        raise UsageError(
            f"{kind}: {name} is already a name in RocketMQ or in plans; use another name"
        )
    return custom.keep(kind, name, source, allowed)
