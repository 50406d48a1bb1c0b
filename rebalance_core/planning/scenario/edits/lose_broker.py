"""lose_broker: brokers without a replica left, and back if they come back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.planning.scenario.cluster_life import ClusterLife
from rebalance_core.planning.scenario.edits.edit import Edit, matches
from rebalance_core.planning.scenario.keys import Key, one_of, patterns, required
from rebalance_core.planning.scenario.time import read_duration


@dataclass(frozen=True, kw_only=True)
class BrokerLoss(Edit):
    """What brokers lose for ``back_after``, or until the end."""

    broker: tuple[str, ...]
    back_after: int | None

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """The brokers."""
        return {"broker": ("brokers", self.broker)}

    def matched(self, life: ClusterLife) -> list[str]:
        """The brokers that ``broker`` matches."""
        return [name for name in sorted(life.brokers) if matches(name, self.broker)]


@dataclass(frozen=True, kw_only=True)
class LoseBroker(BrokerLoss):
    """Every broker that ``broker`` matches goes down, for ``back_after`` or until the end.

    ``how``: ``stopped`` in order, its connection ``closed``, or ``expired`` for the name server.
    """

    KIND = "lose_broker"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "broker": required(patterns),
        "how": Key(one_of("stopped", "closed", "expired"), "closed"),
        "back_after": Key(read_duration),
    }

    how: str

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take them down."""
        for name in self.matched(life):
            life.lose(name, self.how.upper(), self.back_after, source)
