"""Explanations of queues that members share, word by word, on small groups."""

from typing import Any

import pytest

from rebalance_core.cli.explain_text import render_explanation
from rebalance_core.explain.answer import Explanation, Sharers, Taker
from rebalance_core.explain.explainer import Explainer
from rebalance_core.explain.view import GroupRows
from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue
from tests.unit.explain.ledgers import group_rows
from tests.unit.replay.histories import GROUP, event, history, join, ledger, queue, topic

WXYZ = [join(0, name) for name in "wxyz"]
LATE_MS = 10**6
BROKER_A = MessageQueue("T", "a", -1)


def pop(share: int, at_ms: int = 0) -> Event:
    return event(at_ms, "REQUEST_MODE", topic="T", detail=f"POP(share_queue_num={share})")


def explained(
    *events: Event, of: str | MessageQueue = "a0", at_ms: int = LATE_MS, **settings: Any
) -> Explanation:
    given = {"rebalance_mode": "BROKER"} | settings
    rows = group_rows(ledger(history(*events, **given)), GROUP)
    found = Explainer(rows).explain(queue(of) if isinstance(of, str) else of, at_ms)
    assert found.agrees
    return found


def sharing(found: Explanation) -> Sharers:
    assert found.sharing is not None
    assert found.holders == ()
    return found.sharing


def takers(found: Explanation) -> dict[str, Taker]:
    return {taker.client_id: taker for taker in sharing(found).takers}


def lines(taker: Taker) -> tuple[str, ...]:
    assert taker.reason.formula is not None
    return taker.reason.formula.lines


def test_the_share_that_has_the_queue_and_how_far_on_it_is() -> None:
    found = explained(topic(0, 4), topic(0, 4, broker="b"), pop(1), *WXYZ, of="b1")
    own, next_on = takers(found)["y"], takers(found)["x"]
    assert takers(found).keys() == {"x", "y"}
    assert (own.reason.code, next_on.reason.code) == ("POP", "POP")
    assert next_on.reason.text == "POP: it pops its own share under AVG and those of the next 1"
    assert lines(own)[1] == "this queue is in its own share"
    assert lines(next_on)[:2] == (
        "cidAll 4 <= mqAll 8: its own share and those of the next 1 of cidAll",
        "this queue is in the share of [2] y, 1 after its own place, [1]",
    )
    assert lines(next_on)[-1] == "mqAll[4] to mqAll[5]; this queue is mqAll[5]"
    shared = sharing(found)
    assert (shared.pops, shared.behind_proxy, shared.share_queue_num) == (True, False, 1)
    assert shared.figures == {
        "clients": 4,
        "queues": 8,
        "min_clients_per_queue": 2,
        "max_clients_per_queue": 2,
        "min_queues_per_client": 4,
        "max_queues_per_client": 4,
        "unreached": 0,
    }
    assert found.after.mq_all[5] == "T/b/1"
    assert found.after.client_indexes == (1, 2)


def test_neighbours_are_counted_around_the_end() -> None:
    found = explained(topic(0, 4), pop(2), *WXYZ, of="a0")
    assert {client_id: lines(taker)[1] for client_id, taker in takers(found).items()} == {
        "w": "this queue is in its own share",
        "y": "this queue is in the share of [0] w, 2 after its own place, [2]",
        "z": "this queue is in the share of [0] w, 1 after its own place, [3]",
    }


def test_the_slices_of_avg_by_circle() -> None:
    found = explained(topic(0, 5), pop(1), *WXYZ, of="a4", strategy="AVG_BY_CIRCLE")
    assert lines(takers(found)["z"])[2].endswith("4 % 4 = 0; the index is 0")
    assert sharing(found).strategies == ("AVG_BY_CIRCLE",)


def test_more_clients_than_queues() -> None:
    found = explained(topic(0, 3), pop(2), *WXYZ, of="a0")
    assert takers(found).keys() == {"w", "z"}
    assert lines(takers(found)["z"]) == (
        "cidAll 4 > mqAll 3: one queue each",
        "index % mqAll = 3 % 3 = 0; this queue is mqAll[0]",
    )
    assert (sharing(found).share_queue_num, sharing(found).share_queue_nums) == (2, "2")


@pytest.mark.parametrize("share", [-1, 0, 3])
@pytest.mark.parametrize("of", ["a1", BROKER_A])
def test_everything_for_everybody(share: int, of: str | MessageQueue) -> None:
    found = explained(topic(0, 2), topic(0, 1, broker="b"), pop(share), *WXYZ, of=of)
    assert takers(found).keys() == set("wxyz")
    assert {taker.entries for taker in takers(found).values()} == {("T/a/-1",)}
    assert (sharing(found).share_queue_num, sharing(found).share_queue_nums) == (share, str(share))
    assert found.after.mq_all == ("T/a/0", "T/a/1", "T/b/0")
    assert found.notes == ()


def test_with_one_broker_the_number_states_which_queues_there_are() -> None:
    found = explained(topic(0, 3), pop(0), *WXYZ, of="a2")
    assert found.after.mq_all == ("T/a/0", "T/a/1", "T/a/2")
    with pytest.raises(KeyError):
        explained(topic(0, 3), pop(0), *WXYZ, of="a3")


def test_a_queue_that_no_broker_can_have_is_refused() -> None:
    given = (topic(0, 2), topic(0, 1, broker="b"), pop(0), *WXYZ)
    assert takers(explained(*given, of="b0"))
    for unknown in ("b1", "b2", "c0"):
        with pytest.raises(KeyError):
            explained(*given, of=unknown)


def test_a_whole_broker_of_which_clients_pop_some_queues() -> None:
    found = explained(topic(0, 4), topic(0, 4, broker="b"), pop(1), *WXYZ, of=BROKER_A)
    assert {client_id: taker.entries for client_id, taker in takers(found).items()} == {
        "w": ("T/a/0", "T/a/1", "T/a/2", "T/a/3"),
        "x": ("T/a/2", "T/a/3"),
        "z": ("T/a/0", "T/a/1"),
    }


def test_who_pulls_among_those_who_pop() -> None:
    given = (topic(0, 4), pop(0), join(0, "w", rebalance_mode="CLIENT"), *WXYZ[1:])
    found = explained(*given, of="a0")
    puller = takers(found)["w"]
    assert (puller.pulls, puller.reason.code) == (True, "COMPUTED")
    assert puller.reason.text.startswith(
        "AVG assigns it to this client; it pulls queues that others pop"
    )
    assert lines(puller)[-1] == "mqAll[0] to mqAll[0]; this queue is mqAll[0]"
    assert [taker.pulls for taker in takers(found).values()].count(True) == 1
    assert found.notes[0].startswith("w pulls while others pop: both commit to the same offset")
    assert found.notes[0] not in explained(*given, of="a1").notes


def test_behind_a_proxy() -> None:
    found = explained(topic(0, 2), *WXYZ[:2], rebalance_mode="PROXY")
    assert {taker.reason.code for taker in takers(found).values()} == {"PROXY"}
    shared = sharing(found)
    assert (shared.pops, shared.behind_proxy, shared.share_queue_nums) == (False, True, None)
    in_order = explained(topic(0, 2), *WXYZ[:2], rebalance_mode="PROXY", ordered=True)
    assert {taker.reason.code for taker in takers(in_order).values()} == {"PROXY_FIFO"}


@pytest.mark.parametrize(
    ("language", "topics", "waits"),
    [
        (None, "T", "with 1 client with one call at a time up to 40 s while no messages arrive"),
        (
            "JAVA",
            "T",
            "(2 empty receives of 20 s, a proxy's longest; half of the messages at most 0",
        ),
        ("GO", "T", "up to 40 s"),
        (
            "GO",
            "TU",
            "how long is a matter of chance, as clients select topics at random and the queues of",
        ),
        ("PYTHON", "T", "select topics in turn and queues at random (empty receives of 20 s"),
        ("NODE_JS", "T", "up to 20 s"),
        ("NODE_JS", "TU", "and 2 topics each up to 60 s"),
    ],
)
def test_how_long_messages_wait_for_a_receive(
    language: str | None, topics: str, waits: str
) -> None:
    routes = [topic(0, 2, t, b) for t in topics for b in "ab"]
    of = join(0, "x", *topics, language=language)
    text = render_explanation(explained(*routes, of, rebalance_mode="PROXY"))
    assert waits in " ".join(text.split())
    note = "each divides by its own language's rules"
    mixed = explained(*routes, of, join(0, "y", *topics), rebalance_mode="PROXY")
    assert note not in render_explanation(mixed)


def test_a_suspended_member_keeps_what_it_pulled() -> None:
    found = explained(
        topic(0, 2), *WXYZ[:2], event(500, "CONSUMER_SUSPEND", "w"), pop(0, 9_000), of="a0"
    )
    assert takers(found)["w"].reason.code == "SUSPENDED"
    assert takers(found)["x"].reason.code == "POP"
    assert sharing(found).takers_before == ("w",)
    assert (sharing(found).since_epoch, sharing(found).since_ms) == (2, 9_000)


def test_what_no_member_takes_from() -> None:
    given = (topic(0, 4), pop(1), *WXYZ[:2], join(0, "y", "U"), join(0, "z", "U"))
    found = explained(*given, of="a3")
    assert takers(found) == {}
    assert found.no_owner is not None
    assert found.no_owner.code == "NOT_SUBSCRIBED"
    assert found.no_owner.text.startswith("it is in the share of z, which does not take it")
    twins = (join(0, "x", channel_id="1"), join(0, "x", channel_id="2"), *WXYZ[2:])
    repeated = explained(topic(0, 4), pop(1), *twins, of="a1").no_owner
    assert repeated is not None
    assert (repeated.code, repeated.client_id) == ("DUPLICATE_ID", "x")


def test_since_when_each_client_reaches_it() -> None:
    found = explained(topic(0, 4), pop(0), *WXYZ[:2], join(9_000, "y"), of="a0")
    assert [(t.client_id, t.from_epoch, t.from_ms) for t in sharing(found).takers] == [
        ("w", 0, 0),
        ("x", 0, 0),
        ("y", 1, 9_000),
    ]
    assert sharing(found).takers_before == ("w", "x")


def test_before_and_after_the_mode_it_is_explained_as_owned() -> None:
    given = (
        topic(0, 4),
        *WXYZ[:2],
        pop(0, 9_000),
        event(60_000, "REQUEST_MODE", topic="T", detail="PULL"),
    )
    for at_ms in (0, LATE_MS):
        found = explained(*given, at_ms=at_ms)
        assert found.sharing is None
        assert [holder.client_id for holder in found.holders] == ["w"]
    assert sharing(explained(*given, at_ms=9_000)).takers_before == ("w",)


def test_rows_that_are_wrong_are_reported() -> None:
    tables = ledger(history(topic(0, 4), pop(1), *WXYZ, rebalance_mode="BROKER"))
    wrong = [row for row in tables["pop_reach"] if (row["client_id"], row["queue_id"]) != ("x", 2)]
    rows = group_rows(tables | {"pop_reach": wrong}, GROUP)
    found = Explainer(rows).explain(queue("a1"), LATE_MS)
    assert not found.agrees
    assert sharing(found).differs == ("x",)
    assert "THE LEDGER DIFFERS" in render_explanation(found)


def test_the_text() -> None:
    given = (topic(0, 4), topic(0, 4, broker="b"), pop(1), *WXYZ)
    text = render_explanation(explained(*given, of="b1"))
    assert "  2 clients may take from it; no client owns it alone" in text
    assert "How the topic is shared: POP, share_queue_num 1, AVG, since " in text
    assert "clients per queue: 2; queues per client: 4; queues without a client: 0" in text
    assert "Why x ([1] of cidAll), since " in text
    everybody = render_explanation(explained(topic(0, 2), topic(0, 2, broker="b"), pop(0), *WXYZ))
    assert "Why these 4 clients" in everybody
    assert "mqAll now: 4" in everybody.split("cidAll now")[1].split("Why")[0]


def test_rows_of_an_older_ledger_are_explained_as_before() -> None:
    tables = ledger(history(topic(0, 4), *WXYZ))
    names = ("epochs", "ownership", "memberships", "diffs", "pull_starts")
    given: Any = (tables[name] for name in names)
    old = GroupRows(*given)
    assert Explainer(old).explain(queue("a1"), LATE_MS).holders[0].client_id == "x"
