from dataclasses import dataclass
from typing import Any

import pytest

from rebalance_core.cli.run.row_gate import (
    SHOWN_COMPLAINTS,
    Foretold,
    complaint_lines,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.cli.settings.settings import resolve_settings
from rebalance_core.model.errors import InputRefused


@dataclass(frozen=True)
class Counts:
    """Stands for `RowCounts`, whose module needs pyspark."""

    rows: int
    bad: int


@dataclass(frozen=True)
class Said:
    """Stands for `Complaint`."""

    table: str
    code: str
    times: int
    source: str = "f:1"
    message: str = "why"


FOUND: Any = (Said("cluster_events", "A", 3), Said("queue_offsets", "B", 2))


def refusal(counts: dict[str, Any], *assignments: str) -> str | None:
    try:
        refuse_bad_rows(counts, resolve_settings([], assignments), lambda: FOUND)
    except InputRefused as error:
        return str(error)
    return None


def test_more_than_the_share_is_refused_with_the_reasons_of_that_table() -> None:
    counts = {"cluster_events": Counts(10, 4), "queue_offsets": Counts(3, 2)}
    told = refusal(counts)
    assert told is not None
    first, *reasons = told.splitlines()
    assert first.startswith("queue_offsets: 2 of 3 rows are bad (67%), more than max_bad_share")
    assert reasons == ["  B 2, first f:1: why"]


@pytest.mark.parametrize(
    ("rows", "bad", "assignment", "refused"),
    [
        (2, 1, "max_bad_share=0.5", False),
        (3, 2, "max_bad_share=0.5", True),
        (3, 3, "max_bad_share=1", False),
        (9, 1, "max_bad_share=0", True),
        (9, 0, "max_bad_share=0", False),
        (9, 1, "on_bad_rows=fail", True),
        (9, 0, "on_bad_rows=fail", False),
        (0, 0, "max_bad_share=1", True),
    ],
)
def test_the_gate(rows: int, bad: int, assignment: str, refused: bool) -> None:
    assert (refusal({"cluster_events": Counts(rows, bad)}, assignment) is not None) == refused


def test_what_the_replay_rejects_counts() -> None:
    counts: Any = {"cluster_events": Counts(9, 1), "queue_offsets": Counts(1, 0)}
    counted: Any = with_unknown_members(counts, 2)
    assert counted == {"cluster_events": Counts(9, 3), "queue_offsets": Counts(1, 0)}


def test_codes_without_end_are_cut() -> None:
    found: Any = [Said("t", f"C{n}", 1) for n in range(SHOWN_COMPLAINTS + 2)]
    assert complaint_lines(found)[-1] == "  and 2 more codes"
    assert len(complaint_lines(found)) == SHOWN_COMPLAINTS + 1
    assert len(complaint_lines(found[:SHOWN_COMPLAINTS])) == SHOWN_COMPLAINTS


def test_without_rows_a_refusal_still_has_its_number() -> None:
    counts: Any = {"cluster_events": Counts(2, 2)}
    hidden = Foretold(counts, FOUND, InputRefused("2 of 2\n  secret")).without_rows()
    assert (hidden.exit_code, hidden.facts()["complaints"]) == (4, [])
    assert "secret" not in str((hidden.facts(), hidden.lines()))
