"""Explanations of small groups, word by word."""

from typing import Any

import pytest

from rebalance_core.cli.explain_text import render_explanation, start_lines
from rebalance_core.explain.answer import Explanation, PullStart
from rebalance_core.explain.explainer import Explainer
from rebalance_core.explain.view import GroupRows
from rebalance_core.model.errors import UsageError
from tests.unit.explain.ledgers import group_rows
from tests.unit.replay.histories import (
    GROUP,
    commit,
    event,
    history,
    join,
    leave,
    ledger,
    queue,
    seen,
    topic,
)


def explain(*events: Any, name: str = "a0", at_ms: int = 10**6, **settings: Any) -> Explanation:
    return Explainer(rows(*events, **settings)).explain(queue(name), at_ms)


def rows(*events: Any, **settings: Any) -> GroupRows:
    return group_rows(ledger(history(*events, **settings)), GROUP)


def reason(found: Explanation) -> tuple[str, str]:
    only = found.no_owner or found.holders[0].reason
    assert found.agrees
    return only.code, only.text


def lines(found: Explanation) -> tuple[str, ...]:
    only = found.no_owner or found.holders[0].reason
    assert only.formula is not None
    return only.formula.lines


def test_what_is_unknown_is_not_explained() -> None:
    with pytest.raises(UsageError, match="the subscriptions of y are unknown"):
        explain(topic(0, 4), join(1, "x", "T"), join(1, "y"), subscriptions=None)


def test_avg_with_its_numbers() -> None:
    found = explain(topic(0, 8), *(join(1, c) for c in "xyz"), name="a6")
    assert [holder.client_id for holder in found.holders] == ["z"]
    assert found.holders[0].reason.formula is not None
    assert found.holders[0].reason.formula.values == {
        "index": 2,
        "mqAll": 8,
        "cidAll": 3,
        "mod": 2,
        "averageSize": 2,
        "startIndex": 6,
        "range": 2,
        "queueIndex": 6,
    }
    assert lines(found)[2] == "startIndex = index * averageSize + mod = 2 * 2 + 2 = 6"


def test_avg_with_more_members_than_queues() -> None:
    found = explain(topic(0, 1), join(1, "x"), join(1, "y"))
    assert lines(found)[1] == "averageSize = 1, because mqAll 1 <= cidAll 2"


def test_circle() -> None:
    given = (topic(0, 8), *(join(1, c) for c in "xyz"))
    found = explain(*given, name="a5", strategy="AVG_BY_CIRCLE")
    assert lines(found)[0].endswith("5 % 3 = 2; the index is 2")


def test_consistent_hash_names_the_next_node() -> None:
    given = (topic(0, 8), *(join(1, c) for c in "xyz"))
    found = explain(*given, strategy="CONSISTENT_HASH(virtual_nodes=3)")
    owner = found.holders[0]
    assert owner.reason.formula is not None
    values: dict[str, Any] = {**owner.reason.formula.values}
    assert values["nodes"] == 9
    assert values["node"].startswith(f"{owner.client_id}-")
    assert values["wraps"] or values["queuePoint"] <= values["nodePoint"]


def test_a_machine_room_leaves_other_rooms_out() -> None:
    given = (topic(0, 2, broker="r1@a"), topic(0, 2, broker="b"), join(1, "x"))
    tables = group_rows(ledger(history(*given, strategy="MACHINE_ROOM(consumer_idcs=r1)")), GROUP)
    found = Explainer(tables).explain(queue("b0"), 5)
    assert reason(found)[0] == "LEFT_OUT"
    assert lines(found)[1] == "b is not: its queues have no owner"


@pytest.mark.parametrize(
    ("events", "code", "said"),
    [
        ((topic(0, 2), join(1, "x"), leave(2, "x")), "EMPTY", "no member"),
        ((topic(0, 2), join(1, "x"), join(1, "w", "U")), "NOT_SUBSCRIBED",
         "falls to w, which does not subscribe to T"),
        ((topic(0, 4), join(1, "x"), join(1, "x", channel_id="2"), join(1, "w"),
          event(2, "TOPIC_DELETED", topic="T"), topic(3, 6)), "COMPUTED", "AVG assigns it"),
        ((topic(0, 1), join(1, "x"), event(2, "CONSUMER_SUSPEND", "x"), join(3, "w"),
          event(4, "CONSUMER_SUSPEND", "w"), leave(5, "x")), "SUSPENDED", "is suspended"),
        ((topic(0, 2), join(1, "x", message_model="BROADCASTING")), "BROADCASTING", "every member"),
        ((topic(0, 1), join(1, "x"), event(2, "TOPIC_DELETED", topic="T")), "NO_READABLE_QUEUE",
         "T has no readable queue"),
        ((topic(0, 1), join(1, "x", strategy="CONFIG(queues=T/a/0)")), "CONFIG", "own list"),
        ((topic(0, 1), join(1, "x", strategy="CONFIG(queues=T/a/7)")), "LEFT_OUT",
         "no member has the queue"),
        ((topic(0, 1), join(1, "x"),
          join(2, "x", strategy="MACHINE_ROOM_NEARBY-AVG(room_separator=:)".replace(":", "!"))),
         "THROWS", "Machine room is null"),
    ],
)  # fmt: skip
def test_special_states(events: tuple[Any, ...], code: str, said: str) -> None:
    found = reason(explain(*events))
    assert found[0] == code
    assert said in found[1]


def test_the_second_share_of_a_duplicated_id_has_no_owner() -> None:
    duplicates = (join(1, "x"), join(1, "x", channel_id="2"), join(1, "y"))
    code, text = reason(explain(topic(0, 3), *duplicates, name="a1"))
    assert (code, "place 1 of cidAll, where x appears again" in text) == ("DUPLICATE_ID", True)
    first = explain(topic(0, 3), *duplicates, name="a0")
    assert first.holders[0].processes == 2
    assert "2 processes have this id" in first.holders[0].reason.text


def test_brokers_that_do_not_know_the_strategy() -> None:
    events = (topic(0, 8), join(1, "x"), join(2, "y", strategy="CONSISTENT_HASH"))
    found = explain(*events, rebalance_mode="BROKER", name="a7")
    assert reason(found)[0] == "BROKER_MODE"
    assert "BROKER, in which brokers allocate, explains" in found.notes[0]


def test_a_member_that_asks_no_broker_takes_its_share_by_any_strategy() -> None:
    events = (topic(0, 8), join(1, "x", version="4.9.7"), join(2, "y"))
    mode: dict[str, Any] = {"rebalance_mode": "BROKER", "strategy": "CONSISTENT_HASH"}
    found = [explain(*events, name=f"a{number}", **mode) for number in range(8)]
    assert {reason(one)[0] for one in found if one.holders} == {"COMPUTED"}
    assert {reason(one)[0] for one in found if not one.holders} == {"BROKER_MODE"}


def test_the_offset_rule_in_words() -> None:
    given = history(
        topic(0, 1),
        join(1, "x"),
        join(1_000, "a"),
        offsets=[seen("a0", 500, 0, 120)],
        commits=[commit("a0", 500, 100, "x")],
    )
    found = Explainer(group_rows(ledger(given), GROUP)).explain(queue("a0"), 2_000)
    text = render_explanation(found)
    assert "  a since 1970-01-01 00:00:01.000Z" in text
    assert "STORED: the group has committed on this queue" in text
    assert "last seen before the change: stored 100, minimum 0, maximum 120" in text
    assert "starts at 100" in text
    assert "some clients may not have followed yet" in text


def test_what_the_owner_before_has_read_is_not_skipped() -> None:
    numbers = {"start_offset": 11, "start_offset_low": 9, "start_offset_high": 11,
               "stored_offset": 9, "min_offset": 0, "max_offset": 11, "corrected_offset": None,
               "skipped": 2}  # fmt: skip
    handed_over = start_lines(PullStart("STORED", "OK", "", **numbers))[-1]
    assert handed_over.startswith(
        "skips nothing: the previous owner had read the 2 messages that follow the newest"
    )
    at_the_end = start_lines(PullStart("MAX_OFFSET", "OK", "", **numbers))[-1]
    assert at_the_end == "skips 2 messages after the last commit"


def test_a_long_list_is_cut_and_shows_what_matters() -> None:
    found = explain(topic(0, 500), *(join(1, f"c{i:03}") for i in range(100)), name="a250")
    text = render_explanation(found)
    assert "  > [250] T/a/250" in text
    assert "  > [50] c050" in text
    assert "    … and 213 more" in text
    assert text.count("] T/a/") == 40
    assert text.count("] c0") == 40


def test_a_ledger_that_differs_is_reported() -> None:
    good = rows(topic(0, 2), join(1, "x"), join(1, "y"))
    swapped: Any = [
        {**row, "client_id": {"x": "y", "y": "x"}[str(row["client_id"])]} for row in good.ownership
    ]
    bad = GroupRows(good.epochs, swapped, good.memberships, good.diffs, good.pull_starts)
    found = Explainer(bad).explain(queue("a0"), 5)
    assert not found.agrees
    assert found.expected == {"x": (1, 1)}
    assert "THE LEDGER DIFFERS" in render_explanation(found)


def test_an_event_that_left_the_queue_where_it_was() -> None:
    found = explain(topic(0, 2), join(1, "x"), join(2, "y"), name="a0")
    assert (found.event.epoch, found.holders[0].taken and found.holders[0].taken.epoch) == (1, 0)
    assert "the event did not move this queue" in render_explanation(found)


def test_a_strategy_that_rocketmq_lacks_is_not_worked_out() -> None:
    good = rows(topic(0, 2), join(1, "x"))
    other: Any = [{**row, "strategy": "STICKY_BALANCED"} for row in good.memberships]
    found = Explainer(
        GroupRows(good.epochs, good.ownership, other, good.diffs, good.pull_starts)
    ).explain(queue("a0"), 5)
    assert reason(found) == (
        "OTHER_STRATEGY",
        "STICKY_BALANCED is not a RocketMQ strategy, so explain cannot recompute it; name a custom "
        "strategy in [strategies] of the configuration",
    )


def test_without_a_master_no_member_gets_the_order_lock() -> None:
    given = (topic(0, 2), topic(0, 2, broker="b"), join(0, "x"),
             event(5, "MASTER_DOWN", broker_name="b"), join(9_000, "y"))  # fmt: skip
    found = explain(*given, name="b1", ordered=True)
    assert reason(found)[0] == "NO_MASTER"
    assert found.holders == ()
    assert explain(*given, name="b1").holders[0].client_id == "y"
    assert explain(*given, name="a0", ordered=True).holders[0].client_id == "x"


RING = "CONSISTENT_HASH(virtual_nodes=10)"


def mixed(name: str, **own: Any) -> Explanation:
    """A Java and a Go member, each on the ring of its own client."""
    members = join(1, "x"), join(1, "y", language="GO", **own)
    return explain(topic(0, 8), *members, name=name, strategy=RING)


def test_a_go_member_has_a_ring_of_its_own() -> None:
    found = mixed("a2")
    (holder,) = found.holders
    assert (holder.client_id, found.agrees) == ("y", True)
    assert holder.reason.text == "GO_CONSISTENT_HASH(virtual_nodes=10) assigns it to this client"
    assert lines(found)[0].startswith('queue: crc32("MessageQueue [topic=T,')
    assert found.notes == (
        "members are clients in GO and JAVA: each divides by its own language's rules",
    )


def test_a_queue_that_neither_ring_gives_to_its_own_client() -> None:
    found = mixed("a5")
    code, text = reason(found)
    assert code == "MIXED_STRATEGIES"
    assert f"{RING} assigns it to y" in text
    assert "GO_CONSISTENT_HASH(virtual_nodes=10) assigns it to x" in text


def test_of_a_client_that_sorts_as_its_host_does_it_is_unknown() -> None:
    with pytest.raises(UsageError, match=r"the queues that y \(DOTNET\) takes are unknown"):
        explain(topic(0, 8), join(1, "x"), join(1, "y", language="DOTNET"), name="a7")


def test_clients_that_sort_by_bytes() -> None:
    """U+FFFD comes before U+1F600 in UTF-8, after it in UTF-16."""
    ids = "\ufffd", "\U0001f600"
    for language, first in (("GO", ids[0]), ("JAVA", ids[1])):
        members = [join(1, one, language=language) for one in ids]
        found = explain(topic(0, 2), *members, name="a0")
        assert ([h.client_id for h in found.holders], found.agrees) == ([first], True)
        assert bool(found.notes) == (language == "GO")
