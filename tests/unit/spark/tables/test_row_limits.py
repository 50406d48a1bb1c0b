import pytest

from rebalance_core.checks.row_limits import (
    SHOWN_COMPLAINTS,
    BadRowLimits,
    Complaint,
    RowCounts,
    complaint_lines,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.model.errors import InputRefused

COMPLAINTS = (
    Complaint("cluster_events", "A", 3, "f:1", "why"),
    Complaint("queue_offsets", "B", 2, "f:1", "why"),
)


def refusal(counts: dict[str, RowCounts], limits: BadRowLimits) -> str | None:
    try:
        refuse_bad_rows(counts, limits, lambda: COMPLAINTS)
    except InputRefused as error:
        return str(error)
    return None


def test_more_than_the_share_is_refused_with_the_reasons_of_that_table() -> None:
    counts = {"cluster_events": RowCounts(10, 4), "queue_offsets": RowCounts(3, 2)}
    text = refusal(counts, BadRowLimits())
    assert text is not None
    first, *reasons = text.splitlines()
    assert first.startswith("queue_offsets: 2 of 3 rows are bad (67%), more than max_bad_share")
    assert reasons == ["  B 2, first f:1: why"]


@pytest.mark.parametrize(
    ("rows", "bad", "limits", "refused"),
    [
        (2, 1, BadRowLimits(max_bad_share=0.5), False),
        (3, 2, BadRowLimits(max_bad_share=0.5), True),
        (3, 3, BadRowLimits(max_bad_share=1), False),
        (9, 1, BadRowLimits(max_bad_share=0), True),
        (9, 0, BadRowLimits(max_bad_share=0), False),
        (9, 1, BadRowLimits(on_bad_rows="fail"), True),
        (9, 0, BadRowLimits(on_bad_rows="fail"), False),
        (0, 0, BadRowLimits(max_bad_share=1), True),
    ],
)
def test_the_limits(rows: int, bad: int, limits: BadRowLimits, refused: bool) -> None:
    assert (refusal({"cluster_events": RowCounts(rows, bad)}, limits) is not None) == refused


def test_what_the_replay_rejects_counts() -> None:
    counts = {"cluster_events": RowCounts(9, 1), "queue_offsets": RowCounts(1, 0)}
    counted = with_unknown_members(counts, 2)
    assert counted == {"cluster_events": RowCounts(9, 3), "queue_offsets": RowCounts(1, 0)}


def test_a_long_list_of_codes_is_truncated() -> None:
    many = [Complaint("t", f"C{n}", 1, "f:1", "why") for n in range(SHOWN_COMPLAINTS + 2)]
    assert complaint_lines(many)[-1] == "  and 2 more codes"
    assert len(complaint_lines(many)) == SHOWN_COMPLAINTS + 1
    assert len(complaint_lines(many[:SHOWN_COMPLAINTS])) == SHOWN_COMPLAINTS
