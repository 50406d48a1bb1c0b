"""Strategy texts such as ``CONSISTENT_HASH(virtual_nodes=10)``: read and written."""

from collections.abc import Callable
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.registry import (
    DEFAULT_VERSION,
    known_parameters,
    make_strategy,
    queue_id,
    unknown_name,
)
from rebalance_core.strategies.spi import AllocationStrategy, unescape


def _text(key: str, value: str) -> str:
    if "|" in value or ":" in value:
        raise UsageError(f"{key}={value}: write %7C for '|' and %3A for ':' inside a value")
    return unescape(value)


def number_in_text(key: str, value: str) -> int:
    """The escaped value of a key as an integer. Raises: UsageError."""
    digits = unescape(value)
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{key}={value}: not an integer")
    return int(digits)


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


def _queues(key: str, value: str) -> list[MessageQueue]:
    queues = []
    for item in _items(value):
        topic, slash, rest = item.partition("/")
        broker_name, second, digits = rest.rpartition("/")
        if not (slash and second):
            raise UsageError(f"{key}: {item!r} is not topic/broker/queue id")
        queues.append(
            MessageQueue(_text(key, topic), _text(key, broker_name), queue_id(key, digits))
        )
    return queues


# key of the text -> (parameter of make_strategy, how its value is read)
_KEYS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "virtual_nodes": ("virtual_nodes", number_in_text),
    "platform_charset": ("platform_charset", _text),
    "consumer_idcs": ("consumer_idcs", _names),
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
