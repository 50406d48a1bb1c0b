"""Client ids as RocketMQ's clients make them, and those of consumers that `what_if` adds."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from ipaddress import AddressValueError, IPv4Address
from string import Formatter
from typing import Any

from rebalance_core.model.clients import parse_language, profile_of
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.group_settings import CPP, DOTNET, GO, NODE
from rebalance_core.planning.what_if.planned_group import (
    RequestModes,
    Strategy,
    check_queue_numbers,
    read_rebalance_mode,
    read_request_modes,
    read_strategy,
    refuse,
)

# Client ids as RocketMQ's clients make them, in parts; hosts for the clients a plan adds.
#
# A clustering client without an instance name is ``ip@pid#nanotime``, new at each start; with one
# it is ``ip@name`` (rocketmq.md §1.1). Two kinds of plans put new ids together of these parts:
# `new_client_ids` (`what_if`: by a template, each on the next address) and `scenario.group_life`
# (scenarios: by seed, near and like a recorded process).

_MADE = re.compile(r"(?P<host>.*)@(?P<pid>\d+)#(?P<nanos>\d+)(?P<ending>@\w+)?", re.DOTALL)
_LAST_NUMBERS = range(1, 255)  # 0 and 255 are no host's in the networks of today


@dataclass(frozen=True, slots=True)
class MadeId:
    """An id without an instance name; ``ending`` is ``@`` and the unit's name, or empty.

    >>> read_made_id("10.0.0.9@711#81@unit")
    MadeId(host='10.0.0.9', pid='711', nanos='81', ending='@unit')
    >>> read_made_id("10.0.0.9@app")
    """

    host: str
    pid: str
    nanos: str
    ending: str = ""

    def __str__(self) -> str:
        """The id."""
        return f"{self.host}@{self.pid}#{self.nanos}{self.ending}"


def read_made_id(client_id: str) -> MadeId | None:
    """The parts of an id; None: it has an instance name, or another form altogether."""
    made = _MADE.fullmatch(client_id)
    return None if made is None else MadeId(*(part or "" for part in made.groups()))


def host_of(client_id: str) -> str:
    """Return the part before the first ``@``, of ids of any form."""
    return client_id.partition("@")[0]


def address_of(host: str) -> IPv4Address | None:
    """The IPv4 address that a host is named by; None: it has another name."""
    try:
        return IPv4Address(host)
    except AddressValueError:
        return None


def addresses_from(first: IPv4Address) -> Iterator[str]:
    """Hosts' addresses from this one up; the last number stays within 1 to 254.

    >>> hosts = addresses_from(IPv4Address("10.0.0.254"))
    >>> next(hosts), next(hosts)
    ('10.0.0.254', '10.0.1.1')
    """
    address = first
    while True:
        if int(address) % 256 in _LAST_NUMBERS:
            yield str(address)
        address += 1


def addresses_of_network(address: IPv4Address, third: int | None = None) -> list[str]:
    """The 254 hosts' addresses that differ in the last number; or with another third one."""
    first, second, own_third, _ = address.packed
    network = IPv4Address(bytes((first, second, own_third if third is None else third, 0)))
    hosts = addresses_from(network)
    return [next(hosts) for _ in _LAST_NUMBERS]


# Client ids of consumers that `what_if` adds: no seed, no channel, by the caller's template.
#
# Where the new ids sort among the old ones decides what AVG moves, so the caller may say how they
# look; by default they look like those of RocketMQ's clients (`MadeId`).

DEFAULT_TEMPLATE = str(MadeId("{ip}", "{pid}", "{nanos}"))
TEMPLATES = {GO: "{ip}@{pid}", NODE: "{ip}@{pid}", DOTNET: "{ip}@{pid}", CPP: "{ip}@{pid}#DEFAULT"}
"""Of clients whose ids are not made as Java's; those of C++ are of 1.2.5 or later."""
FIELDS = {
    "n": "1, 2, 3 … of the consumers added",
    "ip": "the next free IPv4 addresses after the highest one of the group",
    "pid": "a process id, another for each",
    "nanos": "a System.nanoTime(), another for each",
}
FIRST_ADDRESS = IPv4Address("10.0.0.1")  # of a group whose ids begin with no address
PID, PID_STEP = 20_000, 37
NANOS, NANOS_STEP = 1_000_000_000_000, 7_919_000_000_000


def new_client_ids(
    count: int, present: Collection[str], template: str = DEFAULT_TEMPLATE
) -> list[str]:
    """Ids that are not in ``present``; the same arguments give the same ids.

    Args:
        count: How many.
        present: Client ids of the group.
        template: Text with fields of `FIELDS` in braces; with none of them it must be for one id.

    Raises:
        UsageError: `check_template` finds a mistake, or the template gives an id twice or one that
            is there already.

    >>> new_client_ids(2, ["10.0.0.9@711#81"])
    ['10.0.0.10@20000#1000000000000', '10.0.0.11@20037#8919000000000']
    >>> new_client_ids(2, [], "web-{n}@app")
    ['web-1@app', 'web-2@app']
    """
    if mistakes := check_template(template):
        raise UsageError("\n".join(mistakes))
    addresses = _free_addresses(present)
    made: list[str] = []
    for n in range(1, count + 1):
        values = {
            "n": n,
            "ip": next(addresses),
            "pid": PID + (n - 1) * PID_STEP,
            "nanos": NANOS + (n - 1) * NANOS_STEP,
        }
        client_id = template.format_map(values)
        if client_id in made or client_id in present:
            raise UsageError(
                f"client_id_template = {template!r}: {client_id!r} is there already; put a field"
                f" that differs into it, e.g. {{n}} ({', '.join(FIELDS)})"
            )
        made.append(client_id)
    return made


def template_of(language: str | None) -> str:
    """Return how clients of a language make their ids.

    >>> template_of("GO"), template_of(None)
    ('{ip}@{pid}', '{ip}@{pid}#{nanos}')
    """
    return TEMPLATES.get(profile_of(language).language, DEFAULT_TEMPLATE)


def check_template(template: str) -> list[str]:
    """Say what is wrong with a template."""
    try:
        fields = [
            (name, spec) for _, name, spec, _ in Formatter().parse(template) if name is not None
        ]
    except ValueError as error:
        return [f"client_id_template = {template!r}: {error}; write {{{{ and }}}} for braces"]
    mistakes = [
        f"client_id_template = {template!r}: unknown field {{{name}}}; known: {', '.join(FIELDS)}"
        + did_you_mean(name, FIELDS)
        for name, _ in fields
        if name not in FIELDS
    ]
    if not template:
        mistakes.append("client_id_template is empty")
    try:
        if not mistakes:
            template.format_map({"n": 1, "ip": "", "pid": 1, "nanos": 1})
    except (ValueError, TypeError) as error:
        mistakes.append(f"client_id_template = {template!r}: {error}")
    return mistakes


def drawn_client_ids(count: int, present: Collection[str], seed: int) -> list[str]:
    """Ids like those of `new_client_ids` on hosts that a seed draws among the group's own.

    Where a process that really joins will sort is not known; these stand for the places it may get.

    >>> len(set(drawn_client_ids(3, ["10.0.0.9@711#81"], 0)))
    3
    """
    draws = random.Random(seed)  # no secret
    named = (address_of(host_of(client_id)) for client_id in present)
    homes = sorted({address for address in named if address is not None}) or [FIRST_ADDRESS]
    taken, made = {host_of(client_id) for client_id in present}, list[str]()
    while len(made) < count:
        free = [a for a in addresses_of_network(draws.choice(homes)) if a not in taken]
        host = draws.choice(free or addresses_of_network(draws.choice(homes)))
        taken.add(host)
        pid, nanos = draws.randrange(1, 100_000), draws.randrange(10**12, 10**16)
        if (one := str(MadeId(host, str(pid), str(nanos)))) not in present:
            made.append(one)
    return made


def _free_addresses(present: Collection[str]) -> Iterator[str]:
    """Addresses after the highest that an id begins with."""
    used = [address for c in present if (address := address_of(host_of(c))) is not None]
    yield from addresses_from(max(used) + 1 if used else FIRST_ADDRESS)


# What a planner wants to change: a value, built by small functions or read from a mapping.
#
# Changes are joined by ``|`` and happen at one instant: ``add_consumers(5) |
# lose_broker("b-1")``.

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
        language: Of the clients that join, e.g. GO; None: Java. Without a template their ids have
            the form that such a client makes.
    """

    add_consumers: int = 0
    client_id_template: str = DEFAULT_TEMPLATE
    remove_consumers: int | tuple[str, ...] = 0
    lose_broker: tuple[str, ...] = ()
    queues: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    strategy: Strategy | None = None
    request_modes: RequestModes = field(default_factory=dict)
    rebalance_mode: str | None = None
    language: str | None = None

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
        named = other.client_id_template != DEFAULT_TEMPLATE
        return Change(
            self.add_consumers + other.add_consumers,
            other.client_id_template if named else self.client_id_template,
            removed,
            tuple(dict.fromkeys(self.lose_broker + other.lose_broker)),
            {
                topic: {**self.queues.get(topic, {}), **other.queues.get(topic, {})}
                for topic in dict.fromkeys((*self.queues, *other.queues))
            },
            self.strategy if other.strategy is None else other.strategy,
            {**self.request_modes, **other.request_modes},
            other.rebalance_mode or self.rebalance_mode,
            other.language or self.language,
        )

    def __str__(self) -> str:
        """In words, e.g. ``+2 consumers, without broker-a``."""
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
    """So many processes join; the template says how their ids look and so where they sort.

    >>> str(add_consumers(1, language="GO"))
    '+1 consumer (GO)'
    """
    return Change(count, client_id_template, language=language)


def remove_consumers(count_or_ids: int | str | Sequence[str]) -> Change:
    """So many processes leave, the last ones in Java's order; or these client ids."""
    return read_change({"remove_consumers": count_or_ids})


def lose_broker(*names: str) -> Change:
    """These brokers' queues go away."""
    return Change(lose_broker=names)


def set_queues(numbers: Mapping[str, Mapping[str, int]], *more: object) -> Change:
    """Topic -> broker -> number of queues from now on: scale out or in, or a new topic.

    Raises:
        UsageError: it is no such mapping, or there is more than one argument.

    >>> str(set_queues({"orders": {"broker-b": 0}}))
    'orders: 0 queues on broker-b'
    """
    asked: object = numbers
    nested = isinstance(asked, Mapping) and all(isinstance(of, Mapping) for of in asked.values())
    if more or not nested:
        given = ", ".join(map(repr, (asked, *more)))
        form = {asked: more[0]} if isinstance(asked, str) and more else {"T": {"broker-a": 8}}
        raise UsageError(
            f"set_queues({given}): expected one mapping, topic -> broker -> number of queues; "
            f"write set_queues({form!r})"
        )
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


EDIT_NAMES = {
    "scale_queues": "queues",
    "new_topic": "queues",
    "switch_strategy": "strategy",
    "switch_request_mode": "request_modes",
}
"""What scenarios call an edit that `Change` calls otherwise."""


def read_change(given: Change | Mapping[str, Any]) -> Change:
    """A change of a mapping: keys are the attributes of `Change` or the kinds of scenarios' edits.

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
    known = (*_DEFAULTS, *EDIT_NAMES)
    mistakes = [
        f"change: unknown key {key!r}; known: {_list(known)}{did_you_mean(str(key), known)}"
        for key in given
        if key not in known
    ]
    mistakes += [
        f"change: {key} is {EDIT_NAMES[key]}; give one of them"
        for key in given
        if EDIT_NAMES.get(key) in given
    ]
    given = {EDIT_NAMES.get(key, key): value for key, value in given.items()}
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


def _language(key: str, value: Any, mistakes: list[str]) -> str | None:
    try:
        return None if value is None else parse_language(str(value))
    except UsageError as error:
        mistakes.append(f"{key} = {value!r}: {error}")
        return None


def _consumers(count: int, language: str | None = None) -> str:
    of = f" ({language})" if language else ""
    return f"{count:+} consumer{'' if abs(count) == 1 else 's'}{of}"


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
    "language": _language,
}
_DEFAULTS: dict[str, Any] = {
    attribute.name: {} if attribute.default is MISSING else attribute.default
    for attribute in fields(Change)
}
