"""The plan of a fleet: the number of entities of each kind, resolved before any is made."""

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.model.errors import UsageError
from rebalance_core.model.times import DAY_MS, HOUR_MS, YEAR_2000_MS

MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00:00Z, a Monday

TOPICS_PER_GROUP = 0.4  # a topic has 2.5 groups of its own, and popular topics many more
FEWEST_TOPICS = 3

# Measured means (10,000 groups, several seeds), for a plan's expected row counts.
EVENTS_PER_TOPIC = 2.6
MEMBERS_PER_GROUP = 9.0
CHANGES_PER_GROUP_DAY = 30.0
QUEUES_PER_GROUP = 10.1  # including retry queues; groups share topics
COMMITS_PER_GROUP = 31.5
ROWS_PER_GROUP = 0.98

RANGES = {
    "groups": (1, 10_000_000),
    "days": (1, 3_650),
    "seed": (-(2**63), 2**63 - 1),
    "start_ms": (YEAR_2000_MS, 4_102_444_800_000),  # to the year 2100
    "groups_per_cluster": (1, 100_000),
    "offset_hours": (1, 24),
}
"""The lowest and highest value of each number in a plan."""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A fleet to be made; a plain value that can be printed and sent to tasks.

    All rows are functions of the plan and of the number of a cluster, topic or group. Full clusters
    keep their rows when ``groups`` grows, and the first days keep theirs when ``days`` grows.

    Attributes:
        groups: consumer groups, numbered from 0; the cluster of group g is g // groups_per_cluster.
        days: length of the trace.
        seed: any whole number.
        start_ms: first instant; earlier state is OBSERVED at it.
        groups_per_cluster: number of groups in a full cluster.
        offset_hours: hours between observations of all queues' offsets.

    Raises:
        UsageError: Values are out of range; the message lists all of them.
    """

    groups: int
    days: int
    seed: int
    start_ms: int = MONDAY_MS
    groups_per_cluster: int = 500
    offset_hours: int = 8

    def __post_init__(self) -> None:
        mistakes = list(self._mistakes())
        if mistakes:
            raise UsageError("\n".join(mistakes))

    def _mistakes(self) -> Iterator[str]:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                yield f"{name} {value}: expected {low} to {high}"

    @property
    def end_ms(self) -> int:
        """The first instant after the trace."""
        return self.start_ms + self.days * DAY_MS

    @property
    def clusters(self) -> int:
        """Number of clusters; only the last may have fewer groups than the others."""
        return -(-self.groups // self.groups_per_cluster)

    @property
    def topics(self) -> int:
        """Number of topics in all clusters; retry topics are not counted."""
        return (self.clusters - 1) * self.topics_of_full_cluster + self.topics_in(self.clusters - 1)

    @property
    def topics_of_full_cluster(self) -> int:
        """Number of topics in every cluster, except perhaps the last."""
        return _topics(self.groups_per_cluster)

    @property
    def moments(self) -> tuple[int, ...]:
        """Return when the offsets are observed: at the start, every `offset_hours` after it, and at
        the end.
        """
        return (*range(self.start_ms, self.end_ms, self.offset_hours * HOUR_MS), self.end_ms)

    def groups_in(self, cluster: int) -> int:
        """Return the number of groups in a cluster."""
        return min(self.groups_per_cluster, self.groups - cluster * self.groups_per_cluster)

    def topics_in(self, cluster: int) -> int:
        """Return the number of topics in a cluster."""
        return _topics(self.groups_in(cluster))

    def place_of_group(self, group: int) -> tuple[int, int]:
        """Return the cluster of a group and the group's number in it."""
        return divmod(group, self.groups_per_cluster)

    def place_of_topic(self, topic: int) -> tuple[int, int]:
        """Return the cluster of a topic and the topic's number in it."""
        return divmod(topic, self.topics_of_full_cluster)

    def expected_rows(self) -> dict[str, int]:
        """Return the approximate number of rows per table; small fleets may differ by a factor of
        two.
        """
        per_group = MEMBERS_PER_GROUP + CHANGES_PER_GROUP_DAY * self.days
        observations = len(self.moments)
        return {
            "cluster_events": round(self.groups * per_group + self.topics * EVENTS_PER_TOPIC),
            "consumer_groups": round(self.groups * ROWS_PER_GROUP),
            "queue_offsets": round(self.groups * QUEUES_PER_GROUP * observations),
            "committed_offsets": round(self.groups * COMMITS_PER_GROUP * (observations - 1)),
        }

    def facts(self) -> dict[str, int]:
        """Return everything above as plain values, in reading order."""
        return {
            "groups": self.groups,
            "days": self.days,
            "seed": self.seed,
            "clusters": self.clusters,
            "topics": self.topics,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "groups_per_cluster": self.groups_per_cluster,
            "offset_hours": self.offset_hours,
            "offset_looks": len(self.moments),
        }


def _topics(groups: int) -> int:
    return max(FEWEST_TOPICS, round(groups * TOPICS_PER_GROUP))
