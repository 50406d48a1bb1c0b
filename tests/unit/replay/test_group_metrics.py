"""group_metrics of small groups, figure by figure."""

from tests.unit.replay.histories import Row, Tables, event, join, leave, replay, topic


def metric(tables: Tables, epoch: int, name: str | None = None) -> Row:
    return next(r for r in tables["group_metrics"] if (r["epoch"], r["topic"]) == (epoch, name))


def figures(row: Row, *columns: str) -> tuple[object, ...]:
    return tuple(row[column] for column in columns)


MOVES = ("moved", "voluntary_moves", "minimum_moves", "amplification", "stickiness")
BALANCE = ("queues", "members", "max_queues", "min_queues", "peak_ratio", "idle_members")


def test_a_new_group_takes_all_and_has_no_stickiness() -> None:
    row = metric(replay(topic(0, 4), join(1, "x")), 0)
    assert figures(row, *MOVES) == (4, 0, 4, 1.0, None)
    assert figures(row, *BALANCE) == (4, 1, 4, 4, 1.0, 0)


def test_a_third_member_moves_more_than_it_must() -> None:
    # 8 queues: x a0-3, y a4-7 -> x a0-2, y a3-5, z a6-7.
    tables = replay(topic(0, 8), join(1, "x"), join(1, "y"), join(9, "z"))
    row = metric(tables, 1)
    assert figures(row, *MOVES) == (3, 3, 2, 1.5, 5 / 8)
    assert figures(row, *BALANCE) == (8, 3, 3, 2, 9 / 8, 0)


def test_a_queue_that_comes_new_counts_as_moved() -> None:
    row = metric(replay(topic(0, 1), join(1, "x"), topic(9, 2)), 1)
    assert figures(row, *MOVES) == (1, 0, 1, 1.0, 1.0)


def test_nothing_has_to_move_when_there_are_more_members_than_queues() -> None:
    row = metric(replay(topic(0, 1), join(1, "x"), join(9, "y")), 1)
    assert figures(row, *MOVES) == (0, 0, 0, None, 1.0)
    assert figures(row, *BALANCE) == (1, 2, 1, 0, 2.0, 1)


def test_the_group_sums_its_topics_and_leaves_retry_topics_out() -> None:
    tables = replay(topic(0, 2), topic(0, 4, "U"), join(1, "x", "T", "U"), retry=True)
    assert [r["topic"] for r in tables["group_metrics"]] == ["T", "U", None]
    assert figures(metric(tables, 0), "queues", "moved", "minimum_moves") == (6, 6, 6)
    assert metric(tables, 0)["max_queues"] == 6


def test_no_member_no_minimum() -> None:
    row = metric(replay(topic(0, 2), join(1, "x"), leave(9, "x")), 1)
    assert figures(row, *MOVES) == (0, 0, None, None, 0.0)
    assert figures(row, *BALANCE) == (2, 0, 0, 0, None, 0)


def test_no_minimum_for_broadcasting() -> None:
    tables = replay(topic(0, 2), join(1, "x"), message_model="BROADCASTING")
    assert metric(tables, 0, "T")["minimum_moves"] is None


def test_no_minimum_for_a_frozen_topic_nor_for_its_group() -> None:
    tables = replay(topic(0, 2), topic(0, 2, "U"), join(1, "x", "T", "U"), topic(9, 0))
    assert metric(tables, 1, "T")["minimum_moves"] is None
    assert metric(tables, 1, "U")["minimum_moves"] == 0
    assert metric(tables, 1)["minimum_moves"] is None


def test_no_minimum_when_members_subscribe_differently() -> None:
    tables = replay(topic(0, 2), topic(0, 2, "U"), join(1, "x", "T"), join(1, "y", "T", "U"))
    assert metric(tables, 0, "T")["minimum_moves"] is None
    assert figures(metric(tables, 0, "T"), "members", "moved") == (2, 2)
    # U's first half is computed as x's, who does not subscribe it.
    assert figures(metric(tables, 0, "U"), "members", "moved", "idle_members") == (1, 1, 0)


def test_processes_of_one_id_are_one_member() -> None:
    tables = replay(topic(0, 2), join(1, "x"), join(1, "x", channel_id="2"))
    assert figures(metric(tables, 0), "members", "max_queues", "moved") == (1, 1, 1)


def test_a_queue_kept_by_one_of_its_two_holders_is_kept() -> None:
    tables = replay(
        topic(0, 2),
        join(1, "x"),
        event(5, "CONSUMER_SUSPEND", "x"),
        join(9, "y"),
        leave(20, "y"),
        event(30, "CONSUMER_RESUME", "x"),
    )
    # Epoch 2: x, suspended, keeps both and y computes the second one too.
    assert figures(metric(tables, 2), "moved", "stickiness") == (1, 1.0)
    assert metric(tables, 3)["stickiness"] == 1.0
