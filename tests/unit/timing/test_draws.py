"""Draws are hashes: the same in plain Python and in numpy, and uniform."""

import numpy as np
import pytest

from rebalance_core.timing import delays
from rebalance_core.timing.delay import Delay, delay_ms
from rebalance_core.timing.draws import Timer, all_below, below, entity_of, uniform, uniforms

DRAWS_SEEDS = np.arange(500)
ENTITIES = [entity_of("group", f"10.0.0.{i}@1", None) for i in range(4)]
DELAYS = {name: value for name, value in vars(delays).items() if isinstance(value, Delay)}


def test_one_draw_and_many_agree() -> None:
    many = uniforms(DRAWS_SEEDS, np.array(ENTITIES, np.uint64)[:, None], Timer.NOTICE, 7)
    one = [
        [uniform(int(seed), entity, Timer.NOTICE, 7) for seed in DRAWS_SEEDS] for entity in ENTITIES
    ]
    assert many.tolist() == one


def test_large_ticks_agree() -> None:
    tick = (1 << 63) - 25
    assert uniforms(3, ENTITIES[0], Timer.NOTICE, tick) == uniform(3, ENTITIES[0], 8, tick)


def test_draws_are_uniform_and_differ_by_every_part() -> None:
    draws = uniforms(np.arange(20_000), ENTITIES[0], Timer.PHASE)
    counts = np.bincount(all_below(draws, 20), minlength=20)
    assert counts.min() > 850
    assert counts.max() < 1_150
    columns = [
        uniforms(DRAWS_SEEDS, ENTITIES[0], Timer.PHASE),
        uniforms(DRAWS_SEEDS, ENTITIES[1], Timer.PHASE),
        uniforms(DRAWS_SEEDS, ENTITIES[0], Timer.NOTICE),
        uniforms(DRAWS_SEEDS, ENTITIES[0], Timer.PHASE, 1),
    ]
    related = np.corrcoef(np.array(columns, float)) - np.eye(4)
    assert abs(related).max() < 0.15


def test_names_are_distinguished() -> None:
    names = [("a", "b"), ("ab",), ("a", None), ("a", ""), ("a",), ("a", "b", None)]
    assert len({entity_of(*each) for each in names}) == len(names)


def test_below_scales() -> None:
    draws = uniforms(DRAWS_SEEDS, 1, 2, 3)
    assert all_below(draws, 30_000_000).tolist() == [below(int(d), 30_000_000) for d in draws]
    assert below((1 << 32) - 1, 3) == 2


@pytest.mark.parametrize("name", sorted(DELAYS))
def test_a_delay_of_one_draw_and_of_many_agree(name: str) -> None:
    delay = DELAYS[name]
    draws = np.concatenate([uniforms(DRAWS_SEEDS, 5, 6), np.array([0, (1 << 32) - 1], np.uint64)])
    many = delay.many(draws)
    assert many.tolist() == [delay.delay_of(int(draw)) for draw in draws]
    assert delay.shortest <= many.min() <= many.max() <= delay.longest


def test_quantiles_come_out() -> None:
    delay = delay_ms((0, 1), (0.5, 5), (1, 105))
    found = np.quantile(delay.many(uniforms(np.arange(20_000), 1, 1)), [0.25, 0.5, 0.75])
    assert found == pytest.approx([3_000, 5_000, 55_000], rel=0.05)


@pytest.mark.parametrize(
    "knots", [((0.1, 1), (1, 2)), ((0, 1), (0.9, 2)), ((0, 2), (1, 1)), ((0, 1), (0, 2), (1, 3))]
)
def test_what_is_no_quantile_function_is_refused(knots: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match=r"shares must go from 0|a value per share"):
        delay_ms(*knots)
