"""Shares where a closed form exists: nothing disturbed, and one broker avoided throughout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.producers.counter import POSITIVE_MASK, Counter
from rebalance_core.producers.cycle import Cycle
from rebalance_core.producers.model import BrokerModel, Outage
from rebalance_core.producers.producer_run import run_producer
from rebalance_core.producers.routes import publish_list
from rebalance_core.producers.tally import Tally
from tests.unit.producers.models import FAST, model, variant

sizes = st.lists(st.integers(1, 9), min_size=2, max_size=5)
versions = st.sampled_from(["4.9.7", "4.9.8", "5.1.3", "5.3.3"])


def brokers_of(queues: list[int]) -> tuple[BrokerModel, ...]:
    return tuple(BrokerModel(f"broker-{i}", size, FAST) for i, size in enumerate(queues))


def attempts_of(tally: Tally, phase: int) -> dict[tuple[str, int], int]:
    attempts = tally.phases[phase].attempts
    return {(q.broker_name, q.queue_id): number for q, number in attempts.items()}


@given(sizes, versions, st.booleans(), st.integers(0, 2**32))
def test_with_all_healthy_queues_differ_by_one_at_most(
    queues: list[int], version: str, enabled: bool, seed: int
) -> None:
    world = model(brokers=brokers_of(queues), seconds=30, rate=37, seed=seed)
    tally = run_producer(world, world.groups[0], 0, variant(version, enabled))
    attempts = attempts_of(tally, 0)
    assert sum(attempts.values()) == tally.phases[0].sends > 1000
    assert len(attempts) == sum(queues)
    assert max(attempts.values()) - min(attempts.values()) <= 1
    assert tally.isolations == []


@given(sizes, st.integers(0, 4), st.integers(0, 2**32))
def test_one_broker_avoided_the_others_share_equally_from_5_1_4(
    queues: list[int], which: int, seed: int
) -> None:
    gone = f"broker-{which % len(queues)}"
    avoided = avoided_for_a_while("5.3.3", queues, gone, seed)
    assert all(broker != gone for broker, _ in avoided)
    assert len(avoided) == sum(queues) - queues[which % len(queues)]
    assert max(avoided.values()) - min(avoided.values()) <= 1


@given(sizes, st.integers(0, 4), st.integers(0, 2**32))
def test_to_5_1_3_the_next_queue_takes_the_share_of_the_avoided_broker(
    queues: list[int], which: int, seed: int
) -> None:
    number = which % len(queues)
    gone, heir = f"broker-{number}", (f"broker-{(number + 1) % len(queues)}", 0)
    avoided = avoided_for_a_while("4.9.8", queues, gone, seed)
    others = [sends for queue, sends in avoided.items() if queue != heir]
    assert max(others, default=0) - min(others, default=0) <= 1
    fair = sum(avoided.values()) / sum(queues)
    assert abs(avoided[heir] - fair * (queues[number] + 1)) <= queues[number] + 1


def avoided_for_a_while(
    version: str, queues: list[int], gone: str, seed: int
) -> dict[tuple[str, int], int]:
    """Choices of the 9 s behind a failure of 1 s, within every isolation."""
    world = model(
        Outage(gone, 0, 1000, stays_in_route=True),
        Outage(gone, 9000, 9001, stays_in_route=True),
        brokers=brokers_of(queues),
        seconds=10,
        rate=200,
        seed=seed,
    )
    tally = run_producer(world, world.groups[0], 0, variant(version, True))
    assert [one.reason for one in tally.isolations] == ["FAILURE"]
    return attempts_of(tally, 1)


@given(
    sizes,
    st.integers(0, 4),
    st.integers(0, POSITIVE_MASK - 10**6),
    st.integers(1, 500),
    st.booleans(),
    st.integers(0, 2),
)
def test_a_jump_chooses_what_single_steps_choose(
    queues: list[int], which: int, begin: int, sends: int, skips: bool, rounds: int
) -> None:
    world = model(brokers=brokers_of(queues))
    listed = publish_list("t", world.route(frozenset()))
    gone = f"broker-{which}"
    rounds = rounds if skips else 0
    whole = Cycle(listed, lambda b: b != gone, skips=skips, idle_rounds=rounds)
    single = Cycle(listed, lambda b: b != gone, skips=skips, idle_rounds=rounds)
    jumped, stepped = (Counter(begin, int, raw_seed=True) for _ in range(2))
    start = whole.start(jumped)
    foreseen = {b: whole.sends_before(b, start, 3) for b in whole.brokers}
    expected = {b: whole.chosen(b, start, sends) for b in whole.brokers}
    whole.run(jumped, start, sends)
    seen: dict[str, list[int]] = {}
    total: dict[int, int] = {}
    for number in range(sends):
        single.run(stepped, single.start(stepped), 1)
        ((place, _),) = single.take_counts().items()
        total[place] = total.get(place, 0) + 1
        seen.setdefault(listed[place].broker_name, []).append(number)
    assert whole.take_counts() == total
    assert jumped.value == stepped.value
    assert {b: len(seen.get(b, [])) for b in whole.brokers} == expected
    for broker, numbers in seen.items():
        if len(numbers) > 3:
            assert numbers[3] == foreseen[broker]


def test_a_counter_about_to_wrap_is_walked() -> None:
    listed = publish_list("t", model().route(frozenset()))
    cycle = Cycle(listed, lambda broker: True, skips=False)
    assert cycle.most(Counter(POSITIVE_MASK - 5, int, raw_seed=True)) == 0
    assert cycle.most(Counter(None, int, raw_seed=True)) == 0
    assert cycle.most(Counter(-5, int, raw_seed=True)) == 0  # masked: near the largest
    assert cycle.most(Counter(0, int, raw_seed=True)) > 10**8


@pytest.mark.parametrize("rate", [10, 1000])
def test_the_number_of_sends_is_that_of_the_pace(rate: int) -> None:
    world = model(rate=rate, seconds=60)
    tally = run_producer(world, world.groups[0], 0, variant("5.3.3", True))
    assert tally.phases[0].sends == 60 * rate
