"""Groups of the BROADCASTING model."""

from tests.unit.replay.histories import (
    column,
    diffs,
    join,
    leave,
    owners,
    replay,
    topic,
)


def test_broadcasting_every_member_owns_every_queue() -> None:
    tables = replay(
        topic(0, 2),
        join(1, "x"),
        join(9, "y"),
        leave(99, "x"),
        message_model="BROADCASTING",
        retry=True,
    )
    assert owners(tables, 1) == {"a0": "x, y", "a1": "x, y"}
    assert column(tables, "shared") == [0, 2, 0]
    assert diffs(tables, 1) == ["ADD a0 y VOLUNTARY", "ADD a1 y VOLUNTARY"]
    assert diffs(tables, 2) == ["DROP a0 x FORCED", "DROP a1 x FORCED"]


def test_broadcasting_keeps_a_topic_that_has_no_queue_left() -> None:
    tables = replay(
        topic(0, 1), join(1, "x"), topic(9, 0), join(99, "y"), message_model="BROADCASTING"
    )
    assert column(tables, "status") == ["SETTLED", "FROZEN", "FROZEN"]
    assert owners(tables) == {"a0": "x"}
