"""Timelines of owners: segments, folded rows, and as the page shows them."""

import random
import xml.etree.ElementTree as ET
from collections.abc import Iterable

import pytest

from rebalance_core.report.audit_report import Cause, GroupTimeline, OwnerSpan, QueueHistory
from rebalance_core.report.group_timeline import TimelineSvg, draw_timeline, flags_of, in_window
from rebalance_core.report.timeline import (
    MOST_CELLS,
    NOBODY,
    Axis,
    Segment,
    TimelineRows,
    cells_of,
    client_shares,
    is_shared,
    ranges,
    row_cells,
    rows_of,
    segments,
)
from tests.unit.report.audit_reports import FROM, HOUR, MIDNIGHT, TO, queue

# The picture of a group: marks, signs, what is left out, short times that stay visible.

AXIS = Axis(FROM, TO, 264, 702)


def words(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter() if "text" in text.tag]


def draw(
    *queues: QueueHistory,
    causes: tuple[Cause, ...] = (),
    named: frozenset[tuple[str, str, int]] = frozenset(),
) -> TimelineSvg:
    return draw_timeline(GroupTimeline("g", queues, causes), FROM, TO, "t1", named)


def test_no_owner_is_hatched_and_named() -> None:
    picture = draw(queue(0, "c1", None))
    assert "no owner" in words(picture.svg)
    assert "url(#t1none)" in picture.svg
    assert [text for _, text in picture.signs] == ["no owner: no client reads the queue"]


def test_shared_queues_show_both_owners() -> None:
    double = QueueHistory("t", "b", 0, (OwnerSpan(FROM, None, "c1"), OwnerSpan(FROM, None, "c2")))
    twice = QueueHistory("t", "b", 1, (OwnerSpan(FROM, None, "c1", 2),))
    picture = draw(double, twice)
    assert {"A+B", "A×2"} <= set(words(picture.svg))
    assert [text for _, text in picture.signs] == ["shared: more than one process owns the queue"]


def test_letters_for_twelve_clients_then_numbers() -> None:
    picture = draw(*(queue(at, f"c{at:02}") for at in range(14)))
    assert {"A", "L", "13", "14"} <= set(words(picture.svg))
    assert [entry.client.client_id for entry in picture.clients] == [f"c{a:02}" for a in range(14)]


def test_the_legend_names_who_is_drawn_and_counts_the_others() -> None:
    picture = draw(*(queue(at, f"c{at:03}", f"d{at:03}") for at in range(100)))
    assert len(picture.clients) == 120
    assert picture.clients_unseen == 80
    assert (picture.rows_left_out, picture.queues_left_out) == (40, 40)


def test_every_pattern_that_is_used_is_defined() -> None:
    picture = draw(*(queue(at, f"c{at:02}", None, f"c{at:02}") for at in range(20)))
    root = ET.fromstring(picture.svg)
    defined = {e.get("id") for e in root.iter() if e.tag.endswith("pattern")}
    used = {e.get("fill", "")[5:-1] for e in root.iter() if e.get("fill", "").startswith("url(#")}
    assert used <= defined


def test_long_paths_are_whole() -> None:
    """A cut path lost the lower rows once: text is cut at 1,000 characters, attributes never."""
    picture = draw(*(queue(at, f"x{at}", f"y{at}", f"x{at}") for at in range(60)))
    hour, rest = "h117v14h-117z", "h468v14h-468z"
    drawn = picture.svg.count(hour) + picture.svg.count(rest)
    assert drawn == 180


def test_a_queue_that_a_finding_names_is_pointed_at() -> None:
    named = frozenset({("orders", "broker-a", 1)})
    assert draw(queue(0, "c"), queue(1, "c"), named=named).svg.count("l6 4l-6 4z") == 1


def test_a_second_without_an_owner_is_seen() -> None:
    stretches = (
        OwnerSpan(FROM, FROM + HOUR, "a"),
        OwnerSpan(FROM + HOUR, FROM + HOUR + 1000, None, 0),
        OwnerSpan(FROM + HOUR + 1000, None, "a"),
    )
    cells = row_cells(segments(stretches, FROM, TO), AXIS, 3)
    assert [cell.width for cell in cells if cell.state == NOBODY] == [2.0]


def test_crowds_of_changes_are_one_cell_and_keep_their_worst() -> None:
    turns = [OwnerSpan(FROM + at * 1000, FROM + (at + 1) * 1000, "ab"[at % 2]) for at in range(90)]
    turns[40] = OwnerSpan(FROM + 40_000, FROM + 41_000, None, 0)
    cells = row_cells(segments([*turns, OwnerSpan(FROM + 90_000, None, "a")], FROM, TO), AXIS, 3)
    assert [(cell.changes, cell.state) for cell in cells] == [(89, NOBODY), (0, (("a", 1),))]


def test_a_picture_has_a_bounded_number_of_cells() -> None:
    def restless(queue_id: int) -> QueueHistory:
        step = 6 * HOUR // 5000
        return QueueHistory(
            "t",
            "b",
            queue_id,
            tuple(
                OwnerSpan(FROM + at * step, FROM + (at + 1) * step, f"c{queue_id}-{at % 3}")
                for at in range(0, 5000, 1 + queue_id % 90)
            ),
        )

    queues = [restless(at) for at in range(100)]
    rows = rows_of((q, segments(q.stretches, FROM, TO)) for q in queues)
    assert sum(map(len, cells_of(rows.shown, AXIS))) <= MOST_CELLS


@pytest.mark.parametrize(
    ("span", "first", "second"),
    [
        (6 * HOUR, "11-21 00:00", "01:00"),
        (30_000, "11-21 00:00:00", "00:00:05"),
        (30 * 24 * HOUR, "2026-11-26", "2026-12-03"),
    ],
)
def test_ticks_are_round_and_name_the_day(span: int, first: str, second: str) -> None:
    ticks = Axis(MIDNIGHT, MIDNIGHT + span, 0, 700).ticks()
    assert [text for _, text in ticks[:2]] == [first, second]
    assert len(ticks) <= 9


def test_ticks_beyond_the_calendar_are_numbers() -> None:
    assert Axis(10**18, 10**18 + 10**15, 0, 700).ticks()[0][1].endswith(" ms")


def test_close_causes_share_a_flag_and_outside_ones_are_left_out() -> None:
    times = (FROM - 1, FROM + HOUR, FROM + HOUR + 1000, FROM + 3 * HOUR, TO + 1)
    inside = in_window([Cause(at, "x") for at in reversed(times)], AXIS)
    assert [flag.label for flag in flags_of(inside, AXIS)] == ["1-2", "3"]


# Rows of a timeline: one per queue while they are few, folded when many, the telling ones kept.


def rows(
    queues: Iterable[QueueHistory],
    named: frozenset[tuple[str, str, int]] = frozenset(),
    most: int = 60,
) -> TimelineRows:
    return rows_of(((q, segments(q.stretches, FROM, TO)) for q in queues), named, most)


def test_few_queues_have_a_row_each_even_if_equal() -> None:
    found = rows([queue(at, "c1") for at in range(60)])
    assert [row.label for row in found.shown] == [str(at) for at in range(60)]
    assert not found.folded


def test_neighbours_with_the_same_history_share_a_row() -> None:
    found = rows([queue(at, f"c{at // 64}") for at in range(128)])
    assert [row.label for row in found.shown] == ["0-63 (64 queues)", "64-127 (64 queues)"]
    assert found.folded
    assert not found.left_out


def test_a_fold_ends_at_a_broker_and_at_a_topic() -> None:
    queues = [
        queue(at, "c1", broker=broker, topic=topic)
        for topic in ("orders", "refunds")
        for broker in ("broker-a", "broker-b")
        for at in range(40)
    ]
    found = rows(queues)
    assert [(row.topic, row.broker_name, row.label) for row in found.shown] == [
        (topic, broker, "0-39 (40 queues)")
        for topic in ("orders", "refunds")
        for broker in ("broker-a", "broker-b")
    ]


def test_a_run_that_comes_back_is_a_row_of_its_own_if_there_is_room() -> None:
    found = rows([queue(at, "c2" if at == 50 else "c1") for at in range(100)])
    assert [row.label for row in found.shown] == ["0-49 (50 queues)", "50", "51-99 (49 queues)"]


def test_queues_dealt_round_fold_by_history() -> None:
    found = rows([queue(at, f"c{at % 3}") for at in range(5000)])
    labels = [row.label for row in found.shown]
    assert labels[0] == "0, 3, 6 … 4998 (1,667 queues)"
    assert len(labels) == 3


def test_rows_without_an_event_are_left_out_first() -> None:
    queues = [queue(at, f"c{at}") for at in range(100)]
    queues[70] = queue(70, "c70", "x")
    queues[80] = queue(80, "c80", None)
    queues[90] = queue(90, "c90")
    found = rows(queues, frozenset({("orders", "broker-a", 90)}), most=4)
    assert [row.label for row in found.shown] == ["0", "70", "80", "90"]
    assert len(found.left_out) == 96
    assert sum(len(row.queue_ids) for row in found.shown + found.left_out) == 100


def test_ranges_name_unordered_and_repeated_ids_once() -> None:
    assert ranges([5, 3, 4, 4]) == "3-5"
    assert ranges([9]) == "9"
    assert ranges([0, 2, 4, 6]) == "0, 2, 4, 6"


# Segments: a tiling of the window, whatever the stretches.


def test_a_time_without_a_stretch_is_not_nobody() -> None:
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
