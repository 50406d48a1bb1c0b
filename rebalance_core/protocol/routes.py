"""Queues that consumers may read (rocketmq.md §6.3: broker up, READ bit, ids below readQueueNums),
and brokers without a master (rocketmq.md §15).
"""

from dataclasses import dataclass, field

from rebalance_core.model import events
from rebalance_core.model.events import ACTING, Event
from rebalance_core.model.queue import MessageQueue, java_string_key

PERM_READ = 4  # PermName.PERM_READ
DEFAULT_PERM = 6  # read and write


@dataclass(slots=True)
class Routes:
    """Topic configuration per broker, and the brokers that are down; an unmentioned broker is
    up.
    """

    configs: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """topic -> broker name -> (read_queue_nums, perm)"""
    down: set[str] = field(default_factory=set)
    masterless: dict[str, str | None] = field(default_factory=dict)
    """Broker without a master -> what its slaves do: one of `MASTER_MODES`, or None if unknown."""
    _readable: dict[str, tuple[MessageQueue, ...]] = field(default_factory=dict, compare=False)
    """By topic, for those requested since the last event."""

    def apply(self, event: Event) -> None:
        """Apply a broker, master or topic event; others are ignored."""
        topic, broker = event.topic, event.broker_name
        self._readable.clear()
        match event.event_type:
            case events.BROKER_UP if broker is not None:
                self.down.discard(broker)
            case events.BROKER_DOWN if broker is not None:
                self.down.add(broker)
            case events.MASTER_DOWN if broker is not None:
                self.masterless[broker] = event.detail
            case events.MASTER_UP if broker is not None:
                self.masterless.pop(broker, None)
            case events.TOPIC_CONFIG if topic is not None and broker is not None:
                perm = DEFAULT_PERM if event.perm is None else event.perm
                self.configs.setdefault(topic, {})[broker] = (event.read_queue_nums or 0, perm)
            case events.TOPIC_DELETED if topic is not None:
                if broker is None:
                    self.configs.pop(topic, None)
                else:
                    self.configs.get(topic, {}).pop(broker, None)

    @property
    def lockless(self) -> frozenset[str]:
        """Brokers that grant no order locks to clients; the default is used if this is unknown."""
        return frozenset(broker for broker, mode in self.masterless.items() if mode != ACTING)

    def brokers_of(self, topic: str) -> set[str]:
        """Return the brokers on which the topic is configured, whether up or down and whatever its
        perm.
        """
        return set(self.configs.get(topic, {}))

    def readable_queues(self, topic: str) -> list[MessageQueue]:
        """Return the topic's subscribe set as the client sorts it (mqAll)."""
        if topic not in self._readable:
            configs = self.configs.get(topic, {})
            self._readable[topic] = tuple(
                MessageQueue(topic, broker, queue_id)
                for broker in sorted(configs.keys() - self.down, key=java_string_key)
                if configs[broker][1] & PERM_READ
                for queue_id in range(configs[broker][0])
            )
        return list(self._readable[topic])
