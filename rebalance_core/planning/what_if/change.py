"""A planner's change: a value built by small functions or read from a mapping.

Changes are joined with ``|`` and happen at the same instant: ``add_consumers(5) |
lose_broker("b-1")``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.planning import table_keys
from rebalance_core.planning.client_ids import DEFAULT_TEMPLATE, check_template
from rebalance_core.planning.table_keys import MOST_CONSUMERS
from rebalance_core.planning.what_if.planned_group import (
    RequestModes,
    Strategy,
    check_queue_numbers,
    read_rebalance_mode,
    read_request_modes,
    read_strategy,
    refuse,
)


def _count_or_names(value: Any) -> int | tuple[str, ...]:
    """Read a number or names."""
    several = isinstance(value, str | list | tuple)
    return table_keys.texts(value) if several else table_keys.whole(0, MOST_CONSUMERS)(value)


def _template(value: Any) -> str:
    """Read a template of client ids, refusing mistakes."""
    if not isinstance(value, str):
        raise ValueError(f"expected text, e.g. {DEFAULT_TEMPLATE}")
    if mistakes := check_template(value):
        raise table_keys.Mistakes(*mistakes)
    return value


def _strategy(name: str, value: Any, mistakes: list[str]) -> Any:
    return read_strategy(value, mistakes)


def _by_name(name: str, check: Callable[[str, Any, list[str]], Any]) -> table_keys.ValueReader:
    """Return a reader made from a function that adds complete sentences to a list of mistakes."""

    def read(value: Any) -> Any:
        mistakes: list[str] = []
        right = check(name, value, mistakes)
        if mistakes:
            raise table_keys.Mistakes(*mistakes)
        return right

    return read


@dataclass(frozen=True)
class Change:
    """Changes at the same instant; the defaults change nothing.

    Attributes:
        add_consumers: The number of processes that join; they subscribe to all topics of the group.
        client_id_template: The template for their ids; see `new_client_ids`.
        remove_consumers: The number of processes that leave (the last in Java's order of the ids),
            or their client ids; each mention of an id removes one process.
        lose_broker: Brokers whose queues disappear.
        queues: Topic -> broker -> number of queues from now on (0: none); the topic's other brokers
            are unchanged. A topic that the group did not have is new, and every member reads it.
        strategy: The strategy that all members use from now on; None: unchanged.
        request_modes: Topic -> PULL or POP(share_queue_num=N) from now on.
        rebalance_mode: The mode of all members from now on: CLIENT, BROKER or PROXY; None:
            unchanged.
        language: The language of the clients that join, e.g. GO; None: Java. Without a template,
            their ids have the form that such a client generates.
    """

    add_consumers: int = table_keys.key(table_keys.whole(0, MOST_CONSUMERS), 0)
    client_id_template: str = table_keys.key(_template, DEFAULT_TEMPLATE)
    remove_consumers: int | tuple[str, ...] = table_keys.key(_count_or_names, 0)
    lose_broker: tuple[str, ...] = table_keys.key(table_keys.texts, ())
    queues: Mapping[str, Mapping[str, int]] = table_keys.key(
        _by_name("queues", check_queue_numbers), {}
    )
    strategy: Strategy | None = table_keys.key(_by_name("strategy", _strategy))  # noqa: RUF009  # a field, made once
    request_modes: RequestModes = table_keys.key(  # noqa: RUF009  # a field, made once
        _by_name("request_modes", read_request_modes), {}
    )
    rebalance_mode: str | None = table_keys.key(read_rebalance_mode)
    language: str | None = table_keys.key(table_keys.language)

    def __post_init__(self) -> None:
        changed = {
            name: getattr(self, name)
            for name, key in _KEYS.items()
            if getattr(self, name) != key.default
        }
        values, wrong = table_keys.read_values(changed, _KEYS)
        refuse([text for _, text in wrong])
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __or__(self, other: Change) -> Change:
        """Return both changes at the same instant: numbers add up, names are joined, and the last
        value wins.

        Raises:
            UsageError: One removes a number of consumers and the other names some.
        """
        removed = _both(self.remove_consumers, other.remove_consumers)
        named = other.client_id_template != DEFAULT_TEMPLATE
        return Change(
            add_consumers=self.add_consumers + other.add_consumers,
            client_id_template=other.client_id_template if named else self.client_id_template,
            remove_consumers=removed,
            lose_broker=tuple(dict.fromkeys(self.lose_broker + other.lose_broker)),
            queues={
                topic: {**self.queues.get(topic, {}), **other.queues.get(topic, {})}
                for topic in dict.fromkeys((*self.queues, *other.queues))
            },
            strategy=self.strategy if other.strategy is None else other.strategy,
            request_modes={**self.request_modes, **other.request_modes},
            rebalance_mode=other.rebalance_mode or self.rebalance_mode,
            language=other.language or self.language,
        )

    def __str__(self) -> str:
        """Return the change in words, e.g. ``+2 consumers, without broker-a``."""
        removed = self.remove_consumers
        gone = _consumers(-removed) if isinstance(removed, int) else f"without {_list(removed)}"
        words = [
            _consumers(self.add_consumers, self.language) if self.add_consumers else "",
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


def add_consumers(
    count: int, client_id_template: str = DEFAULT_TEMPLATE, language: str | None = None
) -> Change:
    """Return a change in which processes join; the template determines how their ids sort.

    >>> str(add_consumers(1, language="GO"))
    '+1 consumer (GO)'
    """
    return Change(count, client_id_template, language=language)


def remove_consumers(count_or_ids: int | str | Sequence[str]) -> Change:
    """Return a change in which processes leave: the last in Java's order, or these client ids."""
    return read_change({"remove_consumers": count_or_ids})


def lose_broker(*names: str) -> Change:
    """Return a change that removes these brokers' queues."""
    return Change(lose_broker=names)


def set_queues(numbers: Mapping[str, Mapping[str, int]], *more: object) -> Change:
    """Return a change of queue numbers, topic -> broker -> number, to scale out or in or to add a
    topic.

    Raises:
        UsageError: The argument is not such a mapping, or there is more than one.

    >>> str(set_queues({"orders": {"broker-b": 0}}))
    'orders: 0 queues on broker-b'
    """
    asked: object = numbers
    nested = isinstance(asked, Mapping) and all(isinstance(of, Mapping) for of in asked.values())
    if more or not nested:
        words = ", ".join(map(repr, (asked, *more)))
        form = {asked: more[0]} if isinstance(asked, str) and more else {"T": {"broker-a": 8}}
        raise UsageError(
            f"set_queues({words}): expected one mapping, topic -> broker -> number of queues; "
            f"write set_queues({form!r})"
        )
    return Change(queues=numbers)


def switch_strategy(strategy: Strategy) -> Change:
    """Return a change in which all members switch to another strategy."""
    return Change(strategy=strategy)


def set_request_mode(topic: str, mode: str, rebalance_mode: str | None = None) -> Change:
    """Return a change of a topic's request mode, e.g. to ``POP(share_queue_num=1)``.

    It applies to members with rebalance_mode BROKER (``clientRebalance=false``), which the argument
    sets for all.
    """
    return Change(request_modes={topic: mode}, rebalance_mode=rebalance_mode)


EDIT_NAMES = {
    "scale_queues": "queues",
    "new_topic": "queues",
    "switch_strategy": "strategy",
    "switch_request_mode": "request_modes",
}
"""The names in scenarios of edits that `Change` names differently."""


def read_change(change: Change | Mapping[str, object]) -> Change:
    """Return the change in a mapping, whose keys are attributes of `Change` or kinds of scenario
    edits.

    Raises:
        UsageError: There are unknown keys (the message lists the valid and nearest ones) or invalid
            values.

    >>> str(read_change({"add_consumers": 2, "lose_broker": "broker-a"}))
    '+2 consumers, broker broker-a lost'
    """
    if isinstance(change, Change):
        return change
    if not isinstance(change, Mapping):
        raise UsageError(
            f"change = {change!r}: expected a Change or a mapping with keys {_list(_KEYS)}"
        )
    mistakes = [
        f"change: {key} is {EDIT_NAMES[key]}; use only one of them"
        for key in change
        if EDIT_NAMES.get(key) in change
    ]
    keys = {key: _KEYS[EDIT_NAMES.get(key, key)] for key in (*_KEYS, *EDIT_NAMES)}
    # None keeps the current value where that is the default
    stated = {
        key: value
        for key, value in change.items()
        if value is not None or key not in keys or keys[key].default is not None
    }
    values, wrong = table_keys.read_values(stated, keys, whose=" of a change")
    refuse([*mistakes, *(text for _, text in wrong)])
    return Change(**{EDIT_NAMES.get(key, key): value for key, value in values.items()})


def _consumers(count: int, language: str | None = None) -> str:
    of = f" ({language})" if language else ""
    return f"{count:+} consumer{'' if abs(count) == 1 else 's'}{of}"


def _list(names: Any) -> str:
    return ", ".join(names)


_KEYS = table_keys.keys_of(Change)
