"""Strategy texts such as ``CONSISTENT_HASH(virtual_nodes=10)``: read, and what stands for one."""

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
    return _parsed(text, version, tuple(custom.plugins().items()))


@lru_cache(maxsize=1024)
def _parsed(text: str, version: str, plugins: Any) -> AllocationStrategy:
    """The strategy of a text while names mean these ``plugins``."""
    name, parenthesis, rest = text.strip(" ").partition("(")
    name = name.strip(" ")
    if parenthesis and not rest.endswith(")"):
        raise UsageError(f"strategy {text!r} does not end with ')'")
    body = rest.removesuffix(")")
    if "(" in body or ")" in body or ")" in name:
        raise UsageError(f"strategy {text!r}: write %28 for '(' and %29 for ')' inside a value")
    if name == "POP":
        raise UsageError("POP is the broker's allocation, not a strategy of a client")
    return make_strategy(name, read_settings(text, body, name, parameters_of(name)), version)


def read_settings(
    text: str, body: str, name: str, parameters: Mapping[str, Parameter]
) -> dict[str, Any]:
    """The values of a strategy's parameters in the body of its text.

    Args:
        text: The whole text.
        body: What is between its parentheses.
        name: Of the strategy.
        parameters: Those that it has.

    Raises:
        UsageError: As of `settings_of`; an unknown key, or a value that cannot be read.
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


def as_strategy(given: Any, version: str = DEFAULT_VERSION) -> AllocationStrategy:
    """A strategy of a text, of an own object, which is registered by its name, or as it is.

    Raises:
        UsageError: As of `parse_strategy` and `register_strategy`.
    """
    if isinstance(given, str):
        return parse_strategy(given, version=version)
    if isinstance(given, AllocationStrategy) and type(given).__module__.startswith(_OURS):
        return given
    return custom.CustomStrategy(register(custom.STRATEGIES, custom.name_of(given), given))


def strategy_text(given: Any) -> str:
    """The text of a strategy that may be an own object. Raises: UsageError, not for a text."""
    return given if isinstance(given, str) else str(as_strategy(given))


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
    if profile.strategies == client_profile.AVG_ONLY:
        return "AVG"
    if profile.strategies == client_profile.JAVA_FAMILY:
        return text
    strategy = parse_strategy(text)
    if isinstance(strategy, MachineRoom):  # a room that is listed twice counts twice
        return str(parse_strategy(f"GO_{text.strip()}"))
    in_go = go_strategy(strategy)
    return text if in_go is strategy else str(in_go)
