"""How the queues of one topic are numbered over its brokers, in every epoch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.grid import Grid, places
from rebalance_core.kernels.routes import TopicBrokers
from rebalance_core.kernels.segments import Ints, pointers
from rebalance_core.kernels.topic_periods import GroupTopics
from tests.unit.kernels.hypothesis_settings import RANDOM

NOTHING = np.zeros(0, np.int64)
Topic = list[tuple[int, list[int]]]
"""By broker: its key, and the queues that count in each epoch."""


def grid(topics: list[Topic]) -> Grid:
    """A grid of which only the order of its broker cells is known."""
    brokers = [len(topic) for topic in topics]
    epochs = [len(topic[0][1]) if topic else 0 for topic in topics]
    sizes = [len(counts) for topic in topics for _, counts in topic]
    none = NOTHING > 0
    return Grid(
        GroupTopics(*(NOTHING,) * 5),
        TopicBrokers(*(NOTHING,) * 3),
        topic_of=np.repeat(np.arange(len(topics)), brokers),
        topic_first=pointers(ints(epochs)),
        broker_first=pointers(ints(sizes)),
        active=none,
        read=none,
        queues=NOTHING,
        frozen=none,
        readable=NOTHING,
        most_readable=NOTHING,
        elsewhere=none,
    )


def placed(topics: list[Topic], *, by_key: bool = True) -> tuple[list[int], list[int]]:
    counts = [n for topic in topics for _, row in topic for n in row]
    keys = [key for topic in topics for key, _ in topic]
    before, total = places(grid(topics), ints(counts), ints(keys) if by_key else None)
    return before.tolist(), total.tolist()


def ints(values: list[int]) -> Ints:
    return np.array(values, np.int64)


def counted(topics: list[Topic]) -> tuple[list[int], list[int]]:
    """The same, one broker and one epoch after the other."""
    before, total = [], []
    for topic in topics:
        for number, (key, row) in enumerate(topic):
            for epoch in range(len(row)):
                earlier = [r[epoch] for k, r in topic[:number] if k == key]
                every = [r[epoch] for k, r in topic if k == key]
                before.append(sum(earlier))
                total.append(sum(every))
    return before, total


def test_queues_of_earlier_brokers_come_first() -> None:
    two_epochs: Topic = [(0, [3, 1]), (0, [2, 0]), (0, [4, 4])]
    assert placed([two_epochs]) == ([0, 0, 3, 1, 5, 1], [9, 5] * 3)


def test_brokers_with_other_keys_are_numbered_apart() -> None:
    assert placed([[(7, [3]), (1, [2]), (7, [4])]]) == ([0, 0, 3], [7, 2, 7])


def test_topics_are_numbered_apart() -> None:
    assert placed([[(0, [3]), (0, [1])], [(0, [5])]]) == ([0, 3, 0], [4, 4, 5])


def test_no_broker_and_no_epoch() -> None:
    assert placed([]) == ([], [])
    assert placed([[(0, []), (0, [])]]) == ([], [])


@st.composite
def topics(draw: st.DrawFn) -> Topic:
    epochs = draw(st.integers(0, 3))
    counts = st.lists(st.integers(0, 5), min_size=epochs, max_size=epochs)
    return draw(st.lists(st.tuples(st.integers(0, 2), counts), max_size=5))


@RANDOM
@given(st.lists(topics(), max_size=4))
def test_places_are_what_counting_gives(given_topics: list[Topic]) -> None:
    assert placed(given_topics) == counted(given_topics)
    of_one_key = [[(0, row) for _, row in topic] for topic in given_topics]
    assert placed(given_topics, by_key=False) == counted(of_one_key)
