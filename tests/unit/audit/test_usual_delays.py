"""A live difference inside the window of a change, against the delays that the simulation gives."""

import pytest

from rebalance_core.audit.comparison import compare
from rebalance_core.audit.comparison_findings import comparison_findings
from rebalance_core.audit.group_snapshot import Finding
from rebalance_core.model.verdicts import UNSTABLE
from tests.unit.audit.group_rows import JOINED_MS, A, B, Row, snapshot, status

ROW: Row = {
    "change_ms": JOINED_MS,
    "convergence_ms_p50": 400,
    "convergence_ms_p95": 900,
    "convergence_ms_p99": 1_500,
    "convergence_ms_max": 2_000,
}


def found(seen_ms: int, *rows: Row, held: tuple[int, ...] = (0, 1, 2, 3)) -> Finding:
    """What is found if A holds these so long after B joined; it should have given up 2 and 3."""
    group = snapshot(*status(A, JOINED_MS + seen_ms, *held), propagation=list(rows))
    result = compare(group)
    assert (result.verdict, result.differences) == (UNSTABLE, ())
    ((_, one),) = comparison_findings(group, result)
    return one


@pytest.mark.parametrize(
    ("seen_ms", "words"),
    [
        (300, "2 queues differed 0.3 s after the change, as in more than half"),
        (900, "as in 1 of 20"),
        (1_500, "as in 1 of 100"),
        (1_900, "which fewer than 1 of 100 of its simulated futures are; its slowest"),
        (
            2_500,
            "later than all of its simulated futures: its slowest simulated future "
            "settles within 2.0 s",
        ),
    ],
)
def test_how_usual_the_delay_is(seen_ms: int, words: str) -> None:
    one = found(seen_ms, ROW)
    assert words in one.summary
    assert one.evidence["simulated_p99_s"] == "1.5"
    assert (one.remedy is not None) == (seen_ms > 2_000)


def test_without_a_simulation_of_that_change_the_window_alone_counts() -> None:
    for rows in ([], [ROW | {"change_ms": JOINED_MS + 1}]):
        assert "simulated" not in found(300, *rows).summary


def test_nothing_is_said_where_nothing_differs() -> None:
    assert "simulated" not in found(300, ROW, held=(0, 1)).summary


def test_what_is_seen_before_the_change_is_not_late() -> None:
    group = snapshot(*status(B, JOINED_MS - 100, 2, 3), propagation=[ROW])
    ((_, one),) = comparison_findings(group, compare(group))
    assert "simulated" not in one.summary
