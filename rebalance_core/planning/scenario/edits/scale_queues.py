"""scale_queues: more or fewer queues of a topic on each broker that has it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rebalance_core.planning.scenario.cluster_life import ClusterLife, TopicSettings
from rebalance_core.planning.scenario.edits.edit import Edit, exactly_one, matches
from rebalance_core.planning.scenario.keys import Key, number, patterns, required, whole

MOST_QUEUES = 65_536  # limits.max_queue_nums


@dataclass(frozen=True, kw_only=True)
class ScaleQueues(Edit):
    """``queues`` on each broker, or ``read`` and ``write`` each, or ``factor`` times as many.

    Numbers are of one broker, as RocketMQ counts: 8 -> 16 doubles the topic. Later recorded
    changes of these topics are scaled as well.
    """

    KIND = "scale_queues"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "topic": required(patterns),
        "broker": Key(patterns, ("*",)),
        "queues": Key(whole(0, MOST_QUEUES)),
        "read": Key(whole(0, MOST_QUEUES)),
        "write": Key(whole(0, MOST_QUEUES)),
        "factor": Key(number(0, 1_024)),
    }

    topic: tuple[str, ...]
    broker: tuple[str, ...]
    queues: int | None
    read: int | None
    write: int | None
    factor: float | None

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """One way to say how many."""
        apart = "read" if "read" in values else "write"
        yield from exactly_one(values, "queues", apart, "factor")

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Topics and brokers."""
        return {"topic": ("topics", self.topic), "broker": ("brokers", self.broker)}

    def scaled(self, topic: str, broker: str, settings: TopicSettings) -> TopicSettings:
        """The settings of a topic on a broker under this edit."""
        if not (matches(topic, self.topic) and matches(broker, self.broker)):
            return settings
        read, write = settings["read_queue_nums"] or 0, settings["write_queue_nums"] or 0
        if self.factor is not None:
            read, write = self._times(read), self._times(write)
        else:
            read = next((n for n in (self.queues, self.read) if n is not None), read)
            write = next((n for n in (self.queues, self.write) if n is not None), write)
        return settings | {"read_queue_nums": read, "write_queue_nums": write}

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Change what is configured now, and whatever is configured later."""
        life.config_rules.append(self.scaled)
        for topic in sorted(life.configs):
            for broker, settings in sorted(life.configs[topic].items()):
                scaled = self.scaled(topic, broker, settings)
                if scaled != settings:
                    life.configure(topic, broker, scaled, source)

    def _times(self, queues: int) -> int:
        assert self.factor is not None
        return min(MOST_QUEUES, max(1, round(queues * self.factor))) if queues else 0
