"""The picture of a group: marks, signs, what is left out, short times that stay visible."""

import xml.etree.ElementTree as ET

import pytest

from rebalance_core.report.audit_report import Cause, GroupTimeline, OwnerSpan, QueueHistory
from rebalance_core.report.group_timeline import TimelineSvg, draw_timeline, flags_of, in_window
from rebalance_core.report.segments import NOBODY, segments
from rebalance_core.report.time_axis import Axis
from rebalance_core.report.timeline_cells import MOST_CELLS, cells_of, row_cells
from rebalance_core.report.timeline_rows import rows_of
from tests.unit.report.audit_reports import FROM, HOUR, MIDNIGHT, TO, queue

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
