"""A topic's route as returned by the name server (``TopicRouteData``)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PERM_READ = 4  # PermName.PERM_READ
PERM_WRITE = 2  # PermName.PERM_WRITE
MASTER_ID = 0  # MixAll.MASTER_ID


@dataclass(frozen=True, slots=True)
class QueueData:
    """A topic's configuration on one broker."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int


@dataclass(frozen=True, slots=True)
class BrokerData:
    """The registered replicas of a broker, by id; 0 is the master."""

    broker_name: str
    broker_ids: frozenset[int]

    @property
    def has_master(self) -> bool:
        """True if a master can be written to."""
        return MASTER_ID in self.broker_ids


@dataclass(frozen=True, slots=True)
class QueueMapping:
    """A static topic's logical queues on one broker (``TopicQueueMappingInfo``, 5.x).

    With ``scope`` None, the broker has none.
    """

    scope: str | None
    total_queues: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """A topic as known to a client; lists are in the order of the answer."""

    queue_datas: tuple[QueueData, ...]
    broker_datas: tuple[BrokerData, ...]
    order_topic_conf: str | None = None
    mappings: Mapping[str, QueueMapping] = field(default_factory=dict)
    """broker name -> its logical queues; empty unless the topic is static"""

    def write_queue_nums(self, broker_name: str | None, *, writable_only: bool) -> int:
        """Return ``getQueueIdByBroker``: the broker's writeQueueNums, or -1 if the route lacks the
        broker.

        Neither perm nor master is checked; ``writable_only`` (4.9.8) requires the WRITE bit.
        """
        for data in self.queue_datas:
            if data.broker_name == broker_name and (data.perm & PERM_WRITE or not writable_only):
                return data.write_queue_nums
        return -1
