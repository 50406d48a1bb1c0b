"""Order locks over many futures (rocketmq.md §7): who has a queue, and what brokers give.

Begin with `order_locks`.
"""

from rebalance_core.clockwork.batch.locks.order_locks import OrderLocks

__all__ = ["OrderLocks"]
