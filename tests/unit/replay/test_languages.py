"""Members of other languages in the ledger: each divides, keeps and starts as its client does."""

from typing import Any

import pytest

from rebalance_core.model.client_profile import KEPT_LOCK_MS
from rebalance_core.model.events import Event
from rebalance_core.replay.invariants import check_ledger
from tests.unit.replay.histories import commit, event, history, join, leave, ledger, seen, topic

DOWN = event(100_000, "BROKER_DOWN", broker_name="a")
HASH = "CONSISTENT_HASH(virtual_nodes=10)"


def tables(*events: Event, **settings: Any) -> Any:
    found = ledger(history(*events, **settings))
    assert check_ledger(found) == []
    return found


def last(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return rows[-1]


def held(found: Any) -> dict[str, set[int]]:
    """Queue ids by client at the end."""
    owners: dict[str, set[int]] = {}
    for row in found["ownership"]:
        if row["to_epoch"] is None and row["client_id"] is not None:
            owners.setdefault(row["client_id"], set()).add(row["queue_id"])
    return owners


def test_go_and_java_share_a_ring_that_is_not_one() -> None:
    both = topic(0, 8), join(1_000, "10.0.0.1@1"), join(2_000, "10.0.0.2@1", language="GO")
    found = tables(*both, strategy=HASH)
    owners = held(found)
    shared = owners["10.0.0.1@1"] & owners["10.0.0.2@1"]
    orphaned = set(range(8)) - owners["10.0.0.1@1"] - owners["10.0.0.2@1"]
    assert shared
    assert orphaned
    epoch = last(found["epochs"])
    assert (epoch["shared"], epoch["orphaned"]) == (len(shared), len(orphaned))
    texts = {row["client_id"]: (row["strategy"], row["language"]) for row in found["memberships"]}
    assert texts == {"10.0.0.1@1": (HASH, None), "10.0.0.2@1": (f"GO_{HASH}", "GO")}


@pytest.mark.parametrize("language", ["GO", "CPP", "NODE", "RUST"])
def test_under_avg_all_divide_alike(language: str) -> None:
    found = tables(topic(0, 8), join(1_000, "x"), join(2_000, "y", language=language))
    assert held(found) == {"x": {0, 1, 2, 3}, "y": {4, 5, 6, 7}}
    assert last(found["epochs"])["shared"] == 0


def test_a_cpp_member_divides_by_avg_whatever_its_group_does() -> None:
    found = tables(
        topic(0, 4), join(1_000, "x"), join(2_000, "y", language="CPP"), strategy="AVG_BY_CIRCLE"
    )
    assert held(found) == {"x": {0, 2}, "y": {2, 3}}


def test_a_go_member_lets_go_of_a_topic_without_a_readable_queue() -> None:
    found = tables(topic(0, 4), join(1_000, "x", language="GO"), DOWN)
    assert held(found) == {}
    assert last(found["epochs"])["status"] == "SETTLED"
    java = tables(topic(0, 4), join(1_000, "x", language="JAVA"), DOWN)
    assert held(java) == {"x": {0, 1, 2, 3}}
    assert last(java["epochs"])["status"] == "FROZEN"


def test_beside_it_a_java_member_keeps_and_freezes() -> None:
    found = tables(topic(0, 4), join(1_000, "x"), join(2_000, "y", language="GO"), DOWN)
    assert held(found) == {"x": {0, 1}}
    assert last(found["epochs"])["status"] == "FROZEN"


def test_what_a_net_member_holds_is_unknown() -> None:
    found = tables(topic(0, 4), join(1_000, "x"), join(2_000, "y", language="DOTNET"))
    epoch = last(found["epochs"])
    assert held(found) == {"x": {0, 1}}
    assert (epoch["orphaned"], epoch["status"]) == (0, "SETTLED")
    now = [row for row in found["ownership"] if row["to_epoch"] is None]
    assert {row["queue_id"] for row in now} == {0, 1}
    assert {row["client_id"] for row in found["consumer_load"] if row["to_epoch"] is None} == {"x"}
    assert last(found["group_metrics"])["stickiness"] is None


def test_a_retry_queue_that_falls_to_a_net_member_is_not_known_to_have_a_reader() -> None:
    """That it does not subscribe its retry topic was only read in its source."""
    members = join(1_000, "x"), join(2_000, "y", language="DOTNET")
    found = ledger(history(topic(0, 4), topic(0, 4, broker="b"), *members), retry=True)
    retry = {
        row["broker_name"]: row["client_id"]
        for row in found["ownership"]
        if row["topic"] == "%RETRY%g" and row["to_epoch"] is None
    }
    assert retry == {"a": "x"}


@pytest.mark.parametrize("language", ["CPP", "NODE", "RUST"])
def test_what_is_kept_without_a_readable_queue_is_not_known_where_that_was_read(
    language: str,
) -> None:
    """Neither kept for sure nor given up: no owner, no move, and no freeze."""
    member = join(1_000, "x", language=language)
    found = tables(topic(0, 4), member, DOWN)
    assert held(found) == {}
    assert last(found["epochs"])["status"] == "SETTLED"
    assert [row["action"] for row in found["diffs"]] == ["ADD"] * 4
    assert last(found["consumer_load"])["to_epoch"] == last(found["epochs"])["epoch"]
    again = tables(topic(0, 4), member, DOWN, event(200_000, "BROKER_UP", broker_name="a"))
    assert held(again) == {"x": {0, 1, 2, 3}}
    assert [row["action"] for row in again["diffs"]] == ["ADD"] * 4
    gone = tables(topic(0, 4), member, DOWN, leave(200_000, "x"))
    assert [row["action"] for row in gone["diffs"]] == ["ADD"] * 4


def test_beside_it_others_freeze_and_take_over_for_sure() -> None:
    both = join(1_000, "x", language="CPP"), join(2_000, "y")
    found = tables(topic(0, 4), *both, DOWN)
    assert held(found) == {"y": {2, 3}}
    assert last(found["epochs"])["status"] == "FROZEN"
    up = event(200_000, "BROKER_UP", broker_name="a")
    found = tables(topic(0, 4), *both, DOWN, up, leave(300_000, "x"))
    assert held(found) == {"y": {0, 1, 2, 3}}
    took = [row for row in found["diffs"] if row["epoch"] == last(found["epochs"])["epoch"]]
    assert {(row["action"], row["client_id"], row["other_client_id"]) for row in took} == {
        ("ADD", "y", "x"),
        ("DROP", "x", "y"),
    }


def test_later_topics_of_a_cpp_member_wait_or_do_not() -> None:
    """A topic without a readable queue ends its pass, by what was read; U comes after T."""
    members = join(1_000, "x", "T", "U", language="CPP"), join(200_000, "y", "T", "U")
    shut = topic(100_000, 4, perm=2)
    found = tables(topic(0, 4), topic(0, 4, "U"), members[0], shut, members[1])
    now = [row for row in found["ownership"] if row["to_epoch"] is None]
    sure = {(row["topic"], row["queue_id"]): row["client_id"] for row in now}
    # x has 0 and 1 whether its pass came to U or not, and may have 2 and 3 still
    assert sure == {("U", n): "x" if n < 2 else "y" for n in range(4)}
    adds = {
        (row["client_id"], row["action"], row["queue_id"])
        for row in found["diffs"]
        if row["change_ms"] == 200_000
    }
    assert adds == {("y", "ADD", 2), ("y", "ADD", 3)}
    before = tables(topic(0, 4, "A"), topic(0, 4), members[0], topic(100_000, 4, "A", perm=2))
    assert held(before) == {"x": {0, 1, 2, 3}}  # A is not its topic


def test_a_node_member_is_known_by_avg_alone() -> None:
    """Its strategy can be exchanged, and none but AVG was run."""
    both = topic(0, 4), join(1_000, "x"), join(2_000, "y", language="NODE")
    found = tables(*both, strategy="AVG_BY_CIRCLE")
    assert held(found) == {"x": {0, 2}}
    assert last(found["epochs"])["orphaned"] == 0
    own = join(2_000, "y", language="NODE", strategy="AVG")
    assert held(tables(*both[:2], own, strategy="AVG_BY_CIRCLE")) == {"x": {0, 2}, "y": {2, 3}}


@pytest.mark.parametrize(("language", "sure"), [("CPP", False), ("NODE", False), ("GO", True)])
def test_who_asks_for_order_locks_is_known_of_those_that_were_run(
    language: str, sure: bool
) -> None:
    down = event(100_000, "MASTER_DOWN", broker_name="a")
    comes = join(200_000, "x", language=language)
    found = tables(topic(0, 4), down, comes, ordered=True)
    assert held(found) == {}
    assert last(found["epochs"])["orphaned"] == 4 * sure


def test_where_rust_sorts_is_not_known_and_matters_for_some_ids() -> None:
    ids = "\uffee", "\U0001f600"  # bytes: as written, UTF-16: the other way round
    both = (join(1_000 * n, client, language="RUST") for n, client in enumerate(ids, 1))
    found = tables(topic(0, 4), *both)
    assert held(found) == {}
    assert last(found["epochs"])["orphaned"] == 0
    both = (join(1_000 * n, client, language="RUST") for n, client in enumerate("xy", 1))
    assert held(tables(topic(0, 4), *both)) == {"x": {0, 1}, "y": {2, 3}}


def test_each_sorts_as_its_client_does() -> None:
    ids = "\uffee", "\U0001f600"  # bytes: as written, UTF-16: the other way round
    both = (join(1_000 * n, client, language="GO") for n, client in enumerate(ids, 1))
    assert held(tables(topic(0, 4), *both)) == {ids[0]: {0, 1}, ids[1]: {2, 3}}
    both = (join(1_000 * n, client) for n, client in enumerate(ids, 1))
    assert held(tables(topic(0, 4), *both)) == {ids[1]: {0, 1}, ids[0]: {2, 3}}
    mixed = join(1_000, ids[0], language="GO"), join(2_000, ids[1])
    assert held(tables(topic(0, 4), *mixed)) == {ids[0]: {0, 1}, ids[1]: {0, 1}}


def handover(giver: str, *, ordered: bool = True, second_ms: int = 200_000) -> dict[str, Any]:
    """The ADD of the member that joins second."""
    found = tables(
        topic(0, 4),
        join(1_000, "x", language=giver),
        join(second_ms, "y", language="JAVA"),
        ordered=ordered,
    )
    (row, _) = (r for r in found["diffs"] if r["action"] == "ADD" and r["client_id"] == "y")
    return row


def test_a_lock_that_go_keeps_is_waited_for() -> None:
    row = handover("GO")
    assert row["earliest_ms"] - row["change_ms"] == KEPT_LOCK_MS[0] == 40_000
    row = handover("GO", second_ms=14_000)  # the queues were free before
    assert row["earliest_ms"] - row["change_ms"] == KEPT_LOCK_MS[0]
    assert row["latest_ms"] - row["change_ms"] >= KEPT_LOCK_MS[1] == 60_000


@pytest.mark.parametrize(
    ("giver", "kwargs"),
    [("JAVA", {}), ("CPP", {}), ("GO", {"ordered": False}), ("GO", {"second_ms": 1_500})],
    ids=["Java unlocks", "so does C++", "no locks", "Go need not have had the lock yet"],
)
def test_no_other_lock_is(giver: str, kwargs: dict[str, Any]) -> None:
    row = handover(giver, **kwargs)
    assert row["earliest_ms"] == row["change_ms"]


def test_a_member_that_is_gone_keeps_no_lock_for_sure() -> None:
    found = tables(
        topic(0, 4),
        join(1_000, "x", language="GO"),
        join(1_000, "y"),
        leave(300_000, "x"),
        ordered=True,
    )
    adds = [r for r in found["diffs"] if r["action"] == "ADD" and r["epoch"] == 1]
    assert [row["earliest_ms"] - row["change_ms"] for row in adds] == [0, 0]


EMPTY, FULL, YOUNG = seen("a0", 500, 0, 0), seen("a0", 500, 5, 9), seen("a0", 500, 0, 9)
CACHED = seen("a0", 500, 0, 9, cached=True)


@pytest.mark.parametrize(
    ("release", "offset", "start"),
    [
        ("2.1.1", EMPTY, ("QUERY_FAILED", None, None, None, "FAILED")),
        ("2.1.1", FULL, ("QUERY_FAILED", None, None, None, "FAILED")),
        ("2.1.1", YOUNG, ("BROKER_ZERO", None, 0, 0, "UNKNOWN")),
        ("2.1.2", FULL, ("MAX_OFFSET", 9, 9, 9, "OK")),
        ("2.1.0", FULL, (None, None, 0, 9, "UNKNOWN")),
        ("4.5.2", FULL, (None, None, 0, 9, "UNKNOWN")),
    ],
)
def test_where_go_starts_without_a_commit(
    release: str, offset: Any, start: tuple[Any, ...]
) -> None:
    after = seen("a0", 900_000, offset.min_offset, offset.max_offset)
    given = history(
        topic(0, 1),
        join(1_000, "x", language="GO", version=release),
        offsets=[offset, after],
        commits=[],
    )
    (row,) = ledger(given)["pull_starts"]
    names = "rule", "start_offset", "start_offset_low", "start_offset_high", "status"
    assert tuple(row[name] for name in names) == start


@pytest.mark.parametrize(
    ("language", "mode", "known"),
    [
        ("CPP", "CONSUME_FROM_LAST_OFFSET", True),
        ("CPP", "CONSUME_FROM_FIRST_OFFSET", False),
        ("GO", "CONSUME_FROM_TIMESTAMP", False),
        ("NODE", "CONSUME_FROM_LAST_OFFSET", False),
        ("RUST", "CONSUME_FROM_LAST_OFFSET", False),
        ("JAVA", "CONSUME_FROM_FIRST_OFFSET", True),
        ("PHP", "CONSUME_FROM_FIRST_OFFSET", True),
    ],
)
def test_a_start_that_was_only_read_is_bounds(language: str, mode: str, known: bool) -> None:
    version = "2.1.2" if language == "GO" else None
    given = history(
        topic(0, 1),
        join(1_000, "x", language=language, version=version),
        consume_from_where=mode,
        offsets=[FULL, seen("a0", 900_000, 5, 9)],
        commits=[],
    )
    (row,) = ledger(given)["pull_starts"]
    assert (row["start_offset"] is not None) == known
    if not known:
        assert (row["start_offset_low"], row["start_offset_high"], row["status"]) == (
            0,
            9,
            "UNKNOWN",
        )


@pytest.mark.parametrize("release", ["2.1.1", "2.1.2"])
def test_no_member_ran_where_broadcasting_members_of_other_languages_start(release: str) -> None:
    given = history(
        topic(0, 1),
        join(1_000, "x", language="GO", version=release),
        message_model="BROADCASTING",
        offsets=[FULL, seen("a0", 900_000, 5, 9)],
        commits=[],
    )
    (row,) = ledger(given)["pull_starts"]
    bounds = row["start_offset"], row["start_offset_low"], row["start_offset_high"], row["status"]
    assert bounds == (None, 0, 9, "UNKNOWN")


def test_a_commit_is_a_commit_in_every_language() -> None:
    for language in ("GO", "CPP", "NODE", "RUST"):
        given = history(
            topic(0, 1),
            join(1_000, "x", language=language),
            offsets=[FULL],
            commits=[commit("a0", 500, 7)],
        )
        (row,) = ledger(given)["pull_starts"]
        assert (row["rule"], row["start_offset"]) == ("STORED", 7)
