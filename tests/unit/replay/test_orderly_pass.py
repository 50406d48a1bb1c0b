"""Order locks, zombies and unlocks of an orderly consumer's pass (rocketmq.md §4.2, §7)."""

import pytest

from rebalance_core.client.rebalance_pass import run_pass
from tests.unit.replay.one_process import (
    ALL,
    V4,
    V5,
    V51,
    T,
    brokers,
    holding,
    process,
    view,
)


@pytest.mark.parametrize("version", ALL)
def test_an_orderly_queue_needs_its_lock(version: str) -> None:
    client, world = process(version, ordered=True), brokers(locks={T[0]: "c2"})
    record = run_pass(client, view(T=T[:2]), world)
    assert sorted(record.locks) == [(T[0], False), (T[1], True)]
    assert set(record.added) == {T[1]}
    assert world.locks == {T[0]: "c2", T[1]: "c1"}
    assert record.balanced is (None if version == V4 else False)
    assert record.rebalance_later_ms == ([] if version == V4 else [500])


@pytest.mark.parametrize("version", ALL)
def test_an_orderly_removal_unlocks_at_once_when_nothing_is_cached(version: str) -> None:
    client, world = holding(version, *T, ordered=True), brokers(locks=dict.fromkeys(T, "c1"))
    record = run_pass(client, view(("c1", "c2")), world)
    assert sorted(record.removed) == [T[2], T[3]]
    assert set(world.locks) == {T[0], T[1]}
    assert record.delayed_unlocks == {}


@pytest.mark.parametrize(("version", "delayed"), [(V4, True), (V51, True), ("5.2.0", False)])
def test_cached_messages_delay_the_unlock_until_5_1_4(version: str, delayed: bool) -> None:
    client, world = holding(version, T[0], ordered=True), brokers(locks={T[0]: "c1"})
    client.table[T[0]].holds_messages = True
    record = run_pass(client, view(("c0", "c1"), T=T[:1]), world)
    assert record.removed == [T[0]]
    assert record.delayed_unlocks == ({T[0]: 20_000} if delayed else {})
    assert world.locks == ({T[0]: "c1"} if delayed else {})


@pytest.mark.parametrize("version", ALL)
def test_a_busy_listener_leaves_a_zombie_that_blocks_its_queue(version: str) -> None:
    client, world = holding(version, T[0], ordered=True), brokers(locks={T[0]: "c1"})
    client.table[T[0]].listener_busy = True
    record = run_pass(client, view(("c0", "c1"), T=T[:1]), world)
    assert (record.removed, record.removal_failed) == ([], [T[0]])
    assert record.persisted == {T[0]: 70}
    assert record.changed == {}
    assert client.table[T[0]].dropped
    assert record.balanced is (None if version == V4 else True)

    client.table[T[0]].listener_busy = False
    again = run_pass(client, view(T=T[:1]), world)
    assert (again.added, again.removed, again.locks) == ({}, [], [])
    assert again.balanced is (None if version == V4 else False)

    last = run_pass(client, view(("c0", "c1"), T=T[:1]), world)
    assert last.removed == [T[0]]
    # To 5.1.4 the offset left the memory with the first try; 5.2+ keeps and commits it again.
    assert last.persisted == ({} if version in (V4, V51) else {T[0]: 70})


@pytest.mark.parametrize(
    ("version", "age", "forced"),
    [
        (V5, 20_000, False),
        (V5, 20_001, True),
        ("5.2.0", 20_001, True),
        (V51, 30_000, False),
    ],
)
def test_5_2_unlocks_by_force_20_s_after_the_last_renewal(
    version: str, age: int, forced: bool
) -> None:
    client, world = holding(version, T[0], ordered=True), brokers(locks={T[0]: "c1"})
    client.table[T[0]].listener_busy = True
    client.table[T[0]].lock_age_ms = age
    record = run_pass(client, view(("c0", "c1"), T=T[:1]), world)
    assert bool(record.removed) is forced
    assert (T[0] not in world.locks) is forced


def test_an_unlock_needs_the_master() -> None:
    client = holding(V5, T[0], ordered=True)
    world = brokers(locks={T[0]: "c1"}, masters_down=frozenset("a"))
    assert run_pass(client, view(("c0", "c1"), T=T[:1]), world).removed == [T[0]]
    assert world.locks == {T[0]: "c1"}
