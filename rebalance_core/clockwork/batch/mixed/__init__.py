"""Groups whose members subscribe differently, or change their topics, played in batch.

Each heartbeat of such a group may change a broker's table of topics, which the broker tells to
everybody (rocketmq.md §6.2). Heartbeats and passes so depend on each other, and go in order of time
in every future; all futures go at once. Begin with `segment_play`.

Why the loop does not play them: 9 to 12 of 300 generated groups of a day are such ones. 1,000
futures of the ten of seed 1 take 41 s of processor time, by the loop 560 (from 10 futures), all 300
groups about 2,700 (by a sample). One group of seed 3 with 142 changes takes 620 (from 100 futures),
by the loop 2,700 (from one).
"""

from rebalance_core.clockwork.batch.mixed.segment_play import play_mixed_segment
from rebalance_core.clockwork.batch.mixed.state import MixedState, is_mixed

__all__ = ["MixedState", "is_mixed", "play_mixed_segment"]
