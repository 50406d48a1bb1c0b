"""Random groups with all that is special: what the ledger gives is what was replayed."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalance_core.explain.answer import Explanation
from rebalance_core.explain.explainer import Explainer, queue_text
from rebalance_core.explain.view import View, view_of
from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import BROADCASTING, GroupSettings
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_history
from rebalance_core.replay.pop_reach import client_reaches
from rebalance_core.strategies.pop import WHOLE_BROKER
from tests.unit.explain.ledgers import group_rows
from tests.unit.kernels.random_groups import TRAITS, groups
from tests.unit.replay.histories import strategy_for
from tests.unit.replay.test_random_histories import histories

EXAMPLES = 60
SLOW: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
ALL_AT_ONCE = groups(traits=[trait for trait in TRAITS if trait != "many topics"])
ANY = st.one_of(groups(), ALL_AT_ONCE, histories())


def check(history: GroupHistory) -> Counter[str]:
    """Explains everything of one history; how often each reason came.

    No answer may be UNKNOWN, and no owner or list another than the replay's.
    """
    tables = replay_group(history, strategy_for)
    replay = replay_history(history, strategy_for)
    rows = group_rows(tables, history.consumer_group)
    explainer, codes = Explainer(rows), Counter[str]()
    for epoch, truth in zip(rows.epochs, replay.epochs, strict=True):
        view = view_of(rows, epoch)
        for queue, owners in view.holders.items():
            found = explainer.explain(queue, epoch["from_ms"])
            where = (epoch["epoch"], queue, found)
            if found.agrees is None:  # queues of which nobody knows the holder have no row
                assert truth.unsure, where
                continue
            assert found.agrees, where
            assert [h.client_id for h in found.holders] == sorted(owners), where
            readable = truth.readable.get(queue.topic, [])
            assert found.after.mq_all == tuple(map(queue_text, readable)), where
            assert dict(found.expected) == {c: (n, n) for c, n in owners.items()}, where
            check_before(found, replay, queue.topic)
            reasons = [holder.reason for holder in found.holders]
            codes.update(r.code for r in [*reasons, *([found.no_owner] if found.no_owner else [])])
            assert "UNKNOWN" not in codes, where
        for topic in truth.shared:
            check_shared(explainer, view, replay, truth, topic, codes)
    return codes


def check_shared(
    explainer: Explainer,
    view: View,
    replay: Replay,
    truth: Epoch,
    topic: str,
    codes: Counter[str],
) -> None:
    """Every queue of a shared topic, each broker as a whole, and what is reached in spite of all.

    Also that what is said of the share number and of mqAll is so.
    """
    reaches = {
        client_id: [queue for queue in reach.entries if queue.topic == topic]
        for client_id, reach in client_reaches(truth).items()
    }
    readable = truth.shared[topic].queues
    entries = {queue for of_client in reaches.values() for queue in of_client}
    whole = {queue._replace(queue_id=WHOLE_BROKER) for queue in entries}
    for queue in {*readable, *entries, *whole}:
        found = explainer.explain(queue, truth.from_ms)
        where = (truth.number, queue, found)
        assert found.agrees, where
        assert found.sharing is not None, where
        takers = {
            client_id
            for client_id, own in reaches.items()
            if queue in own
            or (queue in readable and queue._replace(queue_id=WHOLE_BROKER) in own)
            or (queue in whole and any(e.broker_name == queue.broker_name for e in own))
        }
        named = {taker.client_id for taker in found.sharing.takers}
        assert takers == named, where
        assert (found.no_owner is None) == bool(named), where
        assert found.after.mq_all == tuple(map(queue_text, readable)), where
        check_before(found, replay, topic)
        share = truth.shared[topic].share_queue_num
        assert found.sharing.share_queue_num == (share if found.sharing.pops else None), where
        reasons = [taker.reason for taker in found.sharing.takers]
        codes.update(r.code for r in [*reasons, *([found.no_owner] if found.no_owner else [])])
        assert "UNKNOWN" not in codes, where
    assert view.shared.keys() == truth.shared.keys()


def check_before(found: Explanation, replay: Replay, topic: str) -> None:
    """The list before is the replay's."""
    if found.before is None:
        return
    truth = replay.epochs[found.before.epoch]
    assert found.before.mq_all_known or truth.unsure
    if not found.before.mq_all_known:
        return
    shared = truth.shared.get(topic)
    readable = truth.readable.get(topic, []) if shared is None else shared.queues
    assert found.before.mq_all == tuple(map(queue_text, readable)), (topic, found)


@given(ANY)
@settings(max_examples=EXAMPLES, derandomize=True, **SLOW)
def test_every_queue_of_every_epoch_is_explained(history: GroupHistory) -> None:
    check(history)


@pytest.mark.slow
@given(ANY)
@settings(max_examples=EXAMPLES * 40, **SLOW)
def test_the_same_with_many_more(history: GroupHistory) -> None:
    check(history)


@pytest.mark.parametrize(("version", "owned"), [("4.9", 1), ("5.3.2", 2)])
def test_old_broadcasting_members_need_order_locks_as_well(version: str, owned: int) -> None:
    its = GroupSettings(
        message_model=BROADCASTING, subscriptions=("T",), ordered=True, client_version=version
    )
    configs = [
        Event(0, number, events.TOPIC_CONFIG, topic="T", broker_name=broker, read_queue_nums=1)
        for number, broker in enumerate("ab")
    ]
    down = Event(1, 2, events.MASTER_DOWN, broker_name="a")
    join = Event(2, 3, events.CONSUMER_JOIN, client_id="x")
    history = GroupHistory("c", "g", its, (*configs, down, join))
    codes = check(history)
    assert (codes[BROADCASTING], codes["NO_MASTER"]) == (owned, 2 - owned)


def test_of_two_processes_of_one_id_the_one_that_subscribes_kept_the_queues() -> None:
    its = GroupSettings(message_model=BROADCASTING, subscriptions=("T",))
    config = Event(0, 0, events.TOPIC_CONFIG, topic="T", broker_name="a", read_queue_nums=1)
    joins = [
        Event(0, 1, events.CONSUMER_JOIN, client_id="x"),
        Event(0, 2, events.CONSUMER_JOIN, client_id="x", channel_id="2"),
        Event(0, 3, events.CONSUMER_JOIN, client_id="y", channel_id="2", subscriptions=()),
        Event(7, 4, events.CONSUMER_JOIN, client_id="y"),
    ]
    down = Event(14, 5, events.BROKER_DOWN, broker_name="a")
    codes = check(GroupHistory("c", "g", its, (config, *joins, down)))
    assert codes["NO_READABLE_QUEUE"] == 2


def test_what_a_proxied_process_popped_is_no_holding_once_it_divides_itself() -> None:
    config = Event(0, 0, events.TOPIC_CONFIG, topic="T", broker_name="a", read_queue_nums=1)
    proxied = Event(0, 1, events.CONSUMER_JOIN, client_id="x", rebalance_mode="PROXY")
    throws = "MACHINE_ROOM_NEARBY-AVG"
    itself = Event(7, 2, events.CONSUMER_JOIN, client_id="x", strategy=throws)
    its = GroupSettings(subscriptions=("T",), ordered=True)
    assert check(GroupHistory("c", "g", its, (config, proxied, itself)))["THROWS"] == 2
