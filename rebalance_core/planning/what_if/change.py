"""What a planner wants to change: a value, built by small functions or read from a mapping.

Changes are joined by ``|`` and happen at one instant: ``add_consumers(5) | lose_broker("b-1")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.planning.what_if.client_ids import DEFAULT_TEMPLATE, check_template
from rebalance_core.planning.what_if.planned_group import (
    RequestModes,
    Strategy,
    check_queue_numbers,
    read_rebalance_mode,
    read_request_modes,
    read_strategy,
    refuse,
)

MOST_CONSUMERS = 10_000
"""That one change adds or removes; more is taken for a mistake."""


@dataclass(frozen=True)
class Change:
    """All that changes at one instant; the defaults change nothing.

    Attributes:
        add_consumers: How many processes join; they subscribe all topics of the group.
        client_id_template: Their ids, see `new_client_ids`.
        remove_consumers: How many leave (the last ones in Java's order of the ids), or which
            client ids; an id leaves as many processes as it is named.
        lose_broker: Brokers whose queues go away.
        queues: Topic -> broker -> number of queues from now on (0: none); other brokers of the
            topic stay as they are. A topic the group did not have is new, and everybody reads it.
        strategy: What all members use from now on; None: what they used.
        request_modes: Topic -> PULL or POP(share_queue_num=N) from now on.
        rebalance_mode: Of all members from now on: CLIENT, BROKER or PROXY; None: what they had.
    """

    add_consumers: int = 0
    client_id_template: str = DEFAULT_TEMPLATE
    remove_consumers: int | tuple[str, ...] = 0
    lose_broker: tuple[str, ...] = ()
    queues: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    strategy: Strategy | None = None
    request_modes: RequestModes = field(default_factory=dict)
    rebalance_mode: str | None = None

    def __post_init__(self) -> None:
        mistakes: list[str] = []
        for key, read in _READERS.items():
            value = getattr(self, key)
            if value != _DEFAULTS[key]:
                object.__setattr__(self, key, read(key, value, mistakes))
        refuse(mistakes)

    def __or__(self, other: Change) -> Change:
        """Both at one instant: numbers add up, names are joined, of two values the last counts.

        Raises:
            UsageError: One removes a number of consumers and the other names some.
        """
        removed = _both(self.remove_consumers, other.remove_consumers)
        own = other.client_id_template != DEFAULT_TEMPLATE
        return Change(
            self.add_consumers + other.add_consumers,
            other.client_id_template if own else self.client_id_template,
            removed,
            tuple(dict.fromkeys(self.lose_broker + other.lose_broker)),
            {
                topic: {**self.queues.get(topic, {}), **other.queues.get(topic, {})}
                for topic in dict.fromkeys((*self.queues, *other.queues))
            },
            self.strategy if other.strategy is None else other.strategy,
            {**self.request_modes, **other.request_modes},
            other.rebalance_mode or self.rebalance_mode,
        )

    def __str__(self) -> str:
        """In words, e.g. ``+2 consumers, without broker-a``."""
        removed = self.remove_consumers
        gone = _consumers(-removed) if isinstance(removed, int) else f"without {_list(removed)}"
        words = [
            _consumers(self.add_consumers) if self.add_consumers else "",
            gone if removed else "",
            f"broker {_list(self.lose_broker)} lost" if self.lose_broker else "",
            *(
                f"{topic}: {_list(f'{n} queues on {broker}' for broker, n in brokers.items())}"
                for topic, brokers in self.queues.items()
            ),
            f"strategy {self.strategy}" if self.strategy is not None else "",
            *(f"{topic}: {mode}" for topic, mode in self.request_modes.items()),
            f"rebalance_mode {self.rebalance_mode}" if self.rebalance_mode is not None else "",
        ]
        return ", ".join(word for word in words if word) or "no change"


def _both(first: int | tuple[str, ...], second: int | tuple[str, ...]) -> int | tuple[str, ...]:
    if not (first and second):
        return first or second
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    if isinstance(first, tuple) and isinstance(second, tuple):
        return first + second
    raise UsageError("remove_consumers: give a number or client ids, not both")


def add_consumers(count: int, client_id_template: str = DEFAULT_TEMPLATE) -> Change:
    """So many processes join; the template says how their ids look and so where they sort."""
    return Change(add_consumers=count, client_id_template=client_id_template)


def remove_consumers(count_or_ids: int | str | Sequence[str]) -> Change:
    """So many processes leave, the last ones in Java's order; or these client ids."""
    return read_change({"remove_consumers": count_or_ids})


def lose_broker(*names: str) -> Change:
    """These brokers' queues go away."""
    return Change(lose_broker=names)


def set_queues(numbers: Mapping[str, Mapping[str, int]]) -> Change:
    """Topic -> broker -> number of queues from now on: scale out or in, or a new topic."""
    return Change(queues=numbers)


def switch_strategy(strategy: Strategy) -> Change:
    """All members use another strategy."""
    return Change(strategy=strategy)


def set_request_mode(topic: str, mode: str, rebalance_mode: str | None = None) -> Change:
    """Brokers serve the topic in this mode, e.g. ``POP(share_queue_num=1)``.

    It counts for members with rebalance_mode BROKER (``clientRebalance=false``), which all get if
    it is given.
    """
    return Change(request_modes={topic: mode}, rebalance_mode=rebalance_mode)


def read_change(given: Change | Mapping[str, Any]) -> Change:
    """A change of a mapping with the attributes of `Change` as keys, e.g. a table of TOML.

    Raises:
        UsageError: Every unknown key (the known and the nearest are listed) and wrong value.

    >>> str(read_change({"add_consumers": 2, "lose_broker": "broker-a"}))
    '+2 consumers, broker broker-a lost'
    """
    if isinstance(given, Change):
        return given
    if not isinstance(given, Mapping):
        raise UsageError(
            f"change = {given!r}: expected a Change or a mapping with keys {_list(_DEFAULTS)}"
        )
    mistakes = [
        f"change: unknown key {key!r}; known: {_list(_DEFAULTS)}{did_you_mean(str(key), _DEFAULTS)}"
        for key in given
        if key not in _DEFAULTS
    ]
    values = {
        key: _READERS[key](key, value, mistakes) for key, value in given.items() if key in _DEFAULTS
    }
    refuse(mistakes)
    return Change(**values)


def _count(key: str, value: Any, mistakes: list[str]) -> int:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_CONSUMERS
    if not right:
        mistakes.append(f"{key} = {value!r}: expected a whole number from 0 to {MOST_CONSUMERS:,}")
    return value if right else 0


def _names(key: str, value: Any, mistakes: list[str]) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if isinstance(names, list | tuple) and all(isinstance(n, str) and n for n in names):
        return tuple(names)
    mistakes.append(f"{key} = {value!r}: expected a name or a list of names")
    return ()


def _count_or_names(key: str, value: Any, mistakes: list[str]) -> int | tuple[str, ...]:
    if isinstance(value, str | list | tuple):
        return _names(key, value, mistakes)
    return _count(key, value, mistakes)


def _template(key: str, value: Any, mistakes: list[str]) -> str:
    if not isinstance(value, str):
        mistakes.append(f"{key} = {value!r}: expected text, e.g. {DEFAULT_TEMPLATE}")
        return DEFAULT_TEMPLATE
    mistakes += check_template(value)
    return value


def _strategy(key: str, value: Any, mistakes: list[str]) -> Any:
    return None if value is None else read_strategy(value, mistakes)


def _consumers(count: int) -> str:
    return f"{count:+} consumer{'' if abs(count) == 1 else 's'}"


def _list(names: Any) -> str:
    return ", ".join(names)


_READERS: dict[str, Callable[[str, Any, list[str]], Any]] = {
    "add_consumers": _count,
    "client_id_template": _template,
    "remove_consumers": _count_or_names,
    "lose_broker": _names,
    "queues": check_queue_numbers,
    "strategy": _strategy,
    "request_modes": read_request_modes,
    "rebalance_mode": read_rebalance_mode,
}
_DEFAULTS: dict[str, Any] = {
    attribute.name: {} if attribute.default is MISSING else attribute.default
    for attribute in fields(Change)
}
