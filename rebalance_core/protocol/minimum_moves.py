"""The minimum number of queues that must move for a balanced result."""

from collections.abc import Sequence


def minimum_moves(queue_count: int, member_count: int, kept_counts: Sequence[int]) -> int:
    """Return the proven minimum number of queues that move if sizes may differ by at most one.

    ``LB = |Q| - sum_i min(k_i, f + [i <= e])``, where k_i is the number of queues that surviving
    member i held, in descending order, f = |Q| // |C| and e = |Q| mod |C|. The e members with one
    more queue are best chosen as those that held the most.

    Args:
        queue_count: the number of readable queues now, |Q|.
        member_count: the number of distinct members now, |C| >= 1.
        kept_counts: the number of these queues that each surviving member held before.

    >>> minimum_moves(8, 3, [4, 4])
    2
    """
    floor, extra = divmod(queue_count, member_count)
    held = sorted(kept_counts, reverse=True)
    kept = sum(min(k, floor + (1 if i < extra else 0)) for i, k in enumerate(held))
    return max(0, queue_count - kept)
