"""Client ids as RocketMQ's clients make them, in parts; hosts for the clients a plan adds.

A clustering client without an instance name is ``ip@pid#nanotime``, new at each start; with one it
is ``ip@name`` (rocketmq.md §1.1). Two kinds of plans put new ids together of these parts:
`new_client_ids` (`what_if`: by a template, each on the next address) and `scenario.ids` (scenarios:
by seed, near and like a recorded process).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

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
    """What stands before the first ``@``, of ids of any form."""
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
    first, second, own, _ = address.packed
    network = IPv4Address(bytes((first, second, own if third is None else third, 0)))
    hosts = addresses_from(network)
    return [next(hosts) for _ in _LAST_NUMBERS]
