"""Simulate many futures of a group at once; the seeds are an axis of numpy arrays.

Arithmetic replaces the event loop. The times of ticks, membership operations and notices have
closed forms, each pass follows from the previous one, and a member's share depends only on its
view, so each view is allocated once. Only passes that affect others are played in chronological
order; `mixed_play` handles groups in which every pass does. The results equal those of `reference`,
draw for draw. Begin with `play_seeds`.
"""

from rebalance_core.timing.vectorized.play import play_seeds, play_timelines
from rebalance_core.timing.vectorized.reference_only import reason_of

__all__ = ["play_seeds", "play_timelines", "reason_of"]
