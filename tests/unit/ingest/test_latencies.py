"""Latencies of consecutive lines: steps of a join and of a leave."""

from rebalance_core.contracts.observed import REGISTRATION, UNREGISTRATION
from rebalance_core.ingest.latencies import (
    LONGEST_STEP_MS,
    Line,
    registrations,
    unregistrations,
)


def line(at_ms: int, broker: str = "a") -> Line:
    return Line(at_ms, broker, f"{broker}:{at_ms}")


def test_a_join_is_a_step_from_broker_to_broker() -> None:
    join = [line(130, "c"), line(100, "a"), line(112, "b")]
    found = list(registrations({"c1": join, "c2": [line(105, "a")]}))
    assert found == [
        (REGISTRATION, "c1", line(112, "b"), 12),
        (REGISTRATION, "c1", line(130, "c"), 18),
    ]


def test_a_connection_that_is_made_again_is_no_step() -> None:
    again = [line(100, "a"), line(150, "a"), line(160 + LONGEST_STEP_MS, "b")]
    assert list(registrations({"c1": again})) == []


def test_a_leave_is_a_step_from_answer_to_answer_of_one_process() -> None:
    run: tuple[str, object] = ("host", "12")
    other: tuple[str, object] = ("host", "13")
    lines = {run: [line(10), line(17), line(20 + LONGEST_STEP_MS)], other: [line(11)]}
    found = list(unregistrations(lines, {run: "c1", other: None}))
    assert found == [(UNREGISTRATION, "c1", line(17), 7)]
