"""Client ids and channels for processes that a scenario adds: by seed, like recorded ones.

An id that RocketMQ's client makes (`client_id_form`) is new at each start; with an instance name a
process comes back under the same id on another channel (rocketmq.md §1.1).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from rebalance_core.model.times import DAY_MS
from rebalance_core.planning.what_if.client_id_form import (
    MadeId,
    address_of,
    addresses_of_network,
    host_of,
    read_made_id,
)
from rebalance_core.synthetic.draws import Draws

_ADDRESS_CHANNEL = re.compile(r"(?P<address>.+):(?P<port>\d+)")
_PROCESS_CHANNEL = re.compile(r"(?P<place>.+)/(?P<pid>\d+)")

NANOS_PER_MS = 1_000_000
CONTAINER_PID = "1"
LOWEST_PID, HIGHEST_PID = 400, 65_000
LOWEST_PORT, HIGHEST_PORT = 32_768, 60_999  # Linux's ephemeral ports
LONGEST_START_MS = 5_000

ProcessKey = tuple[str, str | None]


def restarted(
    key: ProcessKey, joined_ms: int, at_ms: int, taken: Collection[ProcessKey], draws: Draws
) -> ProcessKey:
    """The id and channel of the process that replaces ``key`` on the same host.

    Args:
        key: the process that ended.
        joined_ms: when it had joined; ``System.nanoTime`` of the host has gone on since.
        at_ms: when the new one joins.
        taken: ids and channels in use.
        draws: random numbers of this restart.
    """
    made = read_made_id(key[0])
    while True:
        client_id, pid = key[0], _pid(made, draws)
        if made is not None:
            gone_ms = max(0, at_ms - joined_ms) + draws.between(1, LONGEST_START_MS)
            nanos = int(made.nanos) + gone_ms * NANOS_PER_MS + draws.between(0, NANOS_PER_MS - 1)
            client_id = str(replace(made, pid=pid, nanos=str(nanos)))
        new = client_id, _next_channel(key[1], made.host if made else None, pid, draws)
        if new not in taken:
            return new


def newcomer(
    model: ProcessKey, at_ms: int, taken: Collection[ProcessKey], number: int, draws: Draws
) -> ProcessKey:
    """The id and channel of one more process, on a host of its own near that of ``model``.

    A new IPv4 address differs in the last number, so it is in the same room as the model by any
    prefix; other hosts get ``-n<number>`` behind their name.
    """
    host, at, instance = model[0].partition("@")
    hosts = {host_of(client_id) for client_id, _ in taken}
    address = _free_host(host, hosts, number, draws)
    made = read_made_id(model[0])
    client_id, pid = f"{address}{at}{instance}", _pid(made, draws)
    if made is not None:
        nanos = draws.between(1, 200 * DAY_MS) * NANOS_PER_MS + draws.between(0, 999_999)
        client_id = str(MadeId(address, pid, str(nanos), made.ending))
    if model[1] is not None and (place := _PROCESS_CHANNEL.fullmatch(model[1])):
        return client_id, f"{place['place']}-n{number}/{pid}"
    return client_id, f"{address}:{draws.between(LOWEST_PORT, HIGHEST_PORT)}"


def _pid(made: MadeId | None, draws: Draws) -> str:
    """A drawn one; in a container every process has the same."""
    drawn = str(draws.between(LOWEST_PID, HIGHEST_PID))
    return CONTAINER_PID if made is not None and made.pid == CONTAINER_PID else drawn


def _free_host(host: str, hosts: Collection[str], number: int, draws: Draws) -> str:
    """An address of the network of ``host``; if all are taken, of one beside it; or a name."""
    near = address_of(host)
    if near is not None:
        free = [address for address in addresses_of_network(near) if address not in hosts]
        if free:
            return draws.pick(free)
        third = [n for n in range(256) if n != near.packed[2]]
        wide = (a for n in draws.shuffled(third) for a in addresses_of_network(near, n))
        free_wide = next((address for address in wide if address not in hosts), None)
        if free_wide is not None:
            return free_wide
    name = f"{host}-n{number}"
    while name in hosts:
        name += "x"
    return name


def _next_channel(channel: str | None, host: str | None, pid: str, draws: Draws) -> str:
    """The connection of the new process: another port, or the place of the log and the pid."""
    port = draws.between(LOWEST_PORT, HIGHEST_PORT)
    if channel is None:
        return f"{host or 'restarted'}:{port}"
    if place := _PROCESS_CHANNEL.fullmatch(channel):
        return f"{place['place']}/{pid}"
    if address := _ADDRESS_CHANNEL.fullmatch(channel):
        return f"{address['address']}:{port}"
    return f"{channel}:{port}"
