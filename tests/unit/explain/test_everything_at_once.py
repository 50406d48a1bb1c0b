"""CONFIG lists, proxies, POP, lost masters and several processes of one id in one group."""

from collections.abc import Iterable
from typing import Any

import pytest

from rebalance_core.explain.answer import Explanation
from rebalance_core.explain.explainer import Explainer
from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue
from tests.unit.explain.ledgers import group_rows
from tests.unit.explain.test_random_groups import check
from tests.unit.replay.histories import GROUP, event, history, join, ledger, queue, topic

LATE_MS = 10**6
ELSEWHERE = "CONFIG(queues=T/a/3|T/n/7)"


def pop(share: int, at_ms: int = 0) -> Event:
    return event(at_ms, "REQUEST_MODE", topic="T", detail=f"POP(share_queue_num={share})")


def explained(*events: Event, of: str = "a0", at_ms: int = LATE_MS, **settings: Any) -> Explanation:
    """The answer about one queue, after all answers about the history were found right."""
    given = history(*events, **settings)
    check(given)
    return Explainer(group_rows(ledger(given), GROUP)).explain(queue(of), at_ms)


def joined(name: str) -> Event:
    return join(0, name, "T", "U")


def reasons(found: Explanation) -> dict[str, str]:
    assert found.sharing is not None
    return {taker.client_id: taker.reason.code for taker in found.sharing.takers}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("strategy", ["AVG", "CONFIG(queues=)"])
def test_a_list_with_queues_that_do_not_exist_beside_a_proxy(ordered: bool, strategy: str) -> None:
    given = (
        topic(0, 1, broker="b"),
        join(0, "x", strategy=ELSEWHERE),
        join(0, "y", strategy=strategy, rebalance_mode="PROXY"),
    )
    found = explained(*given, of="b0", ordered=ordered)
    assert reasons(found) == {"y": "PROXY_FIFO" if ordered else "PROXY"}
    assert found.after.mq_all == ("T/b/0",)
    assert reasons(explained(*given, of="a3", ordered=ordered)) == {"x": "CONFIG"}
    assert reasons(explained(*given, of="n7", ordered=ordered)) == {"x": "CONFIG"}


def test_a_list_with_queues_that_do_not_exist_beside_pop_in_a_frozen_epoch() -> None:
    given = (
        topic(0, 1, broker="b"),
        pop(2),
        join(0, "x", strategy=ELSEWHERE, rebalance_mode="CLIENT"),
        join(0, "y", "T", "U"),  # U has no queue
    )
    found = explained(*given, of="b0", rebalance_mode="BROKER")
    assert (found.event.status, found.after.mq_all) == ("FROZEN", ("T/b/0",))
    assert reasons(found) == {"y": "POP"}


def test_a_list_with_a_queue_that_does_exist_is_worked_out_by_the_figures() -> None:
    given = (
        topic(0, 2),
        topic(0, 1, broker="b"),
        join(0, "x", strategy="CONFIG(queues=T/a/1|T/n/7)"),
        join(0, "y", rebalance_mode="PROXY"),
    )
    found = explained(*given, of="a1")
    assert reasons(found) == {"x": "CONFIG", "y": "PROXY"}
    assert found.after.mq_all == ("T/a/0", "T/a/1", "T/b/0")


def test_who_keeps_a_whole_broker_that_is_gone() -> None:
    rooms = "MACHINE_ROOM_NEARBY-AVG(client_rooms=x:r1, broker_rooms=a:r1)"
    given = (
        topic(0, 1),
        *(join(0, name, rebalance_mode="PROXY") for name in "xy"),
        event(50_000, "TOPIC_DELETED", topic="T"),
        join(90_000, "x", strategy=rooms, rebalance_mode="CLIENT"),  # throws: y has no room
        topic(200_000, 1, broker="b"),
    )
    found = explained(*given, of="b0")
    assert reasons(found) == {"y": "PROXY"}
    assert found.after.mq_all == ("T/b/0",)
    assert reasons(explained(*given, of="a-1")) == {"x": "THROWS"}


def test_who_was_suspended_while_no_member_shared_the_topic_still_has_what_it_popped() -> None:
    given = (
        topic(0, 1),
        join(0, "x", rebalance_mode="PROXY"),
        event(50_000, "CONSUMER_SUSPEND", "x"),
        event(60_000, "UNSUBSCRIBE", "x", topic="T"),
        join(70_000, "y", rebalance_mode="PROXY"),
    )
    assert reasons(explained(*given)) == {"x": "SUSPENDED", "y": "PROXY"}


def test_who_pulled_before_it_went_behind_a_proxy_has_it_still_when_it_comes_back() -> None:
    given = (
        topic(0, 1),
        join(0, "x"),
        join(133_000, "x", rebalance_mode="PROXY"),
        event(133_000, "BROKER_DOWN", broker_name="a"),  # so it gets no answer
        join(161_000, "x"),
    )
    found = explained(*given)
    assert [holder.client_id for holder in found.holders] == ["x"]
    assert found.holders[0].reason.code == "NO_READABLE_QUEUE"


def test_what_was_popped_before_a_suspension_is_not_pulled_after_it() -> None:
    given = (
        topic(0, 1),
        pop(0),
        join(0, "x", rebalance_mode="BROKER"),
        event(50_000, "CONSUMER_SUSPEND", "x"),
        join(60_000, "x"),  # asks no broker any more, and still pops
        join(60_000, "y", rebalance_mode="BROKER"),
        event(90_000, "REQUEST_MODE", topic="T", detail="PULL"),
    )
    assert [holder.client_id for holder in explained(*given).holders] == []


def test_a_process_that_pulls_beside_one_of_the_same_id_that_pops() -> None:
    given = (
        topic(0, 3),
        topic(0, 2, broker="b"),
        pop(2),
        *(join(0, name) for name in "yz"),
        join(0, "x", rebalance_mode="BROKER", strategy="AVG_BY_CIRCLE"),
        join(0, "x", channel_id="2"),
    )
    found = explained(*given, of="a2")
    assert reasons(found)["x"] == "POP"
    assert found.sharing is not None
    assert found.sharing.share_queue_num == 2


def test_share_numbers_that_one_client_alone_does_not_tell_apart() -> None:
    # z stands before two entries of x, whose shares are one and the same
    twins = (join(0, "x", channel_id="1"), join(0, "x", channel_id="2"))
    given = (topic(0, 8), pop(2), *twins, join(0, "y"), join(0, "z"))
    found = explained(*given, rebalance_mode="BROKER")
    assert found.sharing is not None
    assert found.sharing.share_queue_num == 2


def test_one_process_pops_a_queue_and_another_of_its_id_reaches_the_whole_broker() -> None:
    given = (
        topic(0, 1),
        pop(1),
        join(0, "x"),
        join(0, "y"),
        join(0, "x", channel_id="2", rebalance_mode="PROXY"),
    )
    assert reasons(explained(*given, rebalance_mode="BROKER")) == {"x": "POP", "y": "POP"}


@pytest.mark.parametrize("kind", ["PULL", "LITE_PULL"])
def test_pull_consumers_ask_no_broker_whatever_their_mode(kind: str) -> None:
    given = (
        topic(0, 1),
        join(0, "x", rebalance_mode="PROXY"),
        join(0, "y", strategy=ELSEWHERE.replace("T/a/3", "T/a/0")),
    )
    found = explained(*given, consumer_type=kind, rebalance_mode="BROKER")
    assert reasons(found) == {"x": "PROXY", "y": "CONFIG"}


@pytest.mark.parametrize("suspended", [("w", "x", "y", "z"), ("w", "x")])
def test_brokers_that_no_client_reaches_are_in_the_list(suspended: Iterable[str]) -> None:
    given = (
        *(join(0, name) for name in "wxyz"),
        *(event(1_000, "CONSUMER_SUSPEND", name) for name in suspended),
        pop(1, 2_000),
        topic(9_000, 2),
        topic(9_000, 2, broker="b"),
    )
    found = explained(*given, rebalance_mode="BROKER", of="a0")
    assert reasons(found) == ({} if "z" in suspended else {"z": "POP"})
    assert found.after.mq_all == ("T/a/0", "T/a/1", "T/b/0", "T/b/1")
    assert found.notes == ()


@pytest.mark.parametrize("model", ["BROADCASTING", "CLUSTERING"])
def test_which_of_two_processes_has_the_order_lock_is_open(model: str) -> None:
    down = event(77_000, "MASTER_DOWN", broker_name="b")
    twin = join(160_000, "x", channel_id="2")
    given = (topic(0, 1, "U", "b"), join(0, "x"), down, twin, join(210_000, "y", "T"))
    codes = check(
        history(
            *given,
            message_model=model,
            client_version="4.9",
            ordered=True,
            subscriptions=("T", "U"),
        )
    )
    assert codes["UNKNOWN"] == 0
    assert codes["NO_READABLE_QUEUE"] or codes["COMPUTED"] or codes[model]


def test_the_process_that_had_the_order_lock_may_be_the_one_that_left() -> None:
    given = (
        topic(0, 1),
        join(0, "x", message_model="BROADCASTING"),
        event(154_000, "MASTER_DOWN", broker_name="a"),
        join(161_000, "x", channel_id="2"),
        event(182_000, "CONSUMER_LEAVE", "x"),
    )
    found = explained(*given, ordered=True)
    assert found.holders == ()
    assert found.no_owner is not None
    assert found.no_owner.code == "NO_MASTER"


def test_the_number_of_queues_by_topic_states_which_topic_lost_its_own() -> None:
    given = (topic(0, 1), topic(0, 1, "U", "b"), join(0, "x"),
             event(28_000, "BROKER_DOWN", broker_name="a"), join(60_000, "y"))  # fmt: skip
    both: dict[str, Any] = {"subscriptions": ("T", "U"), "consumer_type": "LITE_PULL"}
    found = explained(*given, of="U/b0", **both)
    assert found.after.mq_all == ("U/b/0",)
    assert not any("several lists" in note for note in found.notes)


def test_one_text_that_is_two_strategies_by_client_version() -> None:
    ring = "CONSISTENT_HASH(virtual_nodes=3, platform_charset=GBK)"
    given = (topic(0, 1, broker="r1@b"), join(0, "x0", "U", version="4.9.7"),
             join(5_000, "😀z", "T", version="5.1"))  # fmt: skip
    assert check(history(*given, strategy=ring))["MIXED_STRATEGIES"] == 1
    found = Explainer(group_rows(ledger(history(*given, strategy=ring), retry=True), GROUP))
    nobody = found.explain(MessageQueue("%RETRY%g", "r1@b", 0), LATE_MS).no_owner
    assert nobody is not None
    assert f"{ring} assigns it to 😀z" in nobody.text
    assert "CONSISTENT_HASH(virtual_nodes=3) assigns it to x0" in nobody.text
