"""A BROADCASTING consumer's pass (rocketmq.md §3.3, §5.2)."""

import pytest

from rebalance_core.client.offset_stores import LocalOffsetStore
from rebalance_core.client.pass_record import QueueChange
from rebalance_core.client.rebalance_pass import run_pass
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.start_offset import NO_STORED_OFFSET
from tests.unit.replay.one_process import (
    V4,
    V5,
    V51,
    T,
    brokers,
    holding,
    process,
    view,
)


@pytest.mark.parametrize("version", [V4, V51, "5.3.1", "5.3.2"])
def test_broadcasting_takes_everything_and_locked_until_5_3_1(version: str) -> None:
    client = process(version, message_model="BROADCASTING", ordered=True)
    record = run_pass(client, view(None), brokers())
    assert set(record.added) == set(T)
    assert bool(record.locks) is (version != "5.3.2")
    assert record.changed == {"T": QueueChange(4, frozenset(T))}


@pytest.mark.parametrize(("version", "file"), [(V4, {}), ("4.9.8", {T[3]: 70}), (V5, {T[3]: 70})])
def test_broadcasting_commits_to_its_file_and_no_broker(
    version: str, file: dict[MessageQueue, int]
) -> None:
    client, world = holding(version, *T, message_model="BROADCASTING"), brokers()
    record = run_pass(client, view(None, T=T[:3]), world)
    assert record.removed == [T[3]]
    assert (record.persisted, world.committed) == ({}, {})
    again = run_pass(client, view(None, T=T), world)
    assert again.added == {T[3]: file.get(T[3], 100)}


@pytest.mark.parametrize(("consumer_type", "start"), [("LITE_PULL", 70), ("PUSH", 100)])
def test_lite_pull_reads_the_memory_before_the_file(consumer_type: str, start: int) -> None:
    # 4.9.7 forgets nothing and writes nothing as a queue goes, so only the memory knows 70.
    client = holding(V4, *T, message_model="BROADCASTING", consumer_type=consumer_type)
    run_pass(client, view(None, T=T[:3]), brokers())
    assert run_pass(client, view(None, T=T), brokers()).added == {T[3]: start}


@pytest.mark.parametrize("memory_first", [True, False])
def test_the_local_store_reads_its_memory_first_where_it_is_asked_to(memory_first: bool) -> None:
    store = LocalOffsetStore(parse_version(V5), {T[0]: 40})
    assert store.read(T[0], brokers(), memory_first=memory_first) == 40
    store.update(T[0], 70)
    assert store.read(T[0], brokers(), memory_first=memory_first) == (70 if memory_first else 40)
    # what was read from the file is in memory now
    assert store.read(T[0], brokers(), memory_first=True) == (70 if memory_first else 40)
    assert store.read(T[1], brokers(), memory_first=memory_first) == NO_STORED_OFFSET


def test_broadcasting_drops_all_of_an_empty_route_and_keeps_an_unknown_one() -> None:
    client = holding(V5, *T, message_model="BROADCASTING")
    assert run_pass(client, view(None, T=None), brokers()).changed == {
        "T": QueueChange(0, frozenset())
    }
    assert set(client.table) == set(T)
    assert sorted(run_pass(client, view(None, T=()), brokers()).removed) == list(T)
