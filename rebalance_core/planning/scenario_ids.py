"""Client ids and channels of processes that only a scenario has, as RocketMQ's clients make them.

A clustering client without an instance name is ``ip@pid#nanotime``, new at each start; with one
(``ip@name``) it comes back under the same id on another channel (SEM §1.1).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rebalance_core.synthetic.draws import Draws

_MADE = re.compile(r"(?P<host>.*)@(?P<pid>\d+)#(?P<nanos>\d+)(?P<ending>@\w+)?", re.DOTALL)
_IPV4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})")
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
    """The id and channel of the process that takes the place of ``key`` on the same host.

    Args:
        key: the process that ended.
        joined_ms: when it had joined; ``System.nanoTime`` of the host has gone on since.
        at_ms: when the new one joins.
        taken: ids and channels in use.
        draws: random numbers of this restart.
    """
    made = _MADE.fullmatch(key[0])
    while True:
        client_id, pid = key[0], str(draws.between(LOWEST_PID, HIGHEST_PID))
        if made is not None:
            pid = made["pid"] if made["pid"] == CONTAINER_PID else pid
            gone_ms = max(0, at_ms - joined_ms) + draws.between(1, LONGEST_START_MS)
            nanos = int(made["nanos"]) + gone_ms * NANOS_PER_MS + draws.between(0, NANOS_PER_MS - 1)
            client_id = f"{made['host']}@{pid}#{nanos}{made['ending'] or ''}"
        new = client_id, _next_channel(key[1], made["host"] if made else None, pid, draws)
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
    hosts = {client_id.partition("@")[0] for client_id, _ in taken}
    address = _free_address(host, hosts, number, draws)
    made = _MADE.fullmatch(model[0])
    pid = str(draws.between(LOWEST_PID, HIGHEST_PID))
    if made is not None:
        pid = made["pid"] if made["pid"] == CONTAINER_PID else pid
        nanos = draws.between(1, 200 * 86_400_000) * NANOS_PER_MS + draws.between(0, 999_999)
        instance = f"{pid}#{nanos}{made['ending'] or ''}"
    client_id = f"{address}{at}{instance}"
    if model[1] is not None and (place := _PROCESS_CHANNEL.fullmatch(model[1])):
        return client_id, f"{place['place']}-n{number}/{pid}"
    return client_id, f"{address}:{draws.between(LOWEST_PORT, HIGHEST_PORT)}"


def _free_address(host: str, hosts: Collection[str], number: int, draws: Draws) -> str:
    parts = _IPV4.fullmatch(host)
    if parts is not None:
        network = ".".join(parts.groups()[:3])
        free = [f"{network}.{last}" for last in range(1, 255)]
        free = [address for address in free if address not in hosts]
        if free:
            return draws.pick(free)
        wider = ".".join(parts.groups()[:2])
        third = [n for n in range(256) if str(n) != parts[3]]
        candidates = (f"{wider}.{a}.{b}" for a in draws.shuffled(third) for b in range(1, 255))
        free_wide = next((address for address in candidates if address not in hosts), None)
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
