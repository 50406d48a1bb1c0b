"""The verdict on groups whose members share queues."""

from collections.abc import Iterable

import pytest

from rebalance_core.audit.comparison import ComparisonResult, compare
from rebalance_core.audit.comparison_findings import comparison_findings
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.model.events import CONSUMER_LOST
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.verdicts import (
    DIFFERS,
    EQUAL,
    NO_DUMP,
    NOT_COVERED,
    SHARED,
    STALE_DUMP,
    SYSTEM,
    UNKNOWN,
    UNSTABLE,
)
from tests.unit.audit.sharing import BROKER, PROXY, listed_by, mode, status
from tests.unit.audit.snapshots import (
    Row,
    fact,
    join,
    leave,
    listed_at,
    ms,
    of_member,
    snapshot_of,
    topic,
    why_unknown,
    with_rows,
)

TWO = join("x"), join("y")
ALL = "a:-1 b:-1"
X_POPS, Y_POPS = status("x", 800, ALL, retry="a"), status("y", 801, ALL, retry="b")
TOPICS = topic(), topic(broker="b")


def popping(*facts: Row, share: int = 0) -> GroupSnapshot:
    """Two members that pop T of two brokers."""
    happened = (*TOPICS, *TWO, mode(f"POP(share_queue_num={share})"))
    return snapshot_of(*happened, settings=BROKER, facts=facts)


def differing(result: ComparisonResult) -> set[tuple[str, int, str | None]]:
    return {(d.queue.broker_name, d.queue.queue_id, d.live) for d in result.differences}


def test_what_clients_pop_is_what_they_may() -> None:
    group = popping(*X_POPS, *Y_POPS)
    result = compare(group)
    assert (result.verdict, result.reason, result.observations) == (SHARED, "", 2)
    assert list(comparison_findings(group, result)) == []
    assert result.unasked == ()


def test_a_client_that_pops_too_few() -> None:
    result = compare(popping(*X_POPS, *status("y", 801, "a:-1", retry="b")))
    assert result.verdict == DIFFERS
    assert differing(result) == {("b", -1, None)}
    (one,) = result.differences
    assert (one.predicted, one.asked) == (frozenset("xy"), "y")


def test_a_client_that_pulls_what_it_should_pop() -> None:
    """It was restarted with clientRebalance = true, and no file says so."""
    pulled = " ".join(f"b:{number}" for number in range(4))
    group = popping(*X_POPS, *status("y", 801, "", pulled, retry="b"))
    assert compare(group).verdict == DIFFERS
    assert ("a", -1, None) in differing(compare(group))
    summaries = [one.summary for _, one in comparison_findings(group, compare(group))]
    assert any("b:0: predicted x, y, live y" in text for text in summaries)


def test_the_same_queues_by_another_way() -> None:
    three = [join("x"), join("y"), join("z")]
    group = snapshot_of(
        topic(read=3),
        mode("POP(share_queue_num=1)", at=1),
        *three,
        settings=BROKER,
        facts=[*status("y", 800, "a:2", "a:1"), *status("x", 800, "a:0 a:1", retry="a")],
    )
    (one,) = compare(group).differences
    assert (one.queue.queue_id, one.note) == (1, "it is pulled, not popped")


def test_shares_of_two_neighbours() -> None:
    group = snapshot_of(
        topic(),
        join("x"),
        join("y"),
        join("z"),
        mode("POP(share_queue_num=1)"),
        settings=BROKER,
        facts=[*status("x", 800, "a:0 a:1 a:2", retry="a"), *status("z", 801, "a:3 a:0 a:1")],
    )
    assert compare(group).verdict == SHARED


def test_progress_alone_shows_that_no_member_pulls_and_not_who_pops() -> None:
    rows = [
        fact("DUMP", 800, command="consumerProgress"),
        *(
            fact(
                "QUEUE_PROGRESS",
                800,
                topic="T",
                broker_name=b,
                queue_id=n,
                with_clients=True,
                client_ip="",
            )
            for b in "ab"
            for n in range(4)
        ),
    ]
    result = compare(popping(*rows))
    assert (result.verdict, result.reason, result.observations) == (UNKNOWN, NO_DUMP, 8)
    assert compare(popping()).reason == NO_DUMP
    rows[1]["details"]["client_ip"] = "10.9.9.9"
    assert compare(popping(*rows, *status("x", 801, ALL, retry="a"))).verdict == DIFFERS


def test_a_member_that_did_not_tell_its_mode_may_pull() -> None:
    """The mode of the group is that of those who told it."""
    rows = [
        fact("DUMP", 800, command="consumerProgress"),
        *(
            fact(
                "QUEUE_PROGRESS",
                800,
                topic="T",
                broker_name=b,
                queue_id=n,
                with_clients=True,
                client_ip="y" if b == "a" else "",
            )
            for b in "ab"
            for n in range(4)
        ),
    ]
    result = compare(popping(*rows, *X_POPS))
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "whether y pops or pulls" in why_unknown(result)
    assert compare(popping(*rows, *X_POPS, *Y_POPS)).verdict == DIFFERS


def test_a_topic_that_no_member_pops_may_have_been_switched_back() -> None:
    """Brokers log no change of a mode; who was asked pulls, others were not asked."""
    group = popping(
        *status("y", 801, "", " ".join(f"b:{number}" for number in range(4)), retry="b")
    )
    result = compare(group)
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "whether T was popped or pulled" in why_unknown(result)
    group = snapshot_of(*TOPICS, *TWO, settings=BROKER, facts=[*X_POPS, *Y_POPS])
    assert compare(group).verdict == UNKNOWN


def test_one_who_pulls_beside_the_others_holds_its_share_over_all() -> None:
    happened = (*TOPICS, *TWO, join("z", rebalance_mode="CLIENT"), mode())
    held = " ".join(f"b:{number}" for number in (2, 3))
    facts = [*X_POPS, *status("z", 801, "", held)]
    assert compare(snapshot_of(*happened, settings=BROKER, facts=facts)).verdict == SHARED


def test_a_change_of_mode_just_before_the_dump() -> None:
    happened = (*TOPICS, *TWO, mode(), mode("PULL", at=795))
    group = snapshot_of(*happened, settings=BROKER, facts=X_POPS)
    assert compare(group).verdict == UNSTABLE
    pulled = " ".join(f"a:{number}" for number in range(4))
    group = snapshot_of(*happened, settings=BROKER, facts=status("x", 900, "", pulled, retry="a"))
    assert compare(group).verdict == EQUAL


def test_dropped_queues_are_not_popped() -> None:
    rows = [*X_POPS, *Y_POPS]
    gone = fact(
        "POP_QUEUE", 800, topic="T", broker_name="a", queue_id=3, client_id="x", dropped=True
    )
    assert compare(popping(*rows, gone)).verdict == SHARED


def proxied(*lists: Row, members: Iterable[Row] = (), until: float = 1000) -> GroupSnapshot:
    """Two gRPC clients, x and y; brokers list nobody."""
    none = [fact("GROUP_AT_BROKER", 799, broker_name=broker, members=0) for broker in "ab"]
    asked = [fact("DUMP", 799, broker_name=broker, command="consumerConnection") for broker in "ab"]
    facts = [*none, *asked, *lists]
    return snapshot_of(*TOPICS, *TWO, settings=PROXY, facts=facts, members=members, until=until)


def test_members_that_a_proxy_lists_are_those_predicted() -> None:
    result = compare(proxied(*listed_by("proxy-1", 800, "x", "y")))
    assert (result.verdict, result.observations, result.unasked) == (SHARED, 2, ())


def test_two_proxies_and_one_of_them_does_not_know_all_yet() -> None:
    lists = [*listed_by("proxy-1", 800, "x"), *listed_by("proxy-2", 801, "y", "x")]
    assert compare(proxied(*lists)).verdict == SHARED


def test_a_member_of_an_earlier_list_is_not_missing_in_the_last() -> None:
    """Nobody asks again for one who left; the older list is not part of the last round."""
    lists = [*listed_by("proxy-1", 300, "x", "y", "z"), *listed_by("proxy-1", 700, "x", "y")]
    happened = (*TOPICS, *TWO, join("z", at=295), leave("z", 500))
    result = compare(snapshot_of(*happened, settings=PROXY, facts=lists))
    assert (result.verdict, result.last_round_ms) == (SHARED, ms(700))


@pytest.mark.parametrize(("listed", "client"), [(["x"], "y"), (["x", "y", "z"], "z")])
def test_a_member_too_few_or_too_many(listed: list[str], client: str) -> None:
    group = proxied(*listed_by("proxy-1", 800, *listed))
    result = compare(group)
    assert result.verdict == DIFFERS
    assert {d.asked for d in result.differences} == {client}
    assert {(d.queue.broker_name, d.queue.queue_id) for d in result.differences} == {
        ("a", -1),
        ("b", -1),
    }


def test_a_proxy_that_lists_no_member() -> None:
    assert compare(proxied(*listed_by("proxy-1", 800))).verdict == DIFFERS


def test_brokers_alone_were_asked() -> None:
    result = compare(proxied())
    assert (result.verdict, result.reason) == (UNKNOWN, NO_DUMP)


def test_a_list_of_proxies_in_local_mode() -> None:
    assert compare(proxied(members=listed_at("a", 800, "x", "y"))).verdict == SHARED


def test_an_old_list_and_a_list_while_a_member_leaves() -> None:
    old = proxied(*listed_by("proxy-1", 800, "x", "y"), until=90_000)
    assert compare(old).reason == STALE_DUMP
    happened = (*TOPICS, *TWO, leave("y", 799))
    group = snapshot_of(*happened, settings=PROXY, facts=listed_by("proxy-1", 800, "x", "y"))
    assert compare(group).verdict == UNSTABLE


def test_grpc_clients_beside_others() -> None:
    """A list of the proxy does not have the member at the brokers, whom consumerStatus shows."""
    happened = (*TOPICS, join("x", rebalance_mode="PROXY"), join("y"), mode())
    facts = [*Y_POPS, *listed_by("proxy-1", 800, "x")]
    lists = [*listed_at("a", 800, "y"), *listed_at("b", 800, "y")]
    group = snapshot_of(*happened, settings=BROKER, facts=facts, members=lists)
    assert compare(group).verdict == SHARED
    facts = [*Y_POPS, *listed_by("proxy-1", 800, "other")]
    group = snapshot_of(*happened, settings=BROKER, facts=facts, members=lists)
    assert {d.asked for d in compare(group).differences} == {"x"}


def test_a_strategy_that_is_not_known_concerns_no_grpc_client() -> None:
    unknown = [{"rule_id": "INGEST_STRATEGY_UNKNOWN"}]
    group = proxied(*listed_by("proxy-1", 800, "x", "y"))
    group = with_rows(group, findings=unknown)
    assert compare(group).verdict == SHARED


def test_a_system_group_is_not_audited() -> None:
    """Two proxies of one host are two members with one id; that is how proxies are."""
    twins = [join("10.0.0.1@DEFAULT", channel=f"c{n}", message_model="BROADCASTING") for n in "12"]
    lost = of_member(CONSUMER_LOST, "10.0.0.1@DEFAULT", 500, channel="c2")
    group = snapshot_of(topic(), *twins, lost, settings=GroupSettings(message_model="BROADCASTING"))
    group = GroupSnapshot("c", "CID_DefaultHeartBeatSyncerTopic", group.run, group.tables)
    judged = run_rules(group)
    assert judged["findings"] == []
    (row,) = judged["group_verdicts"]
    assert (row["verdict"], row["reason"], row["unasked"]) == (UNKNOWN, SYSTEM, [])
