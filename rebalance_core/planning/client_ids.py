"""Client ids as RocketMQ's clients make them, in parts, and ids for the consumers that a plan adds.

A clustering client without an instance name is ``ip@pid#nanotime``, new at each start; with an
instance name it is ``ip@name`` (rocketmq.md §1.1). Two kinds of plans build new ids from these
parts: `new_client_ids` (`what_if`: from a template, each with the next address) and
`scenario.group_life` (scenarios: by seed, similar to a recorded process and near it).

The position of new ids among the old ones determines what AVG moves, so the caller of `what_if` may
choose their form; by default they look like those of RocketMQ's clients (`MadeId`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from string import Formatter

from rebalance_core.model.clients import profile_of
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.languages import CPP, DOTNET, GO, NODE

_MADE = re.compile(r"(?P<host>.*)@(?P<pid>\d+)#(?P<nanos>\d+)(?P<ending>@\w+)?", re.DOTALL)
_LAST_NUMBERS = range(1, 255)  # no host in today's networks has 0 or 255


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
        """Return the id."""
        return f"{self.host}@{self.pid}#{self.nanos}{self.ending}"


def read_made_id(client_id: str) -> MadeId | None:
    """Return the parts of an id, or None if it has an instance name or another form."""
    made = _MADE.fullmatch(client_id)
    return None if made is None else MadeId(*(part or "" for part in made.groups()))


def host_of(client_id: str) -> str:
    """Return the part before the first ``@``, for ids of any form."""
    return client_id.partition("@")[0]


def address_of(host: str) -> IPv4Address | None:
    """Return the IPv4 address in a host name, or None for any other name."""
    try:
        return IPv4Address(host)
    except AddressValueError:
        return None


def addresses_from(first: IPv4Address) -> Iterator[str]:
    """Yield host addresses from this address upwards; the last number stays within 1 to 254.

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
    """Return the 254 host addresses of a network, optionally with another third number."""
    first, second, own_third, _ = address.packed
    network = IPv4Address(bytes((first, second, own_third if third is None else third, 0)))
    hosts = addresses_from(network)
    return [next(hosts) for _ in _LAST_NUMBERS]


DEFAULT_TEMPLATE = str(MadeId("{ip}", "{pid}", "{nanos}"))
TEMPLATES = {GO: "{ip}@{pid}", NODE: "{ip}@{pid}", DOTNET: "{ip}@{pid}", CPP: "{ip}@{pid}#DEFAULT"}
"""Templates for clients whose ids differ in form from Java's; those for C++ apply from 1.2.5 on."""
FIELDS = {
    "n": "1, 2, 3 … for the added consumers",
    "ip": "the next free IPv4 addresses after the group's highest",
    "pid": "a process id, different for each",
    "nanos": "a System.nanoTime(), different for each",
}
FIRST_ADDRESS = IPv4Address("10.0.0.1")  # for a group in which no id begins with an address
PID, PID_STEP = 20_000, 37
NANOS, NANOS_STEP = 1_000_000_000_000, 7_919_000_000_000


def new_client_ids(
    count: int, present: Collection[str], template: str = DEFAULT_TEMPLATE
) -> list[str]:
    """Return ids that are not in ``present``; the same arguments give the same ids.

    Args:
        count: The number of ids.
        present: The group's client ids.
        template: Text with fields of `FIELDS` in braces; a template without fields makes one id.

    Raises:
        UsageError: `check_template` reports a mistake, or the template yields an id twice or one
            that is already present.

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
                f"client_id_template = {template!r}: id {client_id!r} already exists; add a "
                f"field that differs, e.g. {{n}} ({', '.join(FIELDS)})"
            )
        made.append(client_id)
    return made


def template_of(language: str | None) -> str:
    """Return the template by which clients in a language make their ids.

    >>> template_of("GO"), template_of(None)
    ('{ip}@{pid}', '{ip}@{pid}#{nanos}')
    """
    return TEMPLATES.get(profile_of(language).language, DEFAULT_TEMPLATE)


def check_template(template: str) -> list[str]:
    """Return the mistakes in a template."""
    try:
        fields = [
            (name, spec) for _, name, spec, _ in Formatter().parse(template) if name is not None
        ]
    except ValueError as error:
        return [
            f"client_id_template = {template!r}: {error}; write {{{{ and }}}} for literal braces"
        ]
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
    """Return ids like those of `new_client_ids`, on hosts that a seed draws from the group's
    networks.

    The position of a process that really joins is unknown; these ids stand for the possible
    positions.

    >>> len(set(drawn_client_ids(3, ["10.0.0.9@711#81"], 0)))
    3
    """
    draws = random.Random(seed)  # not used for secrets
    named = (address_of(host_of(client_id)) for client_id in present)
    homes = sorted({address for address in named if address is not None}) or [FIRST_ADDRESS]
    taken, made = {host_of(client_id) for client_id in present}, list[str]()
    while len(made) < count:
        free = [a for a in addresses_of_network(draws.choice(homes)) if a not in taken]
        host = draws.choice(free or addresses_of_network(draws.choice(homes)))
        taken.add(host)
        pid, nanos = draws.randrange(1, 100_000), draws.randrange(10**12, 10**16)
        if (made_id := str(MadeId(host, str(pid), str(nanos)))) not in present:
            made.append(made_id)
    return made


def _free_addresses(present: Collection[str]) -> Iterator[str]:
    """Yield addresses after the highest address that begins an id."""
    used = [address for c in present if (address := address_of(host_of(c))) is not None]
    yield from addresses_from(max(used) + 1 if used else FIRST_ADDRESS)
