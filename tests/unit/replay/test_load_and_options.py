"""`consumer_load`, and the options of a replay."""

from rebalance_core.replay.group_replay import GroupLedger, replay_group
from rebalance_core.replay.history import replay_history
from tests.unit.replay.histories import (
    RETRY,
    history,
    join,
    ledger,
    owners,
    replay,
    strategy_for,
    topic,
)


def test_load_is_that_of_one_process_with_its_share_of_the_topics_threshold() -> None:
    tables = replay(
        topic(0, 3),
        join(1, "x"),
        join(9, "y"),
        join(9, "z"),
        join(9, "zz"),
        pull_threshold_for_topic=10,
        pull_threshold_size_for_topic=2,
        retry=True,
    )
    rows = {(r["client_id"], r["from_epoch"]): r for r in tables["consumer_load"]}
    first = rows["x", 0]
    assert (first["topics"], first["queues"], first["retry_queues"]) == (1, 3, 1)
    assert first["pull_threshold_for_queue"] == 10 // 4
    assert first["pull_threshold_size_for_queue"] == 1  # at least 1
    nothing = rows["zz", 1]
    assert (nothing["idle"], nothing["pull_threshold_for_queue"]) == (True, 1000)


def test_an_override_replaces_the_strategy_of_the_group_and_of_members() -> None:
    given = history(topic(0, 4), join(1, "x", strategy="CONFIG(queues=T/a/3)"), join(1, "y"))
    tables = replay_group(
        given, strategy_for, include_retry_topics=False, strategy_override="AVG_BY_CIRCLE"
    )
    assert owners(tables) == {"a0": "x", "a1": "y", "a2": "x", "a3": "y"}
    assert {row["strategy"] for row in tables["memberships"]} == {"AVG_BY_CIRCLE"}


def test_every_row_names_its_cluster_and_group() -> None:
    tables = ledger(history(topic(0, 1), join(1, "x")))
    for name, rows in tables.items():
        assert all((r["cluster"], r["consumer_group"]) == ("c", "g") for r in rows), name


def test_retry_topics_are_replayed_unless_they_are_left_out() -> None:
    given = history(topic(0, 1), join(1, "x"))
    default = replay_group(given, strategy_for)
    assert {row["topic"] for row in default["ownership"]} == {"T", RETRY}
    assert GroupLedger(given, strategy_for).rows("ownership") == default["ownership"]
    held = replay_history(given, strategy_for).epochs[-1].holdings
    assert {queue.topic for queues in held.values() for queue in queues} == {"T", RETRY}
