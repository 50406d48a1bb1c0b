"""Strategy strings such as ``CONSISTENT_HASH(virtual_nodes=10)``, and objects that replace them."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from rebalance_core.model import client_profile
from rebalance_core.model.client_profile import ClientProfile
from rebalance_core.model.errors import UsageError
from rebalance_core.strategies import custom
from rebalance_core.strategies.go import go_strategy
from rebalance_core.strategies.machine_room import MachineRoom
from rebalance_core.strategies.parameters import Parameter, unknown_name
from rebalance_core.strategies.registry import (
    DEFAULT_VERSION,
    make_strategy,
    parameters_of,
    register,
)
from rebalance_core.strategies.spi import AllocationStrategy

_OURS = f"{__name__.partition('.')[0]}."


def parse_strategy(text: str, *, version: str = DEFAULT_VERSION) -> AllocationStrategy:
    """Return the strategy for a string such as ``CONSISTENT_HASH(virtual_nodes=10)``.

    Spaces around names, keys and values are ignored. ``% | , : ( ) =`` inside a value are %XX
    escapes (any %XX is valid). ``parse_strategy(str(s), version=v) == s`` for every strategy made
    for version v.

    Raises:
        UsageError: The text has another form, an unknown name or key, a repeated key, an invalid
            value, or is POP, which clients cannot use.
        StrategyRefusedError: Upstream's constructor throws.

    >>> parse_strategy("MACHINE_ROOM(consumer_idcs=room1|room2)").consumer_idcs
    ('room1', 'room2')
    """
    return _parsed(text, version, tuple(custom.plugins().items()))


@lru_cache(maxsize=1024)
def _parsed(text: str, version: str, plugins: Any) -> AllocationStrategy:
    """Return the strategy for a string, resolving names among these ``plugins``."""
    name, parenthesis, rest = text.strip(" ").partition("(")
    name = name.strip(" ")
    if parenthesis and not rest.endswith(")"):
        raise UsageError(f"strategy {text!r}: the closing ')' is missing")
    body = rest.removesuffix(")")
    if "(" in body or ")" in body or ")" in name:
        raise UsageError(f"strategy {text!r}: write %28 for '(' and %29 for ')' inside a value")
    if name == "POP":
        raise UsageError("POP is the broker's allocation, not a strategy of a client")
    return make_strategy(name, read_settings(text, body, name, parameters_of(name)), version)


def read_settings(
    text: str, body: str, name: str, parameters: Mapping[str, Parameter]
) -> dict[str, object]:
    """Return the values of a strategy's parameters in the body of its text.

    Args:
        text: The whole text.
        body: The part between its parentheses.
        name: The name of the strategy.
        parameters: The parameters that it has.

    Raises:
        UsageError: The cases listed for `settings_of`; a key is unknown, or a value cannot be read.
    """
    by_key = {
        parameter.key or name: (name, parameter.read)
        for name, parameter in parameters.items()
        if parameter.read is not None
    }
    params: dict[str, Any] = {}
    for key, value in settings_of(text, body):
        if key not in by_key:
            raise unknown_name(f"parameter of {name}", key, tuple(by_key))
        parameter, read = by_key[key]
        params[parameter] = read(key, value)
    return params


def settings_of(text: str, body: str) -> list[tuple[str, str]]:
    """Return the (key, still escaped value) pairs of a strategy text's body, each key once.

    Raises:
        UsageError: A part between commas is not key=value, or a key is repeated.
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
            raise UsageError(f"strategy {text!r}: {key} is used twice")
        settings[key] = value.strip(" ")
    return list(settings.items())


def as_strategy(strategy: Any, version: str = DEFAULT_VERSION) -> AllocationStrategy:
    """Return a strategy for a string, a custom object (which is registered under its name) or a
    strategy.

    Raises:
        UsageError: The cases listed for `parse_strategy` and `register_strategy`.
    """
    if isinstance(strategy, str):
        return parse_strategy(strategy, version=version)
    if isinstance(strategy, AllocationStrategy) and type(strategy).__module__.startswith(_OURS):
        return strategy
    return custom.CustomStrategy(register(custom.STRATEGIES, custom.name_of(strategy), strategy))


def strategy_text(strategy: Any) -> str:
    """Return the text of a strategy, which may be a custom object.

    Raises:
        UsageError: The custom object is not a strategy.
    """
    return strategy if isinstance(strategy, str) else str(as_strategy(strategy))


@cache
def own_strategy(profile: ClientProfile, text: str) -> str:
    """Return the strategy text by which a member allocates in a group with this text.

    The text is unchanged for a strategy that the client shares with Java. Raises `UsageError` for a
    string that does not parse.

    >>> from rebalance_core.model.clients import profile_of
    >>> own_strategy(profile_of("GO"), "CONSISTENT_HASH(virtual_nodes=10)")
    'GO_CONSISTENT_HASH(virtual_nodes=10)'
    >>> own_strategy(profile_of("CPP"), "AVG_BY_CIRCLE"), own_strategy(profile_of(None), "AVG")
    ('AVG', 'AVG')
    """
    if profile.strategies == client_profile.AVG_ONLY:
        return "AVG"
    if profile.strategies == client_profile.JAVA_FAMILY:
        return text
    strategy = parse_strategy(text)
    if isinstance(strategy, MachineRoom):  # a room listed twice counts twice
        return str(parse_strategy(f"GO_{text.strip()}"))
    in_go = go_strategy(strategy)
    return text if in_go is strategy else str(in_go)
