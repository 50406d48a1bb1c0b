"""A scenario applied to a whole history at once, to compare with what jobs do group by group."""

from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_core.model import events
from rebalance_core.model.errors import UsageError
from rebalance_core.planning.scenario.cluster_life import (
    ClusterNames,
    Row,
    order_of,
    proxy_of_source,
)
from rebalance_core.planning.scenario.scenario import (
    AnyRow,
    Scenario,
    group_edits,
    queues_in,
    refuse_unknown_names,
    shared_edits,
    unmatched,
)


@dataclass(frozen=True, slots=True)
class EditedHistory:
    """A whole history under a scenario."""

    rows: tuple[Row, ...]
    warnings: tuple[str, ...]


def edit_history(
    scenario: Scenario,
    rows: Iterable[AnyRow],
    consumer_groups: Iterable[AnyRow] = (),
    *,
    seed: int = 0,
) -> EditedHistory:
    """Return all rows of cluster_events under a scenario: `shared_edits` and all `group_edits`.

    Suits histories that fit into memory; errors as in `group_edits`.

    Raises:
        UsageError: An edit has ``each``, so it expands to several scenarios, or as in
            `refuse_unknown_names`.
    """
    if any(getattr(edit, "each", None) is not None for edit in scenario.edits):
        raise UsageError(f"{scenario.name}: an edit with each expands to several scenarios")
    rows = list(rows)
    parts: dict[tuple[str, str | None], list[AnyRow]] = {}
    for row in rows:
        name = row.get("consumer_group") if row["event_type"] in events.GROUP_EVENTS else None
        parts.setdefault((row["cluster"], name), []).append(row)
    settings = {(row["cluster"], row["consumer_group"]): row for row in consumer_groups}
    clusters = names_in(rows)
    refuse_unknown_names(scenario, clusters)
    warnings = list(unmatched(scenario, clusters))
    queues = queues_in(rows)
    edited: list[Row] = []
    for cluster, end_ms in sorted(end_of(rows).items()):
        parts.setdefault((cluster, None), [])
        for part_cluster, group in sorted(parts, key=lambda part: (part[0], part[1] or "")):
            if part_cluster != cluster:
                continue
            part_rows = parts[part_cluster, group]
            if group is None:
                done = shared_edits(scenario, part_rows, cluster=cluster, end_ms=end_ms)
            else:
                done = group_edits(
                    scenario,
                    group,
                    part_rows,
                    cluster=cluster,
                    end_ms=end_ms,
                    group_row=settings.get((cluster, group)),
                    queues=queues.get(cluster),
                    proxies=clusters[cluster].proxies,
                    seed=seed,
                )
            edited += done.rows
            warnings += done.warnings
    edited.sort(key=lambda row: (row["cluster"], *order_of(row)))
    return EditedHistory(tuple(edited), tuple(warnings))


def end_of(rows: Iterable[AnyRow]) -> dict[str, int]:
    """Return each cluster's last event, from which ``end``, ``+10m`` and ``-2h`` count."""
    ends: dict[str, int] = {}
    for row in rows:
        ends[row["cluster"]] = max(row["event_ms"], ends.get(row["cluster"], row["event_ms"]))
    return ends


def names_in(rows: Iterable[AnyRow]) -> dict[str, ClusterNames]:
    """Return the groups, topics, brokers and proxies that the events of each cluster name."""
    clusters: dict[str, ClusterNames] = {}
    for row in rows:
        names = clusters.setdefault(row["cluster"], ClusterNames())
        for column, seen in (
            ("consumer_group", names.groups),
            ("topic", names.topics),
            ("broker_name", names.brokers),
        ):
            if row.get(column) is not None:
                seen.add(row[column])
        proxy = proxy_of_source(row.get("source"))
        if proxy is not None:
            names.proxies.add(proxy)
    return clusters
