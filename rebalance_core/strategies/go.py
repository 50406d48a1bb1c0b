"""Strategies of Go clients that differ from Java's (rocketmq-client-go 2.0.0 on).

AVG, AVG_BY_CIRCLE and CONFIG are the same as Java's. MACHINE_ROOM_NEARBY is a stub in Go that
allocates like AVG.
"""

from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.consistent_hash import ConsistentHash
from rebalance_core.strategies.go_consistent_hash import GoConsistentHash
from rebalance_core.strategies.go_machine_room import GoMachineRoom
from rebalance_core.strategies.machine_room import MachineRoom
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby
from rebalance_core.strategies.spi import AllocationStrategy


def go_strategy(strategy: AllocationStrategy) -> AllocationStrategy:
    """Return the strategy of a Go member in a group whose Java members use ``strategy``."""
    if isinstance(strategy, ConsistentHash):
        return GoConsistentHash(strategy.virtual_nodes)
    if isinstance(strategy, MachineRoom):
        return GoMachineRoom(strategy.consumer_idcs or ())
    if isinstance(strategy, MachineRoomNearby):
        return Averagely()
    return strategy
