"""Many futures of a group at once: the seeds are an axis of numpy arrays.

Steps of a plain event loop are arithmetic here: ticks, membership operations and notices are times
in closed form, a pass follows from the previous pass, and a member's share depends on its view
alone, so each view is shared out once. Only passes that others depend on are played in order of
time; `mixed_play` is for groups where that is every pass. Equal to `reference`, draw for draw.
Begin with `play_seeds`.
"""

from rebalance_core.timing.vectorized.play import play_seeds
from rebalance_core.timing.vectorized.reference_only import reason_of

__all__ = ["play_seeds", "reason_of"]
