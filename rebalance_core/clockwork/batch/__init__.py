"""Many futures of a group at once: the seeds are an axis of numpy arrays.

What a plain event loop would go through one by one is arithmetic here: ticks, membership
operations and notices are times in closed form, a pass follows from the one before it, and what a
member takes depends on its view alone, so each view is shared out once. Only passes that others
depend on are played in order of time; `mixed_play` is for groups where that is every pass. Equal to
`loop`, draw for draw. Begin with `play_seeds`.
"""

from rebalance_core.clockwork.batch.left_to_loop import reason_of
from rebalance_core.clockwork.batch.play import play_seeds

__all__ = ["play_seeds", "reason_of"]
