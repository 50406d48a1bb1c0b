"""One pass of many elements, all at once (rocketmq.md §3).

Upstream: ``RebalanceImpl.doRebalance``, as `client.rebalance_pass` has it. Begin with `passes`;
`orderly` is what order locks add.
"""

from rebalance_core.clockwork.batch.passes.moves import Moves
from rebalance_core.clockwork.batch.passes.outcome import Outcome
from rebalance_core.clockwork.batch.passes.passes import Passes

__all__ = ["Moves", "Outcome", "Passes"]
