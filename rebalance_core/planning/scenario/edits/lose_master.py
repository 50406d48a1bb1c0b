"""lose_master: brokers whose slaves live on without a master, and its return."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.planning.scenario.cluster_life import ClusterLife
from rebalance_core.planning.scenario.edits.lose_broker import BrokerLoss
from rebalance_core.planning.scenario.keys import Key, one_of, patterns, required
from rebalance_core.planning.scenario.time import read_duration


@dataclass(frozen=True, kw_only=True)
class LoseMaster(BrokerLoss):
    """Every broker that ``broker`` matches loses its master, for ``back_after`` or until the end.

    ``slaves``: ``refused`` to be read (RocketMQ's default), read (``slave_read``),
    or one is ``acting`` as master (rocketmq.md §15).
    """

    KIND = "lose_master"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "broker": required(patterns),
        "slaves": Key(one_of("refused", "slave_read", "acting"), "refused"),
        "back_after": Key(read_duration),
    }

    slaves: str

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take their masters away."""
        for name in self.matched(life):
            life.lose_master(name, self.slaves.upper(), self.back_after, source)
