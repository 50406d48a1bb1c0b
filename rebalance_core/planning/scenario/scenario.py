"""Scenarios: named edits, applied to a cluster's history, whatever its origin."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.model import events
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.planning.expectations import Expectation
from rebalance_core.planning.scenario.cluster_life import (
    ClusterLife,
    ClusterNames,
    EditedRows,
    order_of,
    recorded_rows,
)
from rebalance_core.planning.scenario.edit import Edit, matches
from rebalance_core.planning.scenario.group_life import GroupLife, ProcessKey

AnyRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loss:
    """The object lost in a scenario that ``each`` made: its kind, cluster and name."""

    each: str
    cluster: str
    name: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named list of edits, in file order, and the expectations for their result."""

    name: str
    description: str
    edits: tuple[Edit, ...]
    places: tuple[str, ...] = field(default=(), repr=False)
    """``file:line`` of each edit, for warnings; empty if no file was read."""
    expectations: tuple[Expectation, ...] = ()
    loss: Loss | None = None

    def source(self, number: int) -> str:
        """Return the name of an edit as used in its rows; it is the same on every machine."""
        return f"{self.name}#{number + 1}"


def group_edits(
    scenario: Scenario,
    consumer_group: str,
    rows: Iterable[AnyRow],
    *,
    cluster: str,
    end_ms: int,
    group_row: AnyRow | None = None,
    queues: Mapping[str, int] | None = None,
    proxies: Collection[str] = (),
    seed: int = 0,
    joined: Mapping[ProcessKey, int] | None = None,
) -> EditedRows:
    """Return the consumer events of a group under a scenario.

    Args:
        scenario: the scenario.
        consumer_group: the group.
        rows: its consumer events, in any order; OBSERVED events are sufficient. They must not
            include rows of brokers and topics.
        cluster: the cluster.
        end_ms: the time of the cluster's last event, which is the same for all its groups.
        group_row: the group's row of consumer_groups, used for members that state no topics.
        queues: the number in each topic of the cluster (`queues_in`), for warnings.
        proxies: the names found in the cluster's rows.
        seed: the seed for the choices that a scenario leaves open.
        joined: when members joined, if the rows have a later time.

    Returns:
        Rows kept, dropped and added. A later event of a process that an edit restarted applies to
        the new process, under its own key; an event of a process that it removed is dropped.

    Raises:
        InputRefused: A row has a sequence of 2^62 or more, an edit makes more than 65,536 events
            for the group at one instant, or it restarts proxies and names the group, which has no
            member behind a proxy.

    Cost: rows + new rows, and members x log(members) per edit.
    """
    ordered = recorded_rows(rows)
    edits = [
        (number, edit)
        for number, edit in enumerate(scenario.edits)
        if matches(cluster, edit.cluster) and edit.concerns_group(consumer_group)
    ]
    if not edits:
        return EditedRows(tuple(ordered), (), (), ())
    key = f"{seed}/{scenario.name}"
    life = GroupLife(
        cluster,
        consumer_group,
        ordered,
        end_ms=end_ms,
        group_row=group_row,
        queues=queues,
        proxies=sorted(proxies),
        seed=key,
        joined=joined,
    )
    for number, edit in edits:
        life.planning(number)
        life.at(edit.at.at(end_ms), edit.on_group, life, scenario.source(number))
    life.play(ordered)
    return life.log.result()


def shared_edits(
    scenario: Scenario, rows: Iterable[AnyRow], *, cluster: str, end_ms: int
) -> EditedRows:
    """Return the broker and topic events of a cluster under a scenario.

    Arguments, result and errors are as in `group_edits`; there are no random choices.
    """
    ordered = recorded_rows(rows)
    life = ClusterLife(cluster, end_ms=end_ms)
    for number, edit in enumerate(scenario.edits):
        if edit.concerns_cluster() and matches(cluster, edit.cluster):
            life.planning(number)
            life.at(edit.at.at(end_ms), edit.on_cluster, life, scenario.source(number))
    life.play(ordered)
    return life.log.result()


def queues_in(rows: Iterable[AnyRow]) -> dict[str, dict[str, int]]:
    """Return the number of readable queues that each topic has at the end, by cluster; rows may be
    in any order.
    """
    clusters: dict[str, dict[str, dict[str, int]]] = {}
    for row in sorted(rows, key=order_of):
        if row["event_type"] not in events.TOPIC_EVENTS:
            continue
        brokers = clusters.setdefault(row["cluster"], {}).setdefault(row["topic"], {})
        name = row.get("broker_name")
        if row["event_type"] == events.TOPIC_CONFIG:
            brokers[row["broker_name"]] = row["read_queue_nums"]
        elif name is None:
            brokers.clear()
        else:
            brokers.pop(name, None)
    return {
        cluster: {topic: sum(brokers.values()) for topic, brokers in topics.items() if brokers}
        for cluster, topics in clusters.items()
    }


def unmatched(scenario: Scenario, clusters: Mapping[str, ClusterNames]) -> Iterator[str]:
    """Yield a warning, with similar names, for every pattern that matches nothing in its edit's
    clusters.
    """
    for number, edit in enumerate(scenario.edits):
        where = scenario.places[number] if scenario.places else scenario.source(number)
        for pattern in edit.cluster:
            if not any(matches(name, [pattern]) for name in clusters):
                hint = did_you_mean(pattern, clusters)
                yield f'{where}: cluster = "{pattern}" matches no cluster{hint}'
        chosen = [names for name, names in clusters.items() if matches(name, edit.cluster)]
        for key, (what, patterns) in edit.globs().items():
            named = {name for names in chosen for name in getattr(names, what)}
            for pattern in patterns:
                if chosen and not any(matches(name, [pattern]) for name in named):
                    hint = did_you_mean(pattern, named)
                    yield f'{where}: {key} = "{pattern}" matches none of {len(named)} {what}{hint}'


def refuse_unknown_names(scenario: Scenario, clusters: Mapping[str, ClusterNames]) -> None:
    """Refuse a scenario whose edits cannot be applied to any of their clusters.

    Raises:
        UsageError: One line per mistake, with similar names.
    """
    mistakes = []
    for number, edit in enumerate(scenario.edits):
        where = scenario.places[number] if scenario.places else scenario.source(number)
        chosen = {name: names for name, names in clusters.items() if matches(name, edit.cluster)}
        mistakes += [f"{where}: {mistake}" for mistake in edit.unknown_names(chosen)]
    if mistakes:
        raise UsageError("\n".join(mistakes))
