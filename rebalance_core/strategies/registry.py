"""Strategies by name and by text: what exists, its parameters and checks.

A text such as ``CONSISTENT_HASH(virtual_nodes=10)`` is read and written here. Own strategies, hash
functions and room resolvers get their names here.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from rebalance_core.model import clients
from rebalance_core.model.clients import ClientProfile, Version
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.group_settings import BROKER_STRATEGIES
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MOST_DIGITS
from rebalance_core.strategies import custom
from rebalance_core.strategies.averagely import Averagely, AveragelyByCircle
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.consistent_hash import DEFAULT_VIRTUAL_NODES, UTF_8, ConsistentHash
from rebalance_core.strategies.go import GoConsistentHash, GoMachineRoom, go_strategy
from rebalance_core.strategies.machine_room import (
    DEFAULT_ROOM_SEPARATOR,
    NEARBY,
    MachineRoom,
    MachineRoomNearby,
    OwnRooms,
    RoomResolver,
)
from rebalance_core.strategies.pop import DEFAULT_POP_SHARE_QUEUE_NUM, Pop
from rebalance_core.strategies.spi import AllocationStrategy, unescape

# The error for an unknown name: the known ones, and which of them was probably meant.


def unknown_name(
    kind: str,
    name: str,
    known: Sequence[str],
    listed: Sequence[str] | None = None,
    meant: str | None = None,
) -> UsageError:
    """An error that lists the known names (``listed`` if given) and the one ``meant``.

    That is the nearest of ``known`` where the caller does not know better.
    """
    names = ", ".join(listed or known) or "none"
    near = f"; did you mean {meant}?" if meant else did_you_mean(name, known)
    return UsageError(f"unknown {kind}: {name!r}; known: {names}{near}")


# The values of strategy parameters, checked and frozen: wrong types raise `UsageError`.

JAVA_INT_MIN, JAVA_INT_MAX = -(2**31), 2**31 - 1


def text(key: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise UsageError(f"{key} must be a string, not {value!r}")
    return value


def whole_number(key: str, value: Any) -> int:
    """A Java int."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{key} must be an integer, not {value!r}")
    if not JAVA_INT_MIN <= value <= JAVA_INT_MAX:
        raise UsageError(f"{key} {value} is outside Java's int")
    return value


def optional_names(key: str, value: Any) -> tuple[str, ...] | None:
    """A list of strings, or None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise UsageError(f"{key} must be a list of strings, not {value!r}")
    names = sorted(value) if isinstance(value, set | frozenset) else value
    return tuple(text(f"an item of {key}", item) for item in names)


def optional_queues(key: str, value: Any) -> tuple[MessageQueue, ...] | None:
    """A list of ``topic|broker|qid`` strings or `MessageQueue`, or None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{key} must be a list of 'topic|broker|qid', not {value!r}")
    return tuple(
        item if isinstance(item, MessageQueue) else _queue(key, text(f"an item of {key}", item))
        for item in value
    )


def prefixes(key: str, value: Any) -> tuple[tuple[str, str], ...]:
    """A mapping from prefix to room, None being empty."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise UsageError(f"{key} must map prefixes to rooms, not {value!r}")
    return tuple(
        (text(f"a prefix of {key}", p), text(f"a room of {key}", r)) for p, r in value.items()
    )


def _queue(key: str, item: str) -> MessageQueue:
    # Topics may contain '|' (TopicValidator), broker names and ids do not.
    parts = item.rsplit("|", 2)
    if len(parts) != 3:
        raise UsageError(f"{key}: {item!r} is not 'topic|broker|qid'")
    return MessageQueue(parts[0], parts[1], queue_id(key, parts[2]))


def queue_id(key: str, digits: str) -> int:
    """A queue id written in decimal."""
    return whole_number(f"{key}: queue id", _number(digits, f"{key}: queue id {digits!r:.80}"))


def _number(digits: str, what: str) -> int:
    """The number of a decimal text; more digits than Java's long has are none.

    Raises:
        UsageError: begins with ``what``.
    """
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{what} is not an integer")
    if len(digits) > MOST_DIGITS:
        raise UsageError(f"{what} is outside Java's int")
    return int(digits)


# Strategies by name: the literal table of what exists and which parameters each takes.

DEFAULT_VERSION = "5.3.3"
CHECKS_IN_BASE_CLASS = (4, 9, 4)  # before: MACHINE_ROOM takes a blank client id for an empty one
ROOM_PARAMETERS = ("room_separator", "client_rooms", "broker_rooms", "room_resolver")

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
    function = params.get("hash_function")
    return ConsistentHash(
        whole_number("virtual_nodes", params.get("virtual_nodes", DEFAULT_VIRTUAL_NODES)),
        charset if version.is_v4 else UTF_8,
        None if function is None else custom.CustomHash(_plugin(custom.HASH_FUNCTIONS, function)),
    )


def _go_consistent_hash(params: Params, version: Version) -> AllocationStrategy:
    if "virtual_nodes" not in params:
        raise UsageError("GO_CONSISTENT_HASH needs virtual_nodes: Go's constructor has no default")
    return GoConsistentHash(whole_number("virtual_nodes", params["virtual_nodes"]))


def _go_machine_room(params: Params, version: Version) -> AllocationStrategy:
    return GoMachineRoom(optional_names("consumer_idcs", params.get("consumer_idcs")) or ())


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


# name -> (how it is made, its parameters)
_STRATEGIES: dict[str, tuple[Callable[[Params, Version], AllocationStrategy], tuple[str, ...]]] = {
    "AVG": (lambda params, version: Averagely(), ()),
    "AVG_BY_CIRCLE": (lambda params, version: AveragelyByCircle(), ()),
    "CONFIG": (_config, ("config",)),
    "MACHINE_ROOM": (_machine_room, ("consumer_idcs",)),
    "CONSISTENT_HASH": (_consistent_hash, ("virtual_nodes", "platform_charset", "hash_function")),
    "GO_CONSISTENT_HASH": (_go_consistent_hash, ("virtual_nodes",)),
    "GO_MACHINE_ROOM": (_go_machine_room, ("consumer_idcs",)),
    "POP": (_pop, ("inner", "pop_share_queue_num")),
}

_NEARBY_PREFIX = f"{NEARBY}-"
_JAVA_CLASSES = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMachineRoomNearby": NEARBY,
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
}
_JAVA_PACKAGE = ".rocketmq.client.consumer.rebalance."
KNOWN_NAMES = (*_STRATEGIES, f"{_NEARBY_PREFIX}<inner>")


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
        StrategyRefusedError: Upstream's constructor throws (an AllocationError and a UsageError).

    >>> str(make_strategy("CONSISTENT_HASH", {"virtual_nodes": 20}))
    'CONSISTENT_HASH(virtual_nodes=20)'
    """
    given = dict(params or {})
    if name == NEARBY and "inner" in given:
        name = f"{NEARBY}-{text('inner', given['inner'])}"
    known = known_parameters(name)
    for key in given:
        if key not in known:
            raise unknown_name(f"parameter of {name}", key, known)
    if name in _STRATEGIES:
        return _STRATEGIES[name][0](given, clients.parse_version(version))
    plugin = custom.find(custom.STRATEGIES, name)
    if plugin is not None:
        return custom.CustomStrategy(plugin)
    return _nearby(name.removeprefix(_NEARBY_PREFIX), given, version)


def known_parameters(name: str) -> tuple[str, ...]:
    """The parameters of a strategy; `UsageError` if there is none of that name."""
    if name in _STRATEGIES:
        return _STRATEGIES[name][1]
    if custom.find(custom.STRATEGIES, name) is not None:
        return ()
    inner = name.removeprefix(_NEARBY_PREFIX)
    if name == NEARBY or inner == "POP":
        raise UsageError(f"{name!r} needs a client strategy inside, e.g. {_NEARBY_PREFIX}AVG")
    if inner == name:
        meant = _JAVA_CLASSES.get(name.partition("@")[0].rpartition(".")[2])
        nearby = f"{_NEARBY_PREFIX}AVG"
        meant = nearby if meant == NEARBY else meant
        customs = custom.known(custom.STRATEGIES)
        known = (*_STRATEGIES, nearby, *customs)
        error = unknown_name("strategy", name, known, (*KNOWN_NAMES, *customs), meant)
        # with a dot it is a class of the user's, as dumps show it
        raise error if "." not in name or meant else UsageError(f"{error}; {NAME_IT}")
    return tuple(dict.fromkeys(("inner", *ROOM_PARAMETERS, *known_parameters(inner))))


def name_of_class(java_class: str) -> str | None:
    """The name that a strategy of RocketMQ prints, by its class; None for a class of others.

    The same classes are shipped under several packages: ``com.alibaba`` before 4.0, shaded ones.

    >>> name_of_class("org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely")
    'AVG'
    """
    _, package, name = java_class.rpartition(_JAVA_PACKAGE)
    return _JAVA_CLASSES.get(name) if package else None


# Plugins by name.

NAME_IT = "name an own one in [strategies] of the configuration"
_NOT_FREE = ("POP", "STICKY_BALANCED", "CONSISTENT_HASH_BOUNDED", "league", "recorded")
"""Words of texts that are no strategy of a client, beside those of `_STRATEGIES`."""


def register_strategy(name: str, strategy: Any) -> None:
    """Make an own strategy known to all that parses texts here; a later one takes its place.

    Args:
        name: As files have it: the class in ``consumerStatus``, or what ``getName()`` gives in a
            client's log.
        strategy: An object with ``allocate(client_id, queues, client_ids)``, a class of such ones
            without arguments, or ``module:attribute``, which is imported: its code runs.

    Raises:
        UsageError: It cannot be imported, is a part of Python itself, is none, or answers at
            random; RocketMQ has the name.
    """
    _register(custom.STRATEGIES, name, strategy)


def register_hash_function(name: str, function: Any) -> None:
    """Make a function of a text to a whole number known as ``hash_function`` of CONSISTENT_HASH.

    Arguments and errors as of `register_strategy`.
    """
    _register(custom.HASH_FUNCTIONS, name, function)


def register_room_resolver(name: str, resolver: Any) -> None:
    """Make an object known as ``room_resolver`` of MACHINE_ROOM_NEARBY.

    It has ``broker_room(queue)`` and ``client_room(client_id)``, which give a text or None.
    Arguments and errors as of `register_strategy`.
    """
    _register(custom.ROOM_RESOLVERS, name, resolver)


def register_plugins(given: Iterable[tuple[str, str, str]], allowed: Collection[str]) -> None:
    """Register plugins that a settings file names.

    Args:
        given: Kind, name and ``module:attribute`` of each.
        allowed: The packages that the caller allows.

    Raises:
        UsageError: Names every plugin that is not allowed or cannot be used, and why.
    """
    mistakes = []
    for kind, name, text in given:
        try:
            _register(kind, name, text, allowed)
        except UsageError as error:
            mistakes.append(str(error))
    if mistakes:
        raise UsageError("\n".join(mistakes))


def install_plugins(given: dict[tuple[str, str], custom.Plugin]) -> None:
    """Have these plugins (`custom.plugins`) and no other, as in the process that they are of."""
    custom.install(given)
    _parsed.cache_clear()


def _register(
    kind: str, name: str, given: Any, allowed: Collection[str] | None = None
) -> custom.Plugin:
    taken = name in (*_STRATEGIES, *_NOT_FREE) or name.startswith(NEARBY) or name_of_class(name)
    if kind == custom.STRATEGIES and taken:
        raise UsageError(f"{kind}: {name} is a name of RocketMQ's or of plans; give another")
    plugin = custom.keep(kind, name, given, allowed)
    _parsed.cache_clear()
    return plugin


def _plugin(kind: str, given: Any) -> custom.Plugin:
    """The plugin of a name, or of an object, which gets a name."""
    if not isinstance(given, str):
        return _register(kind, custom.name_of(given), given)
    found = custom.find(kind, given)
    if found is None:
        known = custom.known(kind)
        error = unknown_name(kind.removesuffix("s").replace("_", " "), given, known)
        raise UsageError(f"{error}; name it in [{kind}] of the configuration")
    return found


def as_strategy(given: Any, version: str = DEFAULT_VERSION) -> AllocationStrategy:
    """A strategy of a text, of an own object, which is registered by its name, or as it is.

    Raises:
        UsageError: As of `parse_strategy` and `register_strategy`.
    """
    if isinstance(given, str):
        return parse_strategy(given, version=version)
    if isinstance(given, AllocationStrategy) and type(given).__module__.startswith(_OURS):
        return given
    return custom.CustomStrategy(_plugin(custom.STRATEGIES, given))


_OURS = f"{__name__.partition('.')[0]}."


def strategy_text(given: Any) -> str:
    """The text of a strategy that may be an own object. Raises: UsageError, not for a text."""
    return given if isinstance(given, str) else str(as_strategy(given))


def _nearby(inner_name: str, params: Params, version: str) -> AllocationStrategy:
    if params.get("inner", inner_name) != inner_name:
        raise UsageError(f"inner={params['inner']!r} contradicts {_NEARBY_PREFIX}{inner_name}")
    known = known_parameters(inner_name)
    inner_params = {key: params[key] for key in params if key in known and key != "inner"}
    return MachineRoomNearby(make_strategy(inner_name, inner_params, version), _rooms_of(params))


def _rooms_of(params: Params) -> RoomResolver:
    resolver = params.get("room_resolver")
    if resolver is None:
        return RoomResolver(
            text("room_separator", params.get("room_separator", DEFAULT_ROOM_SEPARATOR)),
            prefixes("client_rooms", params.get("client_rooms")),
            prefixes("broker_rooms", params.get("broker_rooms")),
        )
    others = [key for key in ROOM_PARAMETERS if key in params and key != "room_resolver"]
    if others:
        raise UsageError(f"room_resolver and {others[0]} exclude each other")
    return OwnRooms(plugin=_plugin(custom.ROOM_RESOLVERS, resolver))


# Strategy texts such as ``CONSISTENT_HASH(virtual_nodes=10)``: read and written.


def _text(key: str, value: str) -> str:
    if "|" in value or ":" in value:
        raise UsageError(f"{key}={value}: write %7C for '|' and %3A for ':' inside a value")
    return unescape(value)


def number_in_text(key: str, value: str) -> int:
    """The escaped value of a key as an integer. Raises: UsageError."""
    digits = unescape(value)
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{key}={value}: not an integer")
    return _number(digits, f"{key}={value:.80}")


def _items(value: str) -> list[str]:
    return value.split("|") if value else []


def _names(key: str, value: str) -> list[str]:
    return [_text(key, item) for item in _items(value)]


def _rooms(key: str, value: str) -> dict[str, str]:
    rooms: dict[str, str] = {}
    for item in _items(value):
        prefix, colon, room = item.partition(":")
        if not colon or ":" in room:
            raise UsageError(f"{key}: {item!r} is not prefix:room; write %3A for other ':'")
        prefix = unescape(prefix)
        if prefix in rooms:
            raise UsageError(f"{key}: prefix {prefix!r} is given twice")
        rooms[prefix] = unescape(room)
    return rooms


_SECOND_QUEUE = re.compile(r"/-?[0-9]+\W")
"""In a broker's name: the id of a queue that another sign than ``|`` parts from the next."""


def _queues(key: str, value: str) -> list[MessageQueue]:
    queues = []
    for item in _items(value):
        topic, slash, rest = item.partition("/")
        broker_name, second, digits = rest.rpartition("/")
        if not (slash and second) or _SECOND_QUEUE.search(broker_name):
            raise UsageError(
                f"{key}: {item!r:.200} is not topic/broker/queue id; queues stand between '|', "
                "e.g. CONFIG(queues=T/broker-a/0|T/broker-a/1); %2F is a '/' inside a name"
            )
        queues.append(
            MessageQueue(_text(key, topic), _text(key, broker_name), queue_id(key, digits))
        )
    return queues


# key of the text -> (parameter of make_strategy, how its value is read)
_KEYS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "virtual_nodes": ("virtual_nodes", number_in_text),
    "platform_charset": ("platform_charset", _text),
    "consumer_idcs": ("consumer_idcs", _names),
    "hash_function": ("hash_function", _text),
    "room_resolver": ("room_resolver", _text),
    "room_separator": ("room_separator", _text),
    "client_rooms": ("client_rooms", _rooms),
    "broker_rooms": ("broker_rooms", _rooms),
    "queues": ("config", _queues),
}


def parse_strategy(text: str, *, version: str = DEFAULT_VERSION) -> AllocationStrategy:
    """The strategy of a text such as ``CONSISTENT_HASH(virtual_nodes=10)``.

    Spaces around names, keys and values do not count. ``% | , : ( ) =`` inside a value are %XX
    escapes (any %XX is understood). ``parse_strategy(str(s), version=v) == s`` for every strategy
    made for version v.

    Raises:
        UsageError: Not of that form, an unknown name or key, a key twice, a wrong value, or POP,
            which is no client strategy.
        StrategyRefusedError: Upstream's constructor throws.

    >>> parse_strategy("MACHINE_ROOM(consumer_idcs=room1|room2)").consumer_idcs
    ('room1', 'room2')
    """
    return _parsed(text, version)


@lru_cache(maxsize=1024)
def _parsed(text: str, version: str) -> AllocationStrategy:
    name, parenthesis, rest = text.strip(" ").partition("(")
    name = name.strip(" ")
    if parenthesis and not rest.endswith(")"):
        raise UsageError(f"strategy {text!r} does not end with ')'")
    body = rest.removesuffix(")")
    if "(" in body or ")" in body or ")" in name:
        raise UsageError(f"strategy {text!r}: write %28 for '(' and %29 for ')' inside a value")
    if name == "POP":
        raise UsageError("POP is the broker's allocation, not a strategy of a client")
    known = known_parameters(name)
    keys = [key for key, (parameter, _) in _KEYS.items() if parameter in known]
    params: dict[str, Any] = {}
    for key, value in settings_of(text, body):
        if key not in keys:
            raise unknown_name(f"parameter of {name}", key, keys)
        parameter, read = _KEYS[key]
        params[parameter] = read(key, value)
    return make_strategy(name, params, version)


def settings_of(text: str, body: str) -> list[tuple[str, str]]:
    """The (key, still escaped value) pairs of a text's body, each key once.

    Raises:
        UsageError: what is between two commas is not key=value, or a key is there twice.
    """
    settings: dict[str, str] = {}
    for setting in body.split(",") if body.strip(" ") else []:
        key, equals, value = setting.partition("=")
        key = key.strip(" ")
        if not (key and equals) or "=" in value:
            raise UsageError(
                f"strategy {text!r}: {setting.strip()!r} is not key=value; inside a value write"
                " %2C for ',' and %3D for '='"
            )
        if key in settings:
            raise UsageError(f"strategy {text!r}: {key} is given twice")
        settings[key] = value.strip(" ")
    return list(settings.items())


@cache
def own_strategy(profile: ClientProfile, text: str) -> str:
    """The strategy text that a member divides by in a group that is said to divide by a text.

    The text of a strategy that its client has as Java comes back as it is. Raises `UsageError` for
    one that does not parse.

    >>> from rebalance_core.model.clients import profile_of
    >>> own_strategy(profile_of("GO"), "CONSISTENT_HASH(virtual_nodes=10)")
    'GO_CONSISTENT_HASH(virtual_nodes=10)'
    >>> own_strategy(profile_of("CPP"), "AVG_BY_CIRCLE"), own_strategy(profile_of(None), "AVG")
    ('AVG', 'AVG')
    """
    if profile.strategies == clients.AVG_ONLY:
        return "AVG"
    if profile.strategies == clients.JAVA_FAMILY:
        return text
    strategy = parse_strategy(text)
    if isinstance(strategy, MachineRoom):  # a room that is listed twice counts twice
        return str(parse_strategy(f"GO_{text.strip()}"))
    in_go = go_strategy(strategy)
    return text if in_go is strategy else str(in_go)
