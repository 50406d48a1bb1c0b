"""The random numbers: nothing but the entity decides them, and they never change."""

from collections import Counter

import numpy as np
import pytest

from rebalance_core.synthetic.draws import Draws, key_of, noise


def test_the_numbers_of_an_entity_are_pinned() -> None:
    # Other numbers change what every seed gives: the changelog has to say so.
    draws = Draws(1, "group", 7)
    assert [draws.between(0, 999) for _ in range(6)] == [866, 462, 44, 248, 807, 3]
    assert noise(key_of(1, "lag", 2), np.array([0, 1, 2])).round(6).tolist() == [
        0.84524,
        0.631251,
        0.689219,
    ]


def test_entities_that_differ_in_anything_have_other_numbers() -> None:
    entities: list[tuple[int, str, *tuple[int, ...]]] = [
        (1, "group", 7),
        (2, "group", 7),
        (1, "topic", 7),
        (1, "group", 8),
    ]
    entities += [(1, "group", 7, 0), (-1, "group", 7), (1, "group", 77), (11, "group", 7)]
    assert len({key_of(*entity) for entity in entities}) == len(entities)


def test_noise_is_of_each_row_alone() -> None:
    a, b = np.arange(50, dtype=np.int64), np.arange(50, dtype=np.int64)[::-1].copy()
    whole = noise(5, a, b)
    assert np.array_equal(whole[10:20], noise(5, a[10:20], b[10:20]))
    assert not np.array_equal(whole, noise(6, a, b))
    assert not np.array_equal(whole, noise(5, b, a))
    assert 0.0 <= whole.min() < 0.2 < 0.8 < whole.max() < 1.0


def test_a_mix_follows_its_weights() -> None:
    draws = Draws(3, "mix")
    found = Counter(draws.mixed((("a", 6), ("b", 3), ("c", 1), ("never", 0))) for _ in range(4000))
    assert set(found) == {"a", "b", "c"}
    assert found["a"] / 4000 == pytest.approx(0.6, abs=0.03)
    assert found["c"] / 4000 == pytest.approx(0.1, abs=0.02)


def test_counts_have_their_mean() -> None:
    draws = Draws(3, "count")
    for mean in (0.0, 0.2, 5.0):
        counts = [draws.count(mean) for _ in range(3000)]
        assert sum(counts) / 3000 == pytest.approx(mean, abs=0.15)


def test_limits_are_included_and_nothing_beyond_them() -> None:
    draws = Draws(3, "limits")
    assert {draws.between(-1, 2) for _ in range(200)} == {-1, 0, 1, 2}
    assert all(2.0 <= draws.scattered(2.0, 50.0) <= 50.0 for _ in range(200))
    assert sorted(draws.shuffled(range(30))) == list(range(30))
