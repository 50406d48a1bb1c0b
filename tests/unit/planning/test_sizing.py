"""How many consumers and queues: against the allocations themselves."""

from collections import Counter
from random import Random

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.known_strategies import planning_strategy
from rebalance_core.planning.sizing import (
    EFFICIENT,
    EVEN,
    IDLE,
    WASTEFUL,
    consumer_counts,
    queues_needed,
)


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_counts_are_what_the_strategies_give(seed: int, strategy: str) -> None:
    rng, divide = Random(seed), planning_strategy(strategy)
    for _ in range(60):
        topics = {name: rng.randint(1, 20) for name in ("T", "U", "V")[: rng.randint(1, 3)]}
        queues = [MessageQueue(t, "a", i) for t, n in topics.items() for i in range(n)]
        for count in consumer_counts(topics, range(1, 24)):
            members = [f"c{i:02}" for i in range(count.consumers)]
            owners = divide.assign({}, queues, members)
            loads = Counter(dict.fromkeys(members, 0))
            loads.update(owner for (owner,) in owners.values())
            assert (count.peak, count.least) == (max(loads.values()), min(loads.values()))
            assert count.idle == list(loads.values()).count(0)
            for topic in topics:
                of_topic = Counter(o for q, (o,) in owners.items() if q.topic == topic)
                assert count.most[topic] == max(of_topic.values())
                assert count.fewest[topic] == min(of_topic[member] for member in members)


def test_steps_and_verdicts() -> None:
    counts = consumer_counts({"orders": 12}, range(1, 15))
    assert {c.consumers: c.verdict for c in counts} == {
        1: EVEN,
        2: EVEN,
        3: EVEN,
        4: EVEN,
        5: WASTEFUL,
        6: EVEN,
        7: WASTEFUL,
        8: WASTEFUL,
        9: WASTEFUL,
        10: WASTEFUL,
        11: WASTEFUL,
        12: EVEN,
        13: IDLE,
        14: IDLE,
    }
    assert [c.consumers for c in counts if c.next_lowers_peak] == [1, 2, 3, 5, 11]
    assert [c.verdict for c in consumer_counts({"orders": 8}, [2, 3])] == [EVEN, EFFICIENT]
    assert [c.idle for c in counts][-2:] == [1, 2]


def test_even_per_topic_may_be_skewed_per_group() -> None:
    (count,) = consumer_counts({"orders": 4, "pay": 4, "stock": 4}, [3])
    assert (count.peak, count.least, count.peak_ratio) == (6, 3, 1.5)


def test_wrong_numbers_are_all_named() -> None:
    with pytest.raises(UsageError) as caught:
        consumer_counts({"orders": 0, "pay": -1}, [1, 0])
    assert len(str(caught.value).splitlines()) == 3
    with pytest.raises(UsageError, match="no topic"):
        consumer_counts({}, [1])


def even_sizes(queues: int, consumers: int) -> list[int]:
    """Falling."""
    return [queues // consumers + (i < queues % consumers) for i in range(consumers)]


def test_queues_needed_are_the_fewest(seed: int) -> None:
    rng = Random(seed)
    for _ in range(300):
        consumers, brokers = rng.randint(1, 12), rng.randint(1, 4)
        spread, at_least = rng.randint(0, 2), rng.randint(0, 30)
        ratio = rng.choice((None, 1.0, 1.05, 1.2, 1.5))
        found = queues_needed(
            consumers, max_spread=spread, max_peak_ratio=ratio, brokers=brokers, at_least=at_least
        )
        sizes = {n: even_sizes(n, consumers) for n in range(at_least, 1_000) if n % brokers == 0}
        assert found == next(
            n
            for n, shares in sizes.items()
            if shares[-1] > 0
            and shares[0] - shares[-1] <= spread
            and (ratio is None or shares[0] * consumers <= ratio * n)
        )


def test_wrong_wishes_are_all_named() -> None:
    with pytest.raises(UsageError) as caught:
        queues_needed(0, max_spread=-1, max_peak_ratio=0.9, brokers=0)
    assert len(str(caught.value).splitlines()) == 4
    with pytest.raises(UsageError, match="65,536"):
        queues_needed(70_000)
