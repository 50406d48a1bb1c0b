"""Windows of clients with timers of their own, and of groups that are not told."""

import pytest

from rebalance_core.model.events import Event
from tests.unit.replay.histories import Row, event, join, leave, replay, topic

CHANGE_MS = 100_000


def windows(rows: list[Row], at_ms: int = CHANGE_MS) -> dict[tuple[str, str], int]:
    """(client, action) -> seconds that its changes of that moment may take."""
    return {
        (row["client_id"], row["action"]): (row["latest_ms"] - at_ms) // 1_000
        for row in rows
        if row["change_ms"] == at_ms
    }


def test_each_client_has_the_window_of_its_own_timers() -> None:
    ledger = replay(
        topic(0, 2),
        join(1_000, "a", poll_name_server_interval_ms=90_000),
        join(1_000, "b", wait_interval_ms=5_000, poll_name_server_interval_ms=5_000),
        join(1_000, "c"),
        topic(CHANGE_MS, 6),
    )
    found = windows(ledger["diffs"])
    assert found[("a", "ADD")] == 113
    assert found[("b", "ADD")] == 13
    assert found[("c", "ADD")] == 53
    (last,) = [row for row in ledger["epochs"] if row["from_ms"] == CHANGE_MS]
    assert not last["transient"]


def test_an_epoch_is_transient_until_its_slowest_member_has_passed() -> None:
    slow = join(1_000, "a", poll_name_server_interval_ms=90_000)
    for until_ms, transient in ((CHANGE_MS + 112_999, True), (CHANGE_MS + 113_000, False)):
        ledger = replay(topic(0, 2), slow, topic(CHANGE_MS, 4), topic(until_ms, 5))
        rows = {row["from_ms"]: row["transient"] for row in ledger["epochs"]}
        assert rows[CHANGE_MS] is transient


def test_the_groups_intervals_are_those_of_clients_that_state_none() -> None:
    ledger = replay(
        topic(0, 2),
        join(1_000, "a"),
        join(1_000, "b", wait_interval_ms=20_000),
        topic(CHANGE_MS, 4),
        wait_interval_ms=60_000,
    )
    found = windows(ledger["diffs"])
    assert (found[("a", "ADD")], found[("b", "ADD")]) == (93, 53)


@pytest.mark.parametrize(
    ("happens", "notified", "brokers", "seconds"),
    [
        (join(CHANGE_MS, "b"), True, None, 3),
        (join(CHANGE_MS, "b"), False, None, 23),
        (join(CHANGE_MS, "b"), True, "OFF", 23),
        (join(CHANGE_MS, "b"), True, "BATCHED", 18),
        (join(CHANGE_MS, "b"), True, "ON", 3),
        (event(CHANGE_MS, "CONSUMER_LOST", "c"), False, None, 3),
        (event(CHANGE_MS, "CONSUMER_LOST", "c"), True, "OFF", 23),
        (leave(CHANGE_MS, "c"), False, None, 23),
    ],
)
def test_who_gets_no_notice_acts_in_a_pass_of_its_own(
    happens: Event, notified: bool, brokers: str | None, seconds: int
) -> None:
    switch = [event(60_000, "NOTICES", broker_name="a", detail=brokers)] if brokers else []
    ledger = replay(
        topic(0, 4),
        join(1_000, "a"),
        join(1_000, "c"),
        *switch,
        happens,
        notified=notified,
    )
    found = windows(ledger["diffs"]).items()
    assert {s for (client, _), s in found if client != happens.client_id} == {seconds}


def test_a_switch_counts_from_its_instant_on_and_for_the_slowest_broker() -> None:
    ledger = replay(
        topic(0, 4),
        topic(0, 2, broker="b"),
        join(1_000, "a"),
        event(50_000, "NOTICES", broker_name="a", detail="OFF"),
        event(50_000, "NOTICES", broker_name="b", detail="OFF"),
        event(80_000, "NOTICES", broker_name="a", detail="ON"),
        join(CHANGE_MS, "b"),
        event(200_000, "NOTICES", broker_name="b", detail="ON"),
        join(200_000, "c"),
    )
    assert windows(ledger["diffs"])[("a", "DROP")] == 23
    assert windows(ledger["diffs"], 200_000)[("c", "ADD")] == 3
