"""Events with the detail OBSERVED: what was there before the log began."""

from tests.unit.replay.histories import (
    diffs,
    join,
    leave,
    replay,
    topic,
)


def test_what_was_there_before_the_log_is_initial_and_starts_nowhere() -> None:
    tables = replay(
        topic(1, 2, detail="OBSERVED"),
        join(1, "x", detail="OBSERVED"),
        join(1, "y", detail="OBSERVED"),
        leave(9, "y"),
        commits=[],
    )
    assert diffs(tables, 0) == ["ADD a0 x INITIAL", "ADD a1 y INITIAL"]
    assert [row["epoch"] for row in tables["pull_starts"]] == [1]


def test_one_event_that_really_happened_makes_the_instant_real() -> None:
    tables = replay(topic(0, 2), join(1, "x", detail="OBSERVED"), join(1, "y"), commits=[])
    assert diffs(tables, 0) == ["ADD a0 x NEW", "ADD a1 y NEW"]
    assert len(tables["pull_starts"]) == 2
