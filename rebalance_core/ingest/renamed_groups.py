"""Groups that logs call by another name than dumps do, as where a tool renamed them in logs alone.

A client id that ends in the nanosecond of its start is of one consumer, and a consumer is of one
group: where a broker logs the connection of such a client for one group, and lists it for another,
both are names of one group. The logs are then read under the name of dumps, which stores have, too.
"""

import re
from collections.abc import Iterable

from rebalance_core.ingest.collection import ADMIN, BROKER_LOG
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.group_names import OtherName

_OF_ONE_CONSUMER = re.compile(r".*@\d+#\d+(@.*)?")
"""ip@pid#nanoTime, which the client makes at each start; a unit name may follow."""


def other_names(stats: Iterable[FileStats]) -> tuple[OtherName, ...]:
    """Return the groups that brokers' logs call by a name of their own.

    Args:
        stats: how each file was understood.
    """
    logged, listed = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for file_stats in stats:
        groups = {BROKER_LOG: logged, ADMIN: listed}.get(file_stats.kind, {})
        for group, client_id in file_stats.members():
            if _OF_ONE_CONSUMER.fullmatch(client_id):
                groups.setdefault(group, {}).setdefault(client_id, file_stats.name)
    by_group: dict[str, list[OtherName]] = {}
    for name in sorted(logged.keys() - listed.keys()):
        same = {g: clients for g, of in listed.items() if (clients := of.keys() & logged[name])}
        if len(same) == 1 and same.keys().isdisjoint(logged):
            ((group, clients),) = same.items()
            client = min(clients)
            other = OtherName(name, group, logged[name][client], listed[group][client])
            by_group.setdefault(group, []).append(other)
    return tuple(names[0] for names in by_group.values() if len(names) == 1)
