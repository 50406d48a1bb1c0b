"""The parts of each input table: an entity kind, the number of entities, and their rows."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter

from rebalance_core.model.intervals import INTERVALS
from rebalance_core.synthetic import committed_offsets, queue_offsets
from rebalance_core.synthetic.clusters import broker_events
from rebalance_core.synthetic.days import group_events
from rebalance_core.synthetic.event_rows import Row
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import group_of
from rebalance_core.synthetic.offset_columns import OffsetColumns
from rebalance_core.synthetic.topics import topic_events

PartRows = list[Row] | OffsetColumns
"""Some rows of a table: as dicts, or as columns."""


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a table that a kind of entity yields, each entity independently.

    ``entities`` counts them in a plan; ``rows(plan, number)`` yields the rows of an entity, in
    pieces.
    """

    entities: Callable[[FleetPlan], int]
    rows: Callable[[FleetPlan, int], Iterator[PartRows]]


_clusters, _topics, _groups = map(attrgetter, ("clusters", "topics", "groups"))


def group_row(plan: FleetPlan, number: int) -> Iterator[list[Row]]:
    """Yield a group's row of consumer_groups; none if its settings were not exported."""
    group = group_of(plan, number)
    if group.has_row:
        place = {"cluster": group.cluster.name, "consumer_group": group.name}
        stated = asdict(group.settings)
        usual = dict.fromkeys(
            ("notified", *INTERVALS)
        )  # null: as in RocketMQ's brokers and clients
        yield [place | stated | usual]


PARTS: dict[str, tuple[Part, ...]] = {
    "cluster_events": (
        Part(_clusters, broker_events),
        Part(_topics, topic_events),
        Part(_groups, group_events),
    ),
    "consumer_groups": (Part(_groups, group_row),),
    "queue_offsets": (
        Part(_topics, queue_offsets.topic_offsets),
        Part(_groups, queue_offsets.retry_offsets),
    ),
    "committed_offsets": (Part(_groups, committed_offsets.committed_offsets),),
}
"""The parts by input table; an entity's rows depend only on the plan and its number."""
