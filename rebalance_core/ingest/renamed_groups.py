"""Finds groups with different names in logs and dumps, for instance because a tool renamed them
only in logs.

A client id that ends with the nanosecond of its start belongs to one consumer, and a consumer to
one group, so if a broker logs such a client's connection for one group and lists it for another,
both are names of the same group. Any other id may belong to several groups in one process; then
both names refer to one group if the brokers' stores use the name in the dumps, no log does, and the
other name is only in logs. The logs are then read under the name in dumps, which stores also use.
"""

import re
from collections.abc import Iterable

from rebalance_core.ingest.collection import ADMIN, BROKER_LOG
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.group_names import OtherName
from rebalance_core.ingest.stored_names import stored_names

_OF_ONE_CONSUMER = re.compile(r".*@\d+#\d+(@.*)?")
"""ip@pid#nanoTime, which the client generates at each start; a unit name may follow."""


def other_names(stats: Iterable[FileStats]) -> tuple[OtherName, ...]:
    """Return the groups for which brokers' logs use a name of their own.

    Args:
        stats: the stats of each file.
    """
    stats = list(stats)
    logged, listed = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for file_stats in stats:
        groups = {BROKER_LOG: logged, ADMIN: listed}.get(file_stats.kind, {})
        for group, client_id in file_stats.members():
            groups.setdefault(group, {}).setdefault(client_id, file_stats.name)
    stored = stored_names(stats).groups
    by_group: dict[str, list[OtherName]] = {}
    for name in sorted(logged.keys() - listed.keys()):
        same = {g: clients for g, of in listed.items() if (clients := of.keys() & logged[name])}
        of_one = {g for g, ids in same.items() if any(map(_OF_ONE_CONSUMER.fullmatch, ids))}
        of_process = {*same} & stored - logged.keys() if name not in stored else set()
        candidates = of_one or of_process
        if len(candidates) == 1 and candidates.isdisjoint(logged):
            (group,) = candidates
            client = min(same[group])
            other = OtherName(name, group, logged[name][client], listed[group][client])
            by_group.setdefault(group, []).append(other)
    return tuple(names[0] for names in by_group.values() if len(names) == 1)
