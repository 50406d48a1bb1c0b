"""The agenda's order, draws, and how soon members act on what they are told."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from rebalance_core.model.events import Event
from rebalance_core.timing import delays
from rebalance_core.timing.delays import Delay, delay_ms
from rebalance_core.timing.draws import Timer, all_below, below, entity_of, uniform, uniforms
from rebalance_core.timing.operations import Operation, operation_id
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference.event_queue import EventQueue, Kind
from rebalance_core.timing.reference.pass_clock import PassClock
from rebalance_core.timing.stretches import stretches_of
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import NOTICES_BATCHED, REGULAR
from tests.unit.replay.histories import event, history, join, topic
from tests.unit.timing.futures import futures, joins, ms, story, two_brokers

# The agenda's order, the clock of passes, and who is told of what.

SECOND = 1_000_000


def test_what_is_due_at_one_moment_is_done_by_kind_process_broker_and_turn() -> None:
    done: list[str] = []
    agenda = EventQueue()
    for name, kind, process, broker in (
        ("pass", Kind.PASS, 0, -1),
        ("z hears of b", Kind.NOTICE, 2, 1),
        ("x hears of b", Kind.NOTICE, 0, 1),
        ("x hears of a", Kind.NOTICE, 0, 0),
        ("again", Kind.NOTICE, 0, 0),
        ("event", Kind.TIMELINE, 9, -1),
    ):
        agenda.put(5, kind, partial(done.append, name), process=process, broker=broker)
    agenda.put(6, Kind.TIMELINE, lambda: done.append("too late"))
    agenda.run_until(6)
    assert done == ["event", "x hears of a", "again", "x hears of b", "z hears of b", "pass"]
    assert agenda.now_us == 6


def test_what_is_put_down_for_the_past_is_done_now() -> None:
    agenda = EventQueue()
    times: list[int] = []
    agenda.put(10, Kind.PASS, lambda: agenda.put(3, Kind.POLL, lambda: times.append(agenda.now_us)))
    agenda.run_until(20)
    assert times == [10]


def clock(**fields: Any) -> PassClock:
    usual = {"min_interval_us": SECOND, "length_us": 5_000, "own_wait_us": 20 * SECOND}
    return PassClock(**{"last_end_us": 0} | usual | fields)


@pytest.mark.parametrize(
    ("woken_us", "min_interval_us", "next_us"),
    [
        (None, SECOND, 20 * SECOND),
        (300, SECOND, SECOND),
        (5 * SECOND, SECOND, 5 * SECOND),
        (25 * SECOND, SECOND, 20 * SECOND),
        (-5, 0, 0),
        (300, 0, 300),
    ],
)
def test_a_wake_up_brings_the_next_pass_forward_but_not_below_the_minimum(
    woken_us: int | None, min_interval_us: int, next_us: int
) -> None:
    assert clock(woken_us=woken_us, min_interval_us=min_interval_us).next_us == next_us


def test_wake_ups_are_a_latch_that_a_pass_uses_up() -> None:
    its = clock()
    its.wake(7 * SECOND)
    its.wake(5 * SECOND)
    its.wake(6 * SECOND)
    assert its.next_us == 5 * SECOND
    assert its.begin(5 * SECOND) == 0
    assert its.woken_us is None
    assert its.next_us == 25 * SECOND + 5_000


def test_an_unbalanced_pass_is_followed_by_one_a_second_later_from_5_2_on() -> None:
    new, old = clock(), clock(min_interval_us=0)
    for its in (new, old):
        its.begin(SECOND)
        its.unbalanced()
    assert new.next_us == 2 * SECOND + 5_000
    assert old.next_us == 21 * SECOND + 5_000


def test_idle_passes_are_counted_and_forget_wake_ups() -> None:
    its = clock(number=3, woken_us=SECOND)
    its.skip_idle(61 * SECOND)
    assert (its.number, its.last_end_us, its.woken_us) == (6, 3 * (20 * SECOND + 5_000), None)
    its.skip_idle(60 * SECOND)
    assert its.number == 6


def test_operations_have_ids_of_their_own() -> None:
    ids = {
        operation_id(entity, broker, lifetime, operation, number)
        for entity in (1, 2)
        for broker in "ab"
        for lifetime in (0, 1)
        for operation in Operation
        for number in (0, 1, 7)
    }
    assert len(ids) == 2 * 2 * 2 * len(Operation) * 3
    assert all(0 <= each < 1 << 63 for each in ids)


def test_changes_whose_windows_touch_are_one_stretch() -> None:
    made = story(
        *two_brokers(),
        joins(5_100, "x"),
        topic(100_300, 6),
        topic(900_300, 7),
        event(2_000_300, "BROKER_DOWN", broker_name="b", detail="EXPIRED"),
    )
    found = list(stretches_of(made))
    assert [list(each.changes) for each in found] == [[0, 1], [2], [3]]
    assert [ms(each.end_us) for each in found] == [340_300, 1_140_300, 2_240_300]
    assert ms(found[1].begin_us) == 900_299
    assert ms(found[2].begin_us) == 2_000_299 - 125_000  # the host was silent before


def test_a_newer_notification_stops_the_loop_of_an_older_one() -> None:
    """Two are lost one after the other: from 5.3.3 on some hear of the second alone."""
    members = [joins(5_000 * (n + 1), name) for n, name in enumerate("vwxyz")]
    gone = [
        event(100_001 + n, "CONSUMER_LOST", name, channel_id=f"{name}/1")
        for n, name in enumerate("yz")
    ]
    woken = {"5.3.2": 0, "5.3.3": 0}
    for version in woken:
        for future in futures(
            topic(0, 8), *members, *gone, seeds=30, client_version="5.1.4", broker_version=version
        ):
            woken[version] += sum(
                one.trigger == "woken" and 100_000 <= ms(one.begin_us) < 102_000
                for one in future.played.passes
            )
            assert future.orphans(103_000) == 0
    assert woken["5.3.2"] == 30 * 3 * 2
    assert woken["5.3.3"] < woken["5.3.2"]


# How soon members act on a join or a loss, by how their brokers and their group tell them.

T0 = 1_700_000_000_000
CHANGE_MS = T0 + 400_123
OPTIONS = ClockOptions(exact_times=True)
NOTICES_SEEDS = 300


def latencies(happens: Event, mode: str | None, *, notified: bool) -> tuple[str, np.ndarray]:
    """(why not at once, seconds until `a` acts in each future)."""
    told = [event(T0 + 100, "NOTICES", broker_name="a", detail=mode)] if mode else []
    timeline = build_timeline(
        history(
            topic(T0, 4), *told, join(T0 + 1_017, "b"), join(T0 + 11_017, "a"),
            happens, notified=notified,
        ),
        OPTIONS,
    )  # fmt: skip
    log = play_seeds(timeline, range(NOTICES_SEEDS), OPTIONS)
    (lifetime,) = (each.index for each in timeline.lifetimes if each.client_id == "a")
    late = (log.lifetime == lifetime) & (log.at_us > (CHANGE_MS - 1_000) * 1_000)
    first = np.full(NOTICES_SEEDS, np.inf)
    np.minimum.at(first, log.seed[late], log.at_us[late] / 1e6 - CHANGE_MS / 1e3)
    return reason_of(timeline), first


JOIN, LOST = join(CHANGE_MS, "0"), event(CHANGE_MS, "CONSUMER_LOST", "b")


@pytest.mark.parametrize(
    ("happens", "mode", "notified", "reason", "least_s", "most_s"),
    [
        (JOIN, None, True, REGULAR, 0.0, 2.5),
        (JOIN, "ON", True, REGULAR, 0.0, 2.5),
        (JOIN, None, False, REGULAR, 15.0, 21.5),
        (JOIN, "OFF", True, REGULAR, 15.0, 21.5),
        (JOIN, "BATCHED", True, NOTICES_BATCHED, 10.0, 16.5),
        (LOST, None, False, REGULAR, 0.0, 2.5),
        (LOST, "OFF", True, REGULAR, 15.0, 21.5),
    ],
)
def test_members_act_as_they_are_told(
    happens: Event, mode: str | None, notified: bool, reason: str, least_s: float, most_s: float
) -> None:
    """The slowest of many futures: a second, a batch of 15 s, or a wait of 20 s."""
    why, found = latencies(happens, mode, notified=notified)
    assert why == reason
    assert np.isfinite(found).all()
    assert least_s <= found.max() <= most_s
    assert found.min() >= -1


# Draws are hashes: the same in plain Python and in numpy, and uniform.

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


def test_names_are_told_apart() -> None:
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
