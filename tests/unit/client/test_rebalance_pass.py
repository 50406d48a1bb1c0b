"""One pass, statement by statement of rocketmq.md §3-§5; recorded passes are in
tests/conformance.
"""

from typing import Any

import pytest

from rebalance_core.client.broker_answers import (
    BrokerAnswers,
    BrokerRefusedError,
    BrokerUnreachableError,
    QueueAnswers,
)
from rebalance_core.client.pass_record import PassRecord, QueueChange
from rebalance_core.client.rebalance_pass import run_pass
from rebalance_core.model.queue import MessageQueue
from tests.unit.replay.one_process import (
    ALL,
    RETRY,
    V4,
    V5,
    V51,
    V54,
    V55,
    T,
    brokers,
    holding,
    process,
    view,
)


@pytest.mark.parametrize("version", ALL)
def test_a_first_pass_takes_the_share_and_starts_by_the_mode(version: str) -> None:
    client = process(version)
    record = run_pass(client, view(("c2", "c1")), brokers())
    assert record.added == {T[0]: 100, T[1]: 100}
    assert record.changed == {"T": QueueChange(4, frozenset(T[:2]))}
    assert set(client.table) == set(T[:2])
    assert record.heartbeats == 1
    assert record.balanced is (None if version == V4 else True)
    assert record.first_pull_delay_ms == (None if version == V4 else 500)


@pytest.mark.parametrize("version", ALL)
def test_a_second_equal_pass_does_nothing(version: str) -> None:
    client = holding(version, *T)
    balanced = None if version == V4 else True
    assert run_pass(client, view(), brokers()) == PassRecord(balanced=balanced)


@pytest.mark.parametrize("version", ALL)
def test_a_dropped_queue_is_committed_and_removed(version: str) -> None:
    client, world = holding(version, *T), brokers()
    record = run_pass(client, view(("c1", "c2")), world)
    assert sorted(record.removed) == [T[2], T[3]]
    assert record.persisted == {T[2]: 70, T[3]: 70} == world.committed
    assert record.changed["T"].mq_divided == frozenset(T[:2])


def test_a_dead_broker_gets_no_commit_but_the_queue_goes() -> None:
    client, world = holding(V5, *T), brokers(brokers_down=frozenset("a"))
    record = run_pass(client, view(("c1", "c2")), world)
    assert sorted(record.removed) == [T[2], T[3]]
    assert record.persisted == {}


@pytest.mark.parametrize("version", ALL)
def test_a_client_missing_from_the_list_drops_everything(version: str) -> None:
    client = holding(version, *T)
    record = run_pass(client, view(("c2",)), brokers())
    assert sorted(record.removed) == list(T)
    assert client.table == {}
    assert record.balanced is (None if version == V4 else True)


@pytest.mark.parametrize("version", ALL)
def test_no_member_list_keeps_everything(version: str) -> None:
    client = holding(version, *T)
    record = run_pass(client, view(None), brokers())
    assert set(client.table) == set(T)
    assert record.changed == {}
    # An unknown member list is no reason to hurry.
    assert record.balanced is (None if version == V4 else True)


@pytest.mark.parametrize("version", [V4, V51, V5, V54])
@pytest.mark.parametrize(("members", "queues"), [((), T), (("c1",), ())])
def test_no_member_or_queue_to_divide_is_the_strategy_s_exception_to_5_4(
    version: str, members: tuple[str, ...], queues: tuple[MessageQueue, ...]
) -> None:
    client = holding(version, *T)
    record = run_pass(client, view(members, T=queues), brokers())
    assert set(client.table) == set(T)
    assert record == PassRecord(balanced=None if version == V4 else False)


def test_from_5_5_on_an_empty_queue_set_is_an_unknown_topic() -> None:
    client = holding(V55, *T, pull_threshold_for_topic=8)
    before = client.threshold_for_queue
    record = run_pass(client, view(T=()), brokers())
    assert set(client.table) == set(T)
    assert record == PassRecord(
        changed={"T": QueueChange(0, frozenset())}, heartbeats=1, balanced=True
    )
    assert client.threshold_for_queue == before == 2
    # it ends before the member list is asked for
    assert run_pass(client, view(None, T=()), brokers()) == record
    retry = run_pass(process(V55), view(("c1",), **{"%RETRY%G": ()}), brokers())
    assert retry == PassRecord(balanced=True)


def test_from_5_5_on_an_empty_member_list_is_a_failed_query() -> None:
    client = holding(V55, *T)
    assert run_pass(client, view(()), brokers()) == PassRecord(balanced=True)
    assert set(client.table) == set(T)


def test_an_unknown_topic_heartbeats_in_every_pass_of_5x_but_not_for_retry() -> None:
    missing = view(("c1",), **{"T": None, "%RETRY%G": None})
    record = run_pass(process(V5, pull_threshold_for_topic=7), missing, brokers())
    assert record == PassRecord(
        changed={"T": QueueChange(0, frozenset())}, heartbeats=1, balanced=True
    )
    assert run_pass(process(V4), missing, brokers()) == PassRecord()


@pytest.mark.parametrize("consumer_type", ["LITE_PULL", "PULL"])
def test_only_push_heartbeats_and_shares_thresholds(consumer_type: str) -> None:
    client = process(consumer_type=consumer_type, pull_threshold_for_topic=100)
    record = run_pass(client, view(), brokers())
    assert set(record.changed) == {"T"}
    assert record.heartbeats == 0
    assert client.threshold_for_queue == 1000
    assert set(record.added.values()) == {100 if consumer_type == "LITE_PULL" else 0}


def test_thresholds_divide_by_the_queues_of_all_topics_taken_so_far() -> None:
    client = process(pull_threshold_for_topic=100, pull_threshold_size_for_topic=9)
    run_pass(client, view(("c1",), **{"T": T, "%RETRY%G": RETRY}), brokers())
    assert (client.threshold_for_queue, client.threshold_size_for_queue) == (20, 1)


@pytest.mark.parametrize("version", ALL)
def test_an_unsubscribed_topic_goes_without_commit_unlock_or_notice(version: str) -> None:
    client = holding(version, *T, ordered=True)
    world = brokers(locks=dict.fromkeys(T, "c1"))
    record = run_pass(client, view(("c1",), **{"%RETRY%G": None}), world)
    assert sorted(record.truncated) == list(T)
    assert (record.persisted, record.removed, record.changed) == ({}, [], {})
    assert set(world.locks) == set(T)
    assert client.table == {}


@pytest.mark.parametrize("version", ALL)
def test_an_expired_pull_is_removed_and_added_again_by_push_only(version: str) -> None:
    client = holding(version, T[0])
    client.table[T[0]].pull_expired = True
    record = run_pass(client, view(T=T[:1]), brokers())
    assert record.removed == [T[0]]
    assert record.added == {T[0]: 70}  # the offset just committed
    lite = holding(version, T[0], consumer_type="LITE_PULL")
    lite.table[T[0]].pull_expired = True
    assert run_pass(lite, view(T=T[:1]), brokers()).removed == []


@pytest.mark.parametrize(
    ("failure", "version", "start"),
    [
        (BrokerRefusedError, V4, 100),  # a busy broker counts as "no offset"
        (BrokerRefusedError, V5, None),
        (BrokerUnreachableError, V4, None),
        (BrokerUnreachableError, V5, None),
    ],
)
def test_a_failed_offset_query(failure: Any, version: str, start: int | None) -> None:
    world = BrokerAnswers({T[0]: QueueAnswers(70, 100, 50, failure)})
    record = run_pass(process(version), view(T=T[:1]), world)
    assert record.added.get(T[0]) == start
    assert record.balanced is (None if version == V4 else start is not None)
    assert record.changed.keys() == ({"T"} if start else set())


@pytest.mark.parametrize(("committed", "start"), [(70, 70), (None, None)])
def test_a_slave_answers_commits_but_not_max_offsets(
    committed: int | None, start: int | None
) -> None:
    world = BrokerAnswers({T[0]: QueueAnswers(committed, 100, 50)}, masters_down=frozenset("a"))
    assert run_pass(process(), view(T=T[:1]), world).added.get(T[0]) == start


def test_config_adds_queues_of_other_topics_and_is_never_balanced() -> None:
    other = MessageQueue("U", "a", 0)
    client, world = process(config=["T|a|0", "U|a|0"]), brokers(other)
    both = {"T": T, "U": (other,)}
    record = run_pass(client, view(("c1",), **both), world)
    assert set(record.added) == {T[0], other}
    assert record.changed == {"T": QueueChange(4, frozenset({T[0], other}))}
    assert record.balanced is False
    again = run_pass(client, view(("c1",), **both), world)
    assert again == PassRecord(balanced=False)
    unsubscribed = run_pass(process(config=["T|a|0", "U|a|0"]), view(), world)
    assert (set(unsubscribed.added), unsubscribed.truncated) == ({T[0], other}, [other])


def test_an_unread_residual_offset_is_forgotten_by_persist_all() -> None:
    client, world = holding(V4, T[0]), brokers()
    run_pass(client, view(("c1",), **{"%RETRY%G": RETRY}), world)  # truncates T
    client.store.forget_unused(client.table.keys())
    assert client.store.persist(T[0], world) is None


@pytest.mark.parametrize("version", ALL)
def test_an_offset_left_in_memory_does_not_decide_a_new_start(version: str) -> None:
    client = holding(version, T[0], consumer_type="LITE_PULL")  # reads its memory first
    only_retry = view(("c1",), **{"%RETRY%G": RETRY})
    run_pass(client, only_retry, brokers())  # truncates T, which forgets nothing
    record = run_pass(client, view(T=T[:1]), brokers(committed={T[0]: 50}))
    assert record.added == {T[0]: 50}
