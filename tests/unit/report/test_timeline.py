"""Segments: a tiling of the window, whatever the stretches."""

import random

from rebalance_core.report.audit_report import OwnerSpan
from rebalance_core.report.segments import NOBODY, Segment, client_shares, is_shared, segments


def test_a_time_without_a_stretch_is_not_unowned() -> None:
    found = segments([OwnerSpan(10, 20, "a"), OwnerSpan(20, 30, None, 0)], 0, 40)
    assert found == (
        Segment(0, 10, None),
        Segment(10, 20, (("a", 1),)),
        Segment(20, 30, NOBODY),
        Segment(30, 40, None),
    )


def test_stretches_are_cut_to_the_window_and_open_ones_end_with_it() -> None:
    found = segments(
        [OwnerSpan(-50, 5, "a"), OwnerSpan(5, None, "b"), OwnerSpan(90, 99, "c")], 0, 10
    )
    assert [(s.from_ms, s.to_ms) for s in found] == [(0, 5), (5, 10)]


def test_equal_neighbours_are_one_segment() -> None:
    assert len(segments([OwnerSpan(0, 5, "a"), OwnerSpan(5, 10, "a")], 0, 10)) == 1


def test_two_clients_or_two_processes_are_shared() -> None:
    states = [
        s.state
        for s in segments(
            [OwnerSpan(0, 9, "a"), OwnerSpan(3, 6, "b"), OwnerSpan(9, 12, "a", 2)], 0, 12
        )
    ]
    assert states == [(("a", 1),), (("a", 1), ("b", 1)), (("a", 1),), (("a", 2),)]
    assert [is_shared(state) for state in states] == [False, True, False, True]


def test_random_stretches_agree_with_every_instant_asked_alone() -> None:
    seed = random.randrange(10**9)
    r = random.Random(seed)
    for _ in range(200):
        stretches = []
        for _ in range(r.randrange(6)):
            start = r.randrange(-5, 25)
            end = r.choice((None, start + r.randrange(12)))
            stretches.append(OwnerSpan(start, end, r.choice("abc"), r.randrange(1, 3)))
        found = segments(stretches, 0, 20)
        assert [s.from_ms for s in found] == [0, *(s.to_ms for s in found[:-1])], f"seed {seed}"
        for at in range(20):
            live = [s for s in stretches if s.from_ms <= at < (20 if s.to_ms is None else s.to_ms)]
            most = {s.client_id: 0 for s in live}
            for s in live:
                most[s.client_id] = max(most[s.client_id], s.holders)
            expected = tuple(sorted(most.items())) if live else None
            state = next(s.state for s in found if s.from_ms <= at < s.to_ms)
            assert state == expected, f"seed {seed}"


def test_shares_count_time_and_queues_at_both_ends() -> None:
    histories = [
        segments([OwnerSpan(0, 5, "a"), OwnerSpan(5, None, "b")], 0, 10),
        segments([OwnerSpan(0, None, "a")], 0, 10),
    ]
    shares = client_shares(histories)
    assert [(s.client_id, s.share, s.queues_first, s.queues_last) for s in shares] == [
        ("a", 0.75, 2, 1),
        ("b", 0.25, 0, 1),
    ]
