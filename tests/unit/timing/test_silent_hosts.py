"""Hosts that are lost without a word: requests to them time out (rocketmq.md §6.1, §6.4)."""

from itertools import pairwise
from typing import Any

import pytest

from rebalance_core.timing.options import ClockOptions
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import EXACT, Future, futures, joins, ms, two_brokers

DOWN = 400_300
THREE_MEMBERS = [joins(5_100, "x"), joins(17_300, "y"), joins(31_700, "z")]
THREE_ON_TWO_BROKERS = [*two_brokers(), *THREE_MEMBERS]
SILENT = (DOWN - 125_000, DOWN)
V5: dict[str, Any] = {"client_version": "5.3.3"}


def apart(future: Future, since_ms: float, until_ms: float) -> list[float]:
    """Begins of successive passes of one client, one less the other, in milliseconds."""
    found = []
    for client in "xyz":
        begins = [ms(each.begin_us) for each in future.passes(client)]
        within = [at for at in begins if since_ms <= at < until_ms]
        found += [b - a for a, b in pairwise(within)]
    return found


@pytest.mark.parametrize("detail", [None, "EXPIRED"])
def test_a_pass_that_asks_a_lost_host_takes_three_seconds_longer(detail: str | None) -> None:
    longer = whole = 0
    for future in futures(
        *THREE_ON_TWO_BROKERS, event(DOWN, "BROKER_DOWN", broker_name="b", detail=detail), **V5
    ):
        for gap in apart(future, *SILENT):
            longer += 23_000 <= gap < 23_600
            whole += 20_000 <= gap < 20_600
    assert (longer > 20) == (detail == "EXPIRED")
    assert (whole > 20) == (detail == "EXPIRED")  # before a broker that stops nothing is followed


def test_until_clients_know_the_new_route_a_lost_host_costs_them_time() -> None:
    gone = {}
    for detail in (None, "EXPIRED"):
        down = event(DOWN, "BROKER_DOWN", broker_name="b", detail=detail)
        gone[detail] = max(
            at - DOWN
            for future in futures(*THREE_ON_TWO_BROKERS, down, **V5, seeds=40)
            for client in "xyz"
            for at, queue in future.drops(client, DOWN)
            if queue.startswith("b")
        )
    assert gone[None] < 51_500
    assert gone[None] < gone["EXPIRED"] < 51_500 + 6_000


def test_heartbeats_to_many_lost_hosts_starve_the_route_poll() -> None:
    """One scheduler thread: thirty hosts take 90 s of every 30 (rocketmq.md §6.1)."""
    brokers = [f"b{number:02}" for number in range(30)]
    topics = [topic(0, 1, "T", broker) for broker in ("a", *brokers)]
    lost = [event(DOWN, "BROKER_DOWN", broker_name=name, detail="EXPIRED") for name in brokers]
    back = {}
    for version, concurrent in (("5.3.3", False), ("5.5.0", True), ("5.3.3", True)):
        options = ClockOptions(exact_times=True, concurrent_heartbeat=concurrent)
        back[version, concurrent] = max(
            at - DOWN
            for future in futures(
                *topics, *THREE_MEMBERS, *lost, options=options, client_version=version
            )
            for client in "xyz"
            for at, queue in future.drops(client, DOWN)
            if not queue.startswith("a")
        )
    assert back["5.5.0", True] < 62_000
    assert back["5.3.3", False] > back["5.5.0", True] + 30_000
    assert back["5.3.3", True] == back["5.3.3", False]  # the option came with 5.5


def test_a_member_that_leaves_while_a_host_is_silent_is_replaced_on_the_other_broker() -> None:
    down = event(DOWN, "BROKER_DOWN", broker_name="b", detail="EXPIRED")
    left = event(DOWN - 60_000, "CONSUMER_LEAVE", "z", channel_id="z/1")
    for future in futures(*THREE_ON_TWO_BROKERS, left, down, options=EXACT, **V5):
        assert future.orphans(DOWN + 70_000) == 4  # those of broker b, which is gone
        assert future.shared(DOWN + 70_000) == 0
