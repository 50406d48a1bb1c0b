"""Finds groups with different names in logs and dumps, for instance because a tool renamed them
only in logs.

A client id that ends with the nanosecond of its start belongs to one consumer, and a consumer to
one group, so if a broker logs such a client's connection for one group and lists it for another,
both are names of the same group. Any other id may belong to several groups in one process; then
both names refer to one group if the brokers' stores use the name in the dumps, no log does, and the
other name is only in logs. The logs are then read under the name in dumps, which stores also use.

If no list shows the clients, as of groups behind proxies, the stores decide: a broker writes
subscriptionGroup.json whenever it creates a group, so if its log has the creation of a group that
the later store lacks, and the store has exactly one group that no log names, both are one group.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse

from rebalance_core.ingest.collection import ADMIN, BROKER_LOG, GROUPS, LOGS
from rebalance_core.ingest.file_reader import MOST_WITNESSES, NAMED, VERSION, FileStats
from rebalance_core.ingest.group_names import OtherName
from rebalance_core.ingest.stored_names import stored_names
from rebalance_core.model.system_groups import is_system_group

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
    by_store = {other.in_logs: other for other in _stored_instead(stats)}
    for name in sorted((logged.keys() | by_store.keys()) - listed.keys()):
        ids = logged.get(name, {}).keys()
        same = {group: clients for group, of in listed.items() if (clients := of.keys() & ids)}
        of_one = {g for g, of in same.items() if any(map(_OF_ONE_CONSUMER.fullmatch, of))}
        of_process = {*same} & stored - logged.keys() if name not in stored else set()
        candidates = of_one or of_process
        if len(candidates) == 1 and candidates.isdisjoint(logged):
            (group,) = candidates
            client = min(same[group])
            other = OtherName(name, group, logged[name][client], listed[group][client])
            by_group.setdefault(group, []).append(other)
        elif name in by_store and not candidates:
            by_group.setdefault(by_store[name].group, []).append(by_store[name])
    return tuple(names[0] for names in by_group.values() if len(names) == 1)


def _stored_instead(stats: Sequence[FileStats]) -> Iterator[OtherName]:
    """Yield the groups that brokers' logs create and for which the stores have another name."""
    if any(len(s.witnessed) >= MOST_WITNESSES for s in stats if s.kind in (BROKER_LOG, GROUPS)):
        return
    stores, created = _newest_stores(stats), _created(stats)
    logged_ms = dict[str, int]()
    for of_log in (s for s in stats if s.kind == BROKER_LOG and s.last_ms is not None):
        folder = _folder(of_log)
        logged_ms[folder] = max(of_log.last_ms or 0, logged_ms.get(folder, 0))
    in_logs = {group for s in stats if s.kind in LOGS for group in s.groups()}
    lacking, instead = dict[str, set[str]](), dict[str, set[str]]()
    for folder in stores.keys() & created.keys():
        written_ms, store = stores[folder]
        if logged_ms.get(folder, -1) < written_ms:
            continue  # the log may lack a deletion
        names, made = {*store.groups()}, created[folder]
        lacking[folder] = {g for g, (ms, _) in made.items() if g not in names and ms <= written_ms}
        unnamed = set(filterfalse(is_system_group, names - in_logs))
        # a group that both have shows that the log and the store are of one broker
        instead[folder] = unnamed if names & made.keys() else set()
    for name in sorted(set().union(*lacking.values())):
        folders = [folder for folder in sorted(lacking) if name in created[folder]]
        others = set().union(*(instead[folder] for folder in folders))
        if len(others) == 1 and all(lacking[f] == {name} and instead[f] for f in folders):
            _, log = created[folders[0]][name]
            yield OtherName(name, min(others), log, stores[folders[0]][1].name)


def _newest_stores(stats: Iterable[FileStats]) -> dict[str, tuple[int, FileStats]]:
    """Return each broker folder's newest subscriptionGroup.json, and when the broker wrote it."""
    newest: dict[str, tuple[int, FileStats]] = {}
    for store in (s for s in stats if s.kind == GROUPS and not s.rejected):
        for written_ms, _ in store.witnessed.get(VERSION, ()):
            folder = _folder(store)
            if folder not in newest or newest[folder][0] <= written_ms:
                newest[folder] = written_ms, store
    return newest


def _created(stats: Iterable[FileStats]) -> dict[str, dict[str, tuple[int, str]]]:
    """Return the groups that each broker folder's logs create and no log deletes later, each with
    the time and the log. A slave's log may lack a deletion on its master.
    """
    last: dict[str, dict[str, tuple[int, int, str]]] = {}
    deleted_ms: dict[str, int] = {}
    for log in (s for s in stats if s.kind == BROKER_LOG):
        for group in {*log.groups()}:
            for at_ms, change in log.witnessed.get(f"{NAMED}{group}", ()):
                if change < 0:
                    deleted_ms[group] = max(at_ms, deleted_ms.get(group, at_ms))
                of_folder = last.setdefault(_folder(log), {})
                of_folder[group] = max(of_folder.get(group, (0, 0, "")), (at_ms, change, log.name))
    return {
        folder: {
            group: (ms, log)
            for group, (ms, change, log) in groups.items()
            if change > 0 and ms > deleted_ms.get(group, -1)
        }
        for folder, groups in last.items()
    }


def _folder(file_stats: FileStats) -> str:
    return file_stats.name.split("/")[1]
