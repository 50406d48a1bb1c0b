from rebalance_core.contracts.fact_declaration import EPISODE_MS
from rebalance_core.contracts.observed import OBSERVED_FACTS
from rebalance_core.ingest.log_rows import FactRows


def spans(rows: FactRows) -> list[tuple[int, int, int]]:
    return [(row["first_ms"], row["last_ms"], row["times"]) for row in rows.rows]


def test_who_asks_for_a_lock_no_more_for_as_long_as_a_lock_lives_waits_no_longer() -> None:
    rows = FactRows("g")
    for at_ms in (0, 20_000, 80_000, 140_001):
        rows.add("LOCK_REFUSED", at_ms, "x", {"owner": "o"}, queue_id=0)
    assert spans(rows) == [(0, 80_000, 3), (140_001, 140_001, 1)]


def test_refusals_are_one_row_an_episode_and_seconds_are_counted() -> None:
    rows = FactRows("g")
    for at_ms in (1_000, 1_900, 2_100, 2_100 + EPISODE_MS, 2_101 + 2 * EPISODE_MS):
        rows.add("NO_SUBSCRIPTION", at_ms, f"f:{at_ms}", topic="T", broker_name="b")
    late = 2_101 + 2 * EPISODE_MS
    assert spans(rows) == [(1_000, 2_100 + EPISODE_MS, 3), (late, late, 1)]
    assert rows.rows[0]["source"] == "f:1000"
    assert set(rows.rows[0]) == set(OBSERVED_FACTS.column_names) - {"cluster"}


def test_what_tells_two_things_apart_makes_two_rows() -> None:
    rows = FactRows("g")
    for owner, queue in (("a", 0), ("b", 0), ("a", 1), ("a", 0)):
        rows.add("LOCK_REFUSED", 7, "f:1", {"owner": owner}, queue_id=queue, client_id="c")
    assert [(r["details"]["owner"], r["queue_id"]) for r in rows.rows] == [
        ("a", 0), ("b", 0), ("a", 1),
    ]  # fmt: skip


def test_states_are_merged_however_far_apart_and_dumps_never() -> None:
    rows = FactRows("g")
    for at_ms in (0, 10 * EPISODE_MS):
        rows.add("CLIENT_TOPIC", at_ms, "f:1", {"expression": "*"}, topic="T", client_id="c")
        rows.add("CONNECTION", at_ms, "d:1", {"client_addr": "a:1"}, client_id="c")
        rows.add("CONNECTION", at_ms, "d:2", {"client_addr": "a:1"}, client_id="c")
    late = 10 * EPISODE_MS
    assert spans(rows) == [(0, late, 2), (0, 0, 2), (late, late, 2)]


def test_failures_without_a_group_are_counted_in_minutes() -> None:
    rows = FactRows()
    for at_ms in (0, 1_000, 59_000, 61_000):
        rows.add("HEARTBEAT_FAILED", at_ms, "f:1", {"log": "c"}, broker_name="b")
    assert spans(rows) == [(0, 61_000, 2)]
