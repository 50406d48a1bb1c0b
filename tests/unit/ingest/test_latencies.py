"""Latencies of consecutive lines: a start, steps of a join, of a leave, and of a pass."""

from rebalance_core.contracts.observed import (
    QUEUE_TAKEN,
    REGISTRATION,
    START_UP,
    UNREGISTRATION,
)
from rebalance_core.ingest.latencies import (
    LONGEST_START_UP_MS,
    LONGEST_STEP_MS,
    LONGEST_TAKE_MS,
    Line,
    Run,
    queues_taken,
    registrations,
    unregistrations,
)

OWN = "10.0.0.1@77#12345"


def line(at_ms: int, broker: str = "a") -> Line:
    return Line(at_ms, broker, f"{broker}:{at_ms}")


def joined(created: dict[str, int], **lines: list[Line]) -> list[tuple[object, ...]]:
    return list(registrations(dict(lines), created))


def started(client_id: str, created_ms: int | None, *lines: Line) -> list[int]:
    created = {} if created_ms is None else {client_id: created_ms}
    found = registrations({client_id: list(lines)}, created)
    return [ms for kind, _, _, ms in found if kind == START_UP]


def test_a_join_is_a_step_from_broker_to_broker() -> None:
    join = [line(130, "c"), line(100, "a"), line(112, "b")]
    assert joined({}, c1=join, c2=[line(105, "a")]) == [
        (REGISTRATION, "c1", line(112, "b"), 12),
        (REGISTRATION, "c1", line(130, "c"), 18),
    ]


def test_a_connection_that_is_made_again_is_no_step() -> None:
    again = [line(100, "a"), line(150, "a"), line(160 + LONGEST_STEP_MS, "b")]
    assert joined({}, c1=again) == []


def test_a_start_ends_with_the_last_broker_of_the_first_round_after_it() -> None:
    before, join, again = line(90), [line(400), line(450, "b")], line(90_000)
    assert started(OWN, 100, before, *join, again) == [350]


def test_a_start_is_unknown_without_its_line_of_a_shared_instance_and_of_a_later_group() -> None:
    assert started(OWN, None, line(400)) == []
    assert started("10.0.0.1@app", 100, line(400)) == []
    assert started(OWN, 100, line(101 + LONGEST_START_UP_MS)) == []


def test_a_leave_is_a_step_from_answer_to_answer_of_one_process() -> None:
    run: Run = ("host", "12", None)
    other: Run = ("host", "13", None)
    lines = {
        run: [line(10, ""), line(17, ""), line(29, ""), line(40 + LONGEST_STEP_MS, "")],
        other: [line(11, "")],
    }
    assert list(unregistrations(lines, {run: "c1", other: None})) == [
        (UNREGISTRATION, "c1", line(17, ""), 7),
        (UNREGISTRATION, "c1", line(29, ""), 12),
    ]


def test_queues_of_one_pass_are_taken_one_after_the_other() -> None:
    run: Run = ("host", "12", "T")
    taken = [line(10), line(13), line(13 + LONGEST_TAKE_MS), line(15 + LONGEST_TAKE_MS)]
    assert [found[:2] + found[3:] for found in queues_taken({run: taken}, {run: "c1"})] == [
        (QUEUE_TAKEN, "c1", 3),
        (QUEUE_TAKEN, "c1", 2),
    ]
