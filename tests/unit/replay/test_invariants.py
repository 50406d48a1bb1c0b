"""The invariant check finds nothing in sound ledgers and something in each damaged one."""

import copy
from collections.abc import Callable

import pytest

from rebalance_core.contracts import SIMULATED_TABLES
from rebalance_core.replay.invariants import check_ledger
from tests.recordings.tables import RECORDINGS, replayed
from tests.unit.replay.histories import Tables, event, join, leave, replay, topic


@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_ledger_of_every_recording_is_sound(recording: str) -> None:
    assert check_ledger(replayed(recording)) == []


def test_an_empty_ledger_is_sound_and_a_missing_table_is_not() -> None:
    empty: Tables = {name: [] for name in SIMULATED_TABLES}
    assert check_ledger(empty) == []
    del empty["diffs"]
    assert check_ledger(empty) == ["table diffs is missing"]


def sound() -> Tables:
    """x has a0 a1, y joins and takes a1, x leaves, then nobody is left."""
    return replay(
        topic(0, 2),
        join(1_000, "x"),
        join(90_000, "y"),
        leave(200_000, "x"),
        leave(300_000, "y"),
        commits=[],
    )


def test_the_undamaged_ledger_is_sound() -> None:
    assert check_ledger(sound()) == []


def change(table: str, index: int, **values: object) -> Callable[[Tables], None]:
    """Overwrite columns of one row."""

    def damage(tables: Tables) -> None:
        row = tables[table][index]
        assert {column: row[column] for column in values} != values, "nothing would be damaged"
        row.update(values)

    return damage


def remove(table: str, index: int) -> Callable[[Tables], None]:
    def damage(tables: Tables) -> None:
        del tables[table][index]

    return damage


def repeat(table: str, **values: object) -> Callable[[Tables], None]:
    return lambda tables: tables[table].append(tables[table][0] | values)


# What is damaged -> part of the sentence that must say so.
DAMAGES: list[tuple[Callable[[Tables], None], str]] = [
    *(
        (repeat(table), f"{table}: 2 rows with the key")
        for table in SIMULATED_TABLES
        if not table.startswith("pop_") and table != "queue_states"
    ),
    (lambda tables: tables["epochs"][0].pop("causes"), "missing or unknown"),
    (change("epochs", 0, members=None), "must not be null"),
    (remove("epochs", 1), "epochs are numbered"),
    (change("epochs", 0, to_ms=None), "epoch 0 ends at None; expected 90000"),
    (change("epochs", 3, to_ms=400_000), "epoch 3 ends at 400000; expected None"),
    (change("epochs", 1, from_ms=500), "epoch 1 does not begin after epoch 0"),
    (change("epochs", 1, causes=[]), "causes [] are empty"),
    (change("epochs", 3, transient=True), "an open epoch is transient"),
    (change("epochs", 1, status="EMPTY"), "status EMPTY with 2 members"),
    (change("epochs", 3, status="SETTLED"), "status SETTLED with 0 members"),
    *(
        (change("epochs", 1, **{column: 7}), f"{column} is 7")
        for column in ("members", "distinct_members", "added", "dropped", "orphaned", "shared")
    ),
    (change("epochs", 1, queues=3), "but ownership has only"),
    (change("epochs", 1, queues=1), "1 queues are readable, but"),
    *(
        (change(table, 0, to_epoch=99), f"{table}: epochs 0 to 99 do not exist")
        for table in ("ownership", "memberships", "consumer_load")
    ),
    (change("ownership", 0, from_ms=1), "ownership: from_ms and to_ms differ from those"),
    (remove("ownership", 0), "but ownership has only"),
    (repeat("ownership", client_id="stranger"), "only 0 such processes are live"),
    (repeat("ownership", client_id=None), "has no owner but 1 holders"),
    (repeat("ownership", client_id=None, holders=0), "has both an owner and no owner"),
    (change("ownership", 0, holders=2), "has 2 holders 'x'"),
    (repeat("ownership", from_epoch=0, to_epoch=1, to_ms=90_000), "overlapping rows"),
    (remove("memberships", 0), "such processes are live"),
    (remove("diffs", 0), "ownership changes, but diffs have no ADD"),
    (repeat("diffs", client_id="y"), "but ownership does not change accordingly"),
    (change("diffs", 0, kind="FORCED"), "kind FORCED, but [] held the queue before"),
    (change("diffs", 0, kind="INITIAL"), "some ADDs are INITIAL and others are not"),
    (change("diffs", 0, kind="ODD"), "ADD of kind ODD"),
    (change("diffs", 0, cause="BROKER_UP"), "cause should be CONSUMER_JOIN"),
    (change("diffs", 0, change_ms=5), "change_ms and earliest_ms should be 1000"),
    (change("diffs", 0, latest_ms=5), "latest_ms precedes"),
    (change("diffs", 2, other_client_id=None), "other_client_id should be"),
    (remove("pull_starts", 0), "there is no pull_starts row"),
    (repeat("pull_starts", client_id="y"), "a pull_starts row without an ADD"),
    (change("pull_starts", 0, latest_ms=9_999), "the ADD's moments"),
    (change("pull_starts", 0, start_offset=5, start_offset_high=4), "low <= start <= high"),
    (change("pull_starts", 0, status="OK"), "status OK with start None"),
    (change("pull_starts", 0, status="FAILED"), "status FAILED with rule"),
    (change("pull_starts", 0, skipped=-1), "skipped is negative"),
    (remove("consumer_load", 0), "consumer_load has"),
    (change("consumer_load", 0, queues=9), "queues is 9; ownership gives 2"),
    (change("consumer_load", 0, idle=True), "idle should be False"),
    (change("consumer_load", 0, suspended=True), "suspended is True, but no member is"),
    (remove("group_metrics", 1), "0 rows for the whole group"),
    (change("group_metrics", 1, queues=9), "queues is 9; its topics have 2"),
    (change("group_metrics", 0, moved=0), "moved contradicts"),
    (change("group_metrics", 0, voluntary_moves=1), "voluntary_moves contradicts"),
    (change("group_metrics", 2, stickiness=1.5), "stickiness is not between"),
    (change("group_metrics", 0, peak_ratio=3.0), "peak_ratio should be 1.0"),
    (change("group_metrics", 0, amplification=3.0), "amplification should be"),
    (change("group_metrics", 0, minimum_moves=3), "minimum_moves is not between"),
    (change("group_metrics", 0, idle_members=1), "idle_members contradicts min_queues"),
    (change("group_metrics", 0, min_queues=3), "out of range"),
    (change("group_metrics", 2, minimum_moves=2, moved=1), "moved is less than the minimum"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES, ids=[s for _, s in DAMAGES])
def test_each_damage_is_reported(damage: Callable[[Tables], None], sentence: str) -> None:
    tables = copy.deepcopy(sound())
    damage(tables)
    errors = check_ledger(tables)
    assert any(sentence in error for error in errors), errors


def sharing() -> Tables:
    """x pops a0 and a1, y a1 and a2, z a0 and a2; then z leaves."""
    mode = event(0, "REQUEST_MODE", topic="T", detail="POP(share_queue_num=1)")
    return replay(
        topic(0, 3),
        mode,
        *(join(1_000, c) for c in "xyz"),
        leave(90_000, "z"),
        rebalance_mode="BROKER",
    )


def test_the_undamaged_ledger_of_a_shared_topic_is_sound() -> None:
    assert check_ledger(sharing()) == []


SHARED_DAMAGES: list[tuple[Callable[[Tables], None], str]] = [
    *((repeat(table), f"{table}: 2 rows with the key") for table in ("pop_reach", "pop_metrics")),
    (repeat("pop_reach", queue_id=-1), "and single"),
    (repeat("pop_reach", client_id="w"), "'w' is not a member"),
    (repeat("pop_reach", topic="U"), "topic 'U', which is not shared"),
    (change("pop_reach", 0, queue_id=0, broker_name="b"), "should be"),
    (change("epochs", 0, pop_queues=2), "pop_queues is 2; pop_metrics has 3"),
    (change("pop_metrics", 0, topic="U"), "which is not shared"),
    (change("pop_metrics", 0, clients=2), "3 clients subscribe"),
    (change("pop_metrics", 0, min_clients_per_queue=4), "clients per queue out of range"),
    (change("pop_metrics", 0, max_queues_per_client=4), "queues per client out of range"),
    (change("pop_metrics", 0, unreached=1), "unreached contradicts"),
    (change("pop_metrics", 0, max_queues_per_client=3), "should be 2 by pop_reach"),
    (change("consumer_load", 0, shared_queues=3), "3 shared queues; pop_reach has 2"),
    (change("consumer_load", 0, idle=True), "idle should be False"),
    (repeat("queue_states"), "queue_states: 2 rows with the key"),
    (remove("queue_states", 0), "'T' has 2 queues; pop_metrics has 3"),
    (change("queue_states", 0, readable=False), "only readable queues of a shared topic have rows"),
    (change("queue_states", 0, channel_ids=["1"]), "only readable queues of a shared topic"),
    (repeat("queue_states", topic="U"), "MessageQueue [topic=U"),
    (
        lambda tables: tables["group_metrics"].append(tables["group_metrics"][0] | {"topic": "T"}),
        "is shared, but ownership or group_metrics has rows for it",
    ),
]


@pytest.mark.parametrize(("damage", "sentence"), SHARED_DAMAGES, ids=[s for _, s in SHARED_DAMAGES])
def test_each_damage_of_a_shared_topic_is_reported(
    damage: Callable[[Tables], None], sentence: str
) -> None:
    tables = copy.deepcopy(sharing())
    damage(tables)
    errors = check_ledger(tables)
    assert any(sentence in error for error in errors), errors


def twins() -> Tables:
    """x has two processes on channels 1 and 2 and a0 and a3, which does not exist; y has a1."""
    listed = "CONFIG(queues=T/a/0|T/a/3)"
    return replay(
        topic(0, 2),
        join(1_000, "x", strategy=listed, channel_id="1"),
        join(1_000, "x", strategy=listed, channel_id="2"),
        join(1_000, "y", strategy="CONFIG(queues=T/a/1)"),
        commits=[],
    )


def state(of_queue: int, **values: object) -> Callable[[Tables], None]:
    """Overwrite columns of the row of queue_states about a queue."""

    def damage(tables: Tables) -> None:
        next(r for r in tables["queue_states"] if r["queue_id"] == of_queue).update(values)

    return damage


def test_the_states_of_queues_that_are_held_twice_or_unread() -> None:
    assert check_ledger(twins()) == []
    found = {(r["queue_id"], r["readable"], *r["channel_ids"]) for r in twins()["queue_states"]}
    assert found == {(0, True, "1", "2"), (3, False, "1", "2")}


STATE_DAMAGES: list[tuple[Callable[[Tables], None], str]] = [
    (state(0, channel_ids=[]), "channels []"),
    (state(0, channel_ids=["1", "7"]), "channels ['1', '7']"),
    (state(0, readable=False), "queue_states has 1 readable queues"),
    (state(3, readable=True), "queue_states has 3 readable queues"),
    (state(0, queue_id=1, channel_ids=[]), "has the usual state"),
    (state(0, queue_id=2), "has no holder"),
]


@pytest.mark.parametrize(("damage", "sentence"), STATE_DAMAGES, ids=[s for _, s in STATE_DAMAGES])
def test_each_damage_of_a_state_is_reported(
    damage: Callable[[Tables], None], sentence: str
) -> None:
    tables = copy.deepcopy(twins())
    damage(tables)
    errors = check_ledger(tables)
    assert any(sentence in error for error in errors), errors


def test_a_holding_that_is_split_without_a_change_is_reported() -> None:
    tables = sound()
    whole = next(
        row for row in tables["ownership"] if row["from_epoch"] == 0 and row["to_epoch"] == 2
    )
    tables["ownership"].remove(whole)
    tables["ownership"] += [
        whole | {"to_epoch": 1, "to_ms": 90_000},
        whole | {"from_epoch": 1, "from_ms": 90_000},
    ]
    assert [e for e in check_ledger(tables) if "split at epoch 1 for no reason" in e]


def test_a_departed_members_drop_is_forced_and_over_at_once() -> None:
    tables = sound()
    drop = next(r for r in tables["diffs"] if r["epoch"] == 2 and r["action"] == "DROP")
    drop["latest_ms"] += 3_000
    assert [e for e in check_ledger(tables) if "departed member's DROP" in e]


def test_groups_are_checked_apart_and_named() -> None:
    first, second = sound(), sound()
    for rows in second.values():
        for row in rows:
            row["consumer_group"] = "h"
    both = {name: first[name] + second[name] for name in SIMULATED_TABLES}
    assert check_ledger(both) == []
    both["epochs"][-1]["orphaned"] = 0
    assert check_ledger(both) == ["c/h: epoch 3: orphaned is 0; the rows give 2"]
