"""Groups whose members subscribe differently, or change their topics, played in batch.

Each heartbeat of such a group may change a broker's table of topics, which the broker tells to
everybody (rocketmq.md §6.2). Heartbeats and passes so depend on each other, and go in order of time
in every future; all futures go at once. Begin with `segment_play`.
"""

from rebalance_core.clockwork.batch.mixed.segment_play import play_mixed_segment
from rebalance_core.clockwork.batch.mixed.state import MixedState, is_mixed

__all__ = ["MixedState", "is_mixed", "play_mixed_segment"]
