"""what_if of groups that pop and of groups behind proxies."""

from typing import Any

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.request_mode import RequestMode
from rebalance_core.planning import add_consumers, remove_consumers, set_request_mode, what_if
from rebalance_core.planning.what_if.allocation import PopFigures, redelivery_after_death
from tests.unit.replay.histories import event, join, replay, topic

IDS = ["w", "x", "y", "z"]
EIGHT = {"T": {"a": 4, "b": 4}}
ONE_MORE = {"T": "POP(share_queue_num=1)"}


def of_ledger(share: int, members: int, **settings: Any) -> PopFigures:
    """Figures of the replay's own pop_metrics."""
    tables = replay(
        topic(0, 4),
        topic(0, 4, broker="b"),
        event(0, "REQUEST_MODE", topic="T", detail=f"POP(share_queue_num={share})"),
        *(join(0, f"{n:02}") for n in range(members)),
        **settings,
    )
    (row,) = tables["pop_metrics"]
    return PopFigures(**{name: row[name] for name in PopFigures.__slots__})


@pytest.mark.parametrize("share", [-1, 0, 1, 2, 5])
@pytest.mark.parametrize("members", [1, 2, 4, 7, 11])
def test_figures_are_those_of_the_ledger(share: int, members: int) -> None:
    result = what_if(
        [f"{n:02}" for n in range(members)],
        EIGHT,
        "AVG",
        {},
        request_modes={"T": RequestMode(share)},
        rebalance_mode="BROKER",
    )
    assert result.before.pop == {"T": of_ledger(share, members, rebalance_mode="BROKER")}
    assert result.before.owners == {}
    assert result.before.idle == ()


def test_exclusive_and_shared_side_by_side() -> None:
    result = what_if(IDS, EIGHT, "AVG", set_request_mode("T", "POP(share_queue_num=1)", "BROKER"))
    assert (result.before.pop, result.before.redelivery) == ({}, None)
    assert result.after.pop["T"] == PopFigures(4, 8, 2, 2, 4, 4, 0)
    assert dict(result.after.reach) == dict.fromkeys(IDS, 4)
    assert result.amplification is None
    assert "share" in (result.movement.caveat or "")
    text = str(result)
    assert "T: clients per queue" in text
    assert "0 to 64 s" in text
    assert "4 shared" in text
    assert "(shared)" in text


def test_what_a_larger_share_number_buys() -> None:
    group: dict[str, Any] = {"request_modes": ONE_MORE, "rebalance_mode": "BROKER"}
    more = what_if(IDS, EIGHT, "AVG", {"request_modes": {"T": "POP(share_queue_num=2)"}}, **group)
    assert more.before.pop["T"].min_clients_per_queue == 2
    assert more.after.pop["T"].min_clients_per_queue == 3
    fewer = what_if(IDS, EIGHT, "AVG", remove_consumers(2), **group)
    assert fewer.after.pop["T"] == PopFigures(2, 8, 2, 2, 8, 8, 0)
    many = what_if(IDS, EIGHT, "AVG", add_consumers(6), **group)
    assert many.after.pop["T"] == PopFigures(10, 8, 1, 2, 1, 1, 0)
    assert many.after.idle == ()


def test_topics_that_are_not_popped_are_owned_as_ever() -> None:
    result = what_if(
        IDS, EIGHT | {"U": {"a": 4}}, "AVG", {}, request_modes=ONE_MORE, rebalance_mode="BROKER"
    )
    assert {queue.topic for queue in result.before.owners} == {"U"}
    assert dict(result.before.loads) == dict.fromkeys(IDS, 1)


def test_a_mode_that_no_member_asks_for() -> None:
    result = what_if(IDS, EIGHT, "AVG", set_request_mode("T", "POP(share_queue_num=1)"))
    assert result.after.owners == result.before.owners
    assert (result.after.pop, result.after.unused_modes) == ({}, ("T",))
    assert "POP has no effect because no member queries a broker: T" in str(result)


def test_brokers_know_only_two_strategies() -> None:
    result = what_if(
        IDS, EIGHT, "CONSISTENT_HASH", {}, request_modes=ONE_MORE, rebalance_mode="BROKER"
    )
    assert result.before.frozen_topics == {"T"}
    assert result.before.pop["T"].unreached == 8


def test_behind_a_proxy_everybody_reaches_everything() -> None:
    result = what_if(IDS, EIGHT, "AVG", add_consumers(1), rebalance_mode="PROXY")
    assert result.before.pop["T"] == PopFigures(4, 8, 4, 4, 8, 8, 0)
    assert result.after.pop["T"] == PopFigures(5, 8, 5, 5, 8, 8, 0)
    assert str(result.after.redelivery) == "110 to 194 s"
    for of_owners in ("readable queues", "most queues of one consumer", "moved", "strategy"):
        assert of_owners not in str(result).partition("shared queues")[0]


def test_what_a_death_costs() -> None:
    popped = redelivery_after_death("BROKER", invisible_time_s=20)
    assert (popped.from_s, popped.to_s) == (0, 24)
    # the pop recording: 7.8 to 11.4 s after a kill, invisible time 20 s
    assert popped.from_s <= 7.8 < 11.4 <= popped.to_s
    behind = redelivery_after_death("PROXY")
    # the grpc recording: 130 s in order, 160 to 165 s of a slow group
    assert behind.from_s <= 130 < 165 <= behind.to_s
    result = what_if(IDS, EIGHT, "AVG", {}, rebalance_mode="PROXY", invisible_time_s=15)
    assert result.before.redelivery == redelivery_after_death("PROXY", 15)


def test_changes_add_up() -> None:
    change = set_request_mode("T", "POP(share_queue_num=1)") | set_request_mode(
        "U", "PULL", "BROKER"
    )
    assert str(change) == "T: POP(share_queue_num=1), U: PULL, rebalance_mode BROKER"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"request_modes": {"T": "POP"}}, "valid: PULL, POP(share_queue_num=N)"),
        ({"request_modes": {"orders": "PULL"}}, "'orders' is not a topic of the group"),
        ({"request_modes": {"%RETRY%g": "POP(share_queue_num=1)"}}, "always pulled"),
        ({"request_modes": "POP"}, "expected topic -> request mode"),
        ({"rebalance_mode": "BROKERS"}, "did you mean BROKER?"),
        ({"invisible_time_s": 0}, "expected more than 0 seconds"),
    ],
)
def test_mistakes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        what_if(IDS, EIGHT, "AVG", {}, **given)
    assert said in str(raised.value)
    if "invisible_time_s" not in given:
        with pytest.raises(UsageError) as raised:
            what_if(IDS, EIGHT, "AVG", given)
        assert said in str(raised.value)


def test_orderly_members_ignore_pop_and_behind_a_proxy_reach_every_queue() -> None:
    change = {"add_consumers": 1}
    orderly = what_if(
        IDS, EIGHT, "AVG", change, request_modes=ONE_MORE, rebalance_mode="BROKER", ordered=True
    )
    assert orderly.after.unused_modes == ("T",)
    assert (orderly.after.pop, orderly.after.redelivery) == ({}, None)
    assert orderly.moves == what_if(IDS, EIGHT, "AVG", change).moves > 0
    fifo = what_if(IDS, EIGHT, "AVG", change, rebalance_mode="PROXY", ordered=True)
    clients = len(fifo.after.client_ids)
    assert fifo.after.pop["T"].min_clients_per_queue == clients == len(IDS) + 1
