"""The cost of proxy restarts to the groups behind them, from the rows of the edits."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.engine.fan_out import GROUP
from rebalance_core.model.events import CONSUMER_LOST
from rebalance_core.model.times import SECOND_MS
from rebalance_core.planning.scenario.proxy_edits import KILLED, RestartProxies
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.sweep.member_settings import Group
from rebalance_core.protocol.proxy_stops import ProxyStop

PROXY_FIGURES = {
    "proxy_clients": pa.int64(),
    "proxy_wait_s": pa.float64(),
    "proxy_repeat_s": pa.float64(),
}
"""Columns of ``plan_summary``; null where no proxy of the group restarts."""
_SCHEMA = pa.schema([*((name, pa.string()) for name in GROUP), *PROXY_FIGURES.items()])
_COLUMNS = (*GROUP, "event_ms", "sequence", "event_type", "client_id", "source")


def proxy_figures(event_rows: pa.Table, scenario: Scenario | None) -> pa.Table:
    """Return cluster, consumer_group and `PROXY_FIGURES` for groups whose proxies restart.

    A client whose proxy restarts twice counts once. The wait is that of the worst stop; null if a
    client does not return.

    Args:
        event_rows: cluster_events of a history under the scenario.
        scenario: the scenario of the history, or None if it has none.
    """
    killed = {} if scenario is None else dict(_sources(scenario))
    of_edits = pc.is_in(event_rows["source"], value_set=pa.array(list(killed), pa.string()))
    rows = event_rows.filter(of_edits).select(_COLUMNS)
    rows = rows.sort_by([("event_ms", "ascending"), ("sequence", "ascending")])
    lost: dict[tuple[Group, str], tuple[int, str]] = {}
    clients: dict[Group, set[str]] = {}
    stops: dict[Group, list[ProxyStop]] = {}
    for row in rows.to_pylist():
        group = row["cluster"], row["consumer_group"]
        client = group, row["client_id"]
        if row["event_type"] == CONSUMER_LOST:
            lost[client] = row["event_ms"], row["source"]
            clients.setdefault(group, set()).add(row["client_id"])
        elif client in lost:
            lost_ms, source = lost.pop(client)
            stop = ProxyStop(killed[source], row["event_ms"] - lost_ms)
            stops.setdefault(group, []).append(stop)
    away = {group for group, _ in lost}
    return pa.Table.from_pylist(
        [
            dict(zip(GROUP, group, strict=True))
            | {
                "proxy_clients": len(names),
                "proxy_wait_s": None
                if group in away
                else max(stop.longest_wait_ms for stop in stops[group]) / SECOND_MS,
                "proxy_repeat_s": None
                if group in away
                else max(stop.repeated_by_ms for stop in stops[group]) / SECOND_MS,
            }
            for group, names in clients.items()
        ],
        _SCHEMA,
    )


def _sources(scenario: Scenario) -> Iterator[tuple[str, bool]]:
    """Yield the source of each restart's rows, and whether it kills the proxy."""
    for number, edit in enumerate(scenario.edits):
        if isinstance(edit, RestartProxies):
            yield scenario.source(number), edit.how == KILLED
