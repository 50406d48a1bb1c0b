"""The fewest queues that must move for a balanced result."""

from collections.abc import Sequence


def minimum_moves(queue_count: int, member_count: int, kept_counts: Sequence[int]) -> int:
    """Return the proven minimum of queues that move when sizes must differ by at most one.

    ``LB = |Q| - sum_i min(k_i, f + [i <= e])`` with k_i the queues that surviving member i held,
    in falling order, f = |Q| // |C| and e = |Q| mod |C|: the e members allowed one queue more are
    best those that held most.

    Args:
        queue_count: readable queues now, |Q|.
        member_count: distinct members now, |C| >= 1.
        kept_counts: for each surviving member, how many of these queues it held before.

    >>> minimum_moves(8, 3, [4, 4])
    2
    """
    floor, extra = divmod(queue_count, member_count)
    held = sorted(kept_counts, reverse=True)
    kept = sum(min(k, floor + (1 if i < extra else 0)) for i, k in enumerate(held))
    return max(0, queue_count - kept)
