"""How many members and queues groups need, counted by hand where small."""

from collections.abc import Mapping
from itertools import product
from math import ceil

import pytest

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.group_load import load_of
from rebalance_core.planning.group_sizes import Demand, Load, size_of
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset

TWO_BROKERS = {"T": {"a": 4, "b": 4}}
STEADY = Demand(service_ms=10, threads=10, outage_ms=0)  # 1,000 messages a second for a member


def load(
    rate: float | None,
    queues: Mapping[str, Mapping[str, int]] = TWO_BROKERS,
    *,
    ordered: bool = False,
    unread: int | None = 0,
    capacity: float | None = None,
) -> Load:
    rates = {topic: None if rate is None else rate / len(queues) for topic in queues}
    return Load("c", "g", ordered, 3, queues, rates, unread, capacity)


@pytest.mark.parametrize(
    ("rate", "ordered", "members", "queues", "bound"),
    [
        (100, False, 2, 8, "SPARE"),  # one carries it
        # 500 a queue: two each; 4 carry it, 4 of 4 queues of 1,000 without a broker; one to spare
        (4_000, False, 5, 8, "THREADS"),
        # 2,000 a queue without a broker is too much, so 16 of 500: two each, and one to spare
        (8_000, False, 9, 16, "QUEUES"),
        # a thread reads 100: 8 queues of 100, but 4 of 200 while a broker is missing
        (800, True, 2, 16, "ORDERED"),
        (400, True, 2, 8, "SPARE"),
    ],
)
def test_a_number_and_what_decides(
    rate: float, ordered: bool, members: int, queues: int, bound: str
) -> None:
    row = size_of(load(rate, ordered=ordered), STEADY)
    assert (row["members"], row["queues"], row["bound"]) == (members, queues, bound)
    assert (row["members_now"], row["queues_now"], row["capacity"]) == (3, 8, 1_000)
    assert row["measured"] == "GIVEN"


def fits(members: int, factor: int, rate: int, first: int, second: int) -> bool:
    of = {"T": 2 * first * factor, "U": 2 * second * factor}
    cases = [(of, members - 1), ({topic: n // 2 for topic, n in of.items()}, members)]
    return members > 1 and all(
        sum(ceil(n / left) * rate / 2 / n for n in case.values()) <= 1_000 for case, left in cases
    )


def test_it_is_the_fewest_with_any_one_missing() -> None:
    """Against a count of every case, for many rates and topics."""
    for rate, first, second in product((90, 700, 1_900, 3_300), (1, 3, 8), (2, 5)):
        queues = {"T": {"a": first, "b": first}, "U": {"a": second, "b": second}}
        row = size_of(load(rate, queues), STEADY)
        assert row["queues"] is not None
        assert row["members"] is not None
        factor = row["queues"] // (2 * (first + second))
        most = 2 * max(first, second)
        assert fits(row["members"], factor, rate, first, second)
        assert not any(fits(fewer, factor, rate, first, second) for fewer in range(row["members"]))
        assert factor == 1 or not any(
            fits(members, factor // 2, rate, first, second)
            for members in range(most * factor // 2 + 2)
        )


def test_growth_and_what_waits_ask_for_more() -> None:
    assert size_of(load(2_000), STEADY)["members"] == 3
    grown = Demand(service_ms=10, threads=10, outage_ms=0, growth=2.0)
    assert size_of(load(2_000), grown)["members"] == 5
    # 600,000 that wait are 2,000 a second more for five minutes
    waiting = load(2_000, unread=600_000)
    assert size_of(waiting, STEADY)["members"] == 5
    lenient = Demand(service_ms=10, threads=10, outage_ms=0, target_lag=600_000)
    assert size_of(waiting, lenient)["members"] == 3
    # 2,000 a second for 100 s in half the time are 4,000 a second more
    outage = Demand(service_ms=10, threads=10, outage_ms=100_000, catch_up_ms=50_000)
    row = size_of(load(2_000), outage)
    assert (row["members"], row["queues"]) == (9, 16)
    assert row["catch_up_s"] == pytest.approx(100 * 2_000 / 9 / (1_000 - 2_000 / 9))


def test_what_is_not_known_has_no_number() -> None:
    nothing = Demand(outage_ms=0)
    assert size_of(load(100, capacity=50.0), nothing)["measured"] == "COMMITS"
    for given, reason in (
        (load(None), "the rate of a queue is unknown"),
        (load(100), "its limit is unknown"),
        (load(0, {}), "it reads no queue"),
    ):
        row = size_of(given, nothing)
        assert (row["members"], row["queues"], row["bound"]) == (None, None, "UNKNOWN")
        assert reason in row["reason"]


def history(committed_a_second: int, commits_at: tuple[int, int] = (0, 60_000)) -> GroupHistory:
    """Two members, two queues of 100 messages a second each."""
    one = Event(0, 0, events.BROKER_UP, broker_name="a")
    two = Event(
        0,
        1,
        events.TOPIC_CONFIG,
        topic="T",
        broker_name="a",
        read_queue_nums=2,
        write_queue_nums=2,
        perm=6,
    )
    joins = [
        Event(
            0,
            2 + n,
            events.CONSUMER_JOIN,
            client_id=f"10.0.0.{n}@1",
            channel_id=f"10.0.0.{n}:1",
            subscriptions=("T",),
        )
        for n in range(2)
    ]
    queues = [MessageQueue("T", "a", number) for number in range(2)]
    ends = tuple(
        QueueOffset(queue, at_ms, 0, at_ms // 10) for queue in queues for at_ms in (0, 60_000)
    )
    commits = tuple(
        CommittedOffset(queue, None, at_ms, committed_a_second * at_ms // 1_000)
        for queue in queues
        for at_ms in commits_at
    )
    return GroupHistory("c", "g", GroupSettings(), (one, two, *joins), ends, commits)


def test_a_load_is_read_from_the_tables() -> None:
    kept_up = load_of(history(100))
    assert (kept_up.members, kept_up.queues) == (2, {"T": {"a": 2}})
    assert (kept_up.rates, kept_up.unread, kept_up.capacity) == ({"T": 200.0}, 0, None)
    behind = load_of(history(70))
    assert (behind.unread, behind.capacity) == (2 * 30 * 60, 70.0)
    apart = load_of(history(70, commits_at=(-300_000, -120_000)))
    assert apart.unread is None
