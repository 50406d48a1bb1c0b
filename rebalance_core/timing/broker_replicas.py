"""The processes behind a broker name whose master leaves or returns (rocketmq.md §15).

Such a broker has two numbers: its own for its slaves, which list members and answer requests while
the master is away, and for its order locks; and one for its master, whose member list is empty when
it returns. A broker whose master never leaves has only the first number.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.queue import java_string_key

MASTER = "/master"
"""The suffix that turns a broker's name into its master's name."""


@dataclass(frozen=True, slots=True)
class BrokerReplicas:
    """The numbers of brokers and masters.

    Attributes:
        numbers: each broker's number by name, in Java order.
        masters: each master's number by its broker's number.
    """

    numbers: Mapping[str, int]
    masters: Mapping[int, int]

    def asked(self, name: str, masterless: Collection[str]) -> int:
        """Return the process that clients query when a route names the broker; ``masterless`` names
        brokers without a master.
        """
        number = self.numbers[name]
        return number if name in masterless else self.masters.get(number, number)

    def heartbeat_targets(self, name: str, masterless: Collection[str]) -> tuple[int, ...]:
        """Return the processes to which clients send heartbeats when a route names the broker."""
        asked, slaves = self.asked(name, masterless), self.numbers[name]
        return (slaves,) if asked == slaves else (slaves, asked)


def replicas_of(ordered: Collection[Event], topics: Collection[str]) -> BrokerReplicas:
    """Return the brokers named in events, and the masters of those that host any of the topics."""
    names = {e.broker_name for e in ordered if e.broker_name is not None}
    numbers = {name: n for n, name in enumerate(sorted(names, key=java_string_key))}
    with_master_events = {e.broker_name for e in ordered if e.event_type in events.MASTER_EVENTS}
    read = {
        e.broker_name for e in ordered if e.event_type == events.TOPIC_CONFIG and e.topic in topics
    }
    moving = [number for name, number in numbers.items() if name in with_master_events & read]
    return BrokerReplicas(numbers, {number: len(numbers) + n for n, number in enumerate(moving)})
