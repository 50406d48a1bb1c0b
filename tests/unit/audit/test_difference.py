"""Differences of a group: each is judged as if it stood alone, though much is asked only once."""

import random

import pytest

from rebalance_core.audit.comparison import compare
from rebalance_core.audit.comparison_findings import comparison_findings
from rebalance_core.audit.difference import FOREIGN, STALE, UNEXPLAINED, Difference, classified
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.observations import ClientObservation, observations
from rebalance_core.audit.prediction import Prediction
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, CONSUMER_SUSPEND
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import EQUAL, LANGUAGE, UNKNOWN
from rebalance_core.protocol.mixed_group import MixedGroup
from rebalance_core.protocol.shares import MemberStrategy
from rebalance_core.strategies import allocate_group, parse_strategy
from tests.unit.audit.group_rows import A, B, progress, status
from tests.unit.audit.group_rows import snapshot as group_snapshot
from tests.unit.audit.sharing import listed_by
from tests.unit.audit.sharing import status as status_of
from tests.unit.audit.snapshots import (
    Row,
    commit,
    end,
    event,
    fact,
    join,
    leave,
    listed_at,
    ms,
    of_member,
    snapshot_of,
    topic,
)

CLIENTS = "10.0.0.1@1", "10.0.0.2@2", "10.0.0.3@3"
EVENTS = (
    *(topic(name, read=5) for name in ("T", "U")),
    *(join(client, "T", "U", at=10) for client in CLIENTS[:2]),
    join(CLIENTS[2], "T", "U", at=300),
    leave(CLIENTS[0], 600),
)
ROUNDS = 200, 201, 500, 900


def dumped(rng: random.Random) -> GroupSnapshot:
    """Four rounds of dumps in three epochs: each topic divided in its own way, some by chance."""
    ledger = Prediction(snapshot_of(*EVENTS))
    facts, listed = [], []
    for at in ROUNDS:
        source = f"dump{at}"
        facts.append(fact("DUMP", at, command="consumerProgress") | {"source": source})
        for name in ("T", "U"):
            present = [c for c in CLIENTS if ledger.held(c, facts[-1]["first_ms"])]
            queues = ledger.queues(name, facts[-1]["first_ms"])
            strategy = rng.choice(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
            owners = allocate_group(parse_strategy(strategy), queues, present)
            for queue in queues:
                holder = rng.choice(CLIENTS) if rng.random() < 0.1 else owners[queue][0]
                facts.append(
                    fact(
                        "QUEUE_PROGRESS",
                        at,
                        **queue._asdict(),
                        with_clients=True,
                        client_ip=holder.partition("@")[0],
                    )
                    | {"source": source}
                )
        listed += listed_at("a", at, *rng.sample(CLIENTS, 2))
    return snapshot_of(*EVENTS, facts=facts, members=listed)


@pytest.mark.parametrize("seed", range(8))
def test_every_difference_is_judged_as_if_it_stood_alone(seed: int) -> None:
    group = dumped(random.Random(seed))
    observed, ledger = observations(group), Prediction(group)
    together = compare(group).differences
    alone = [
        one
        for each in together
        for one in classified(
            [
                Difference(
                    each.queue, each.predicted, each.live, each.asked, each.at_ms, each.source
                )
            ],
            observed,
            group,
            ledger,
        )
    ]
    assert list(together) == alone, f"seed {seed}"


def test_the_random_groups_have_differences_of_several_classes_moments_and_topics() -> None:
    results = [compare(dumped(random.Random(seed))) for seed in range(8)]
    differences = [one for result in results for one in result.differences]
    assert {STALE, FOREIGN, UNEXPLAINED} <= {one.why for one in differences}
    assert len({one.at_ms for one in differences}) == len(ROUNDS)
    assert len({one.queue.topic for one in differences}) == 2


def test_observations_of_one_time_come_in_the_order_of_their_queues() -> None:
    facts = [*reversed(progress(5, *["10.0.0.1"] * 12)), *status(B, 5), *status(A, 5)]
    asked = [
        one.client_id if isinstance(one, ClientObservation) else one.queue.queue_id
        for one in observations(group_snapshot(*facts))
    ]
    assert asked == [A, B, *range(12)]


def test_a_stale_holder_is_reported_with_the_time_of_the_day() -> None:
    group = snapshot_of(
        *EVENTS,
        facts=[
            fact("DUMP", 500, command="consumerStatus", client_id=CLIENTS[1]),
            fact(
                "HELD_QUEUE",
                500,
                dropped=False,
                topic="T",
                broker_name="a",
                queue_id=4,
                client_id=CLIENTS[1],
            ),
        ],
    )
    notes = {one.note for one in compare(group).differences if one.live}
    assert notes == {f"{CLIENTS[1]} should have released it at 2026-11-18 11:11:40Z"}


def test_a_proxy_s_list_of_members_explains_what_a_client_behind_it_holds() -> None:
    x, y = CLIENTS[:2]
    held = [
        *listed_by("p1", 502, y),
        *(
            row
            for at, who in ((500, x), (501, y))
            for row in status_of(who, at, pulled="a:0 a:1 a:2 a:3", retry="a")
        ),
    ]
    group = snapshot_of(topic(), join(x), join(y), members=listed_at("a", 499, x), facts=held)
    found = {(one.asked, one.why, one.note) for one in compare(group).differences}
    assert found == {
        (x, STALE, f"a lists other members: {x}"),
        (y, STALE, f"p1 lists other members: {y}"),
    }


def test_queues_of_a_client_behind_a_proxy_show_no_holder() -> None:
    def shown(*lists: Row) -> GroupSnapshot:
        unheld = fact(
            "QUEUE_PROGRESS",
            500,
            topic="T",
            broker_name="a",
            queue_id=0,
            with_clients=True,
            client_ip="",
        )
        dump = fact("DUMP", 500, command="consumerProgress")
        return snapshot_of(topic(), join(CLIENTS[0]), facts=[dump, unheld, *lists])

    assert len(compare(shown()).differences) == 1
    assert compare(shown(*listed_by("p1", 502, CLIENTS[0]))).differences == ()


def owners_shown(at: float, of_a: str, of_b: str) -> list[Row]:
    """What consumerProgress -s shows: the last number of each holder's address, - for nobody."""
    rows = [fact("DUMP", at, command="consumerProgress")]
    for broker, holders in (("a", of_a), ("b", of_b)):
        for number, one in enumerate(holders):
            address = "" if one == "-" else f"10.0.0.{one}"
            shown: Row = {"with_clients": True, "client_ip": address}
            where: Row = {"topic": "T", "broker_name": broker, "queue_id": number}
            rows.append(fact("QUEUE_PROGRESS", at, **where, **shown))
    return rows


def back_at_400(shown: list[Row]) -> GroupSnapshot:
    """Broker b was away from 200 to 400 s; each of its queues has 600 messages unread."""
    both = join("10.0.0.1@1#1"), join("10.0.0.2@2#2")
    gone = event(BROKER_DOWN, 200, broker_name="b"), event(BROKER_UP, 400, broker_name="b")
    ends = [end(number, 700, broker="b") for number in range(4)]
    commits = [commit(number, 100, broker="b") for number in range(4)]
    events = topic(), topic(broker="b"), *both, *gone
    return snapshot_of(*events, facts=shown, ends=ends, commits=commits)


def test_members_that_divide_as_in_an_earlier_epoch() -> None:
    """rocketmq#9830: the broker is back, and its queues stay with nobody."""
    group = back_at_400(owners_shown(900, "1122", "----"))
    result = compare(group)
    assert {one.why for one in result.differences} == {STALE}
    ((rule, one),) = comparison_findings(group, result)
    assert rule.rule_id == "OWNERSHIP_DIFFERS_STALE_VIEW"
    down = f"as in the epoch of BROKER_DOWN, {utc(ms(200))} to {utc(ms(400))}"
    assert down in one.summary
    assert "no client holds b:0-3, 2,400 messages behind" in one.summary
    assert (one.evidence["unheld"], one.evidence["reason"]) == ("b:0-3", "unknown")
    assert "one at a time" in str(one.remedy)


def test_what_fits_no_earlier_epoch_or_leaves_no_queue_unheld() -> None:
    other = back_at_400(owners_shown(900, "1122", "--12"))
    assert {one.view for one in compare(other).differences} == {()}
    ((_, one),) = comparison_findings(other, compare(other))
    assert "no client holds b:0-1, 1,200 messages behind" in one.summary
    right = compare(back_at_400(owners_shown(900, "1111", "2222")))
    assert (right.verdict, right.differences) == (EQUAL, ())


def test_two_changes_of_the_route_within_a_poll_the_second_of_which_freezes() -> None:
    """Members may have seen both states or the last alone: either outcome is right."""
    client = "10.0.0.1@1#1"
    alone = topic(), topic(broker="b"), join(client)

    def closed(first: float, second: float, shown: list[Row]) -> set[str]:
        perms = topic(perm=2, at=first), topic(broker="b", perm=2, at=second)
        found = compare(snapshot_of(*alone, *perms, facts=shown)).differences
        queues = [one.queue for one in found if one.queue.topic == "T"]
        return {f"{queue.broker_name}:{queue.queue_id}" for queue in queues}

    kept, gave_up = owners_shown(900, "1111", "1111"), owners_shown(900, "----", "1111")
    asked = status_of(client, 900, pulled=" ".join(f"{b}:{n}" for b in "ab" for n in range(4)))
    assert closed(100, 103, kept) == closed(100, 103, gave_up) == set()
    assert closed(100, 103, asked) == set()
    assert closed(100, 160, kept) == {"a:0", "a:1", "a:2", "a:3"}
    assert closed(100, 160, gave_up) == set()
    # what nobody could have seen stays a difference
    assert closed(100, 103, owners_shown(900, "1111", "----")) == {"b:0", "b:1", "b:2", "b:3"}


@pytest.mark.parametrize(("returned", "cause"), [(850, "BROKER_UP"), (600, "")])
def test_a_client_that_did_not_take_a_returned_broker_s_queues_is_late_for_now(
    returned: float, cause: str
) -> None:
    """Its answer alone tells that it lacks them; nobody else's was dumped."""
    events = (
        topic(read=2),
        topic(broker="b", read=2),
        join(CLIENTS[0]),
        event(BROKER_DOWN, 500, broker_name="b"),
        event(BROKER_UP, returned, broker_name="b"),
    )
    group = snapshot_of(*events, facts=status_of(CLIENTS[0], 930, pulled="a:0 a:1", retry="a b"))
    (found,) = compare(group).differences[:1]
    assert (found.why == STALE, found.cause.partition(" ")[0]) == (bool(cause), cause)


RING = "CONSISTENT_HASH(virtual_nodes=10)"
OF_LANGUAGES = {CLIENTS[0]: "JAVA", CLIENTS[1]: "GO", CLIENTS[2]: "JAVA"}


def shown_of(text: str, clients: tuple[str, ...], stated: str, *more: Row) -> GroupSnapshot:
    """Java and Go members that are said to divide by a strategy, and hold what another text or
    shorter list of members gives each by its own client.
    """
    events = (
        topic(read=8),
        *(join(one, language=its, strategy=stated) for one, its in OF_LANGUAGES.items()),
    )
    queues = Prediction(snapshot_of(*events)).queues("T", ms(900))
    members = [MemberStrategy(one, text, OF_LANGUAGES[one]) for one in clients]
    owners = MixedGroup(dict.fromkeys(members), clients, queues).owners
    dump = [fact("DUMP", 500, command="consumerProgress")]
    dump += [
        fact(
            "QUEUE_PROGRESS",
            500,
            **queue._asdict(),
            with_clients=True,
            client_ip=holders[0].partition("@")[0] if holders else "",
        )
        for queue, holders in owners.items()
    ]
    return snapshot_of(*events, facts=dump, members=more)


def test_another_strategy_is_reported_where_each_divides_by_its_own_form_of_it() -> None:
    found = compare(shown_of("CONSISTENT_HASH", CLIENTS, "AVG")).differences
    assert {(one.why, one.note) for one in found} == {
        (FOREIGN, "the live owners of T match CONSISTENT_HASH")
    }


def test_another_list_of_members_is_reported_where_each_divides_by_its_own_form() -> None:
    listed = listed_at("a", 499, *CLIENTS[:2])
    found = compare(shown_of(RING, CLIENTS[:2], RING, *listed)).differences
    assert found
    assert {one.why for one in found} == {STALE}
    assert {one.note.partition(":")[0] for one in found} == {"a lists other members"}


@pytest.mark.parametrize(("language", "verdict"), [("CPP", UNKNOWN), ("NODE", UNKNOWN),
                                                   ("RUST", UNKNOWN), ("GO", EQUAL)])  # fmt: skip
def test_what_is_held_of_a_closed_topic_is_compared_where_that_was_run(
    language: str, verdict: str
) -> None:
    client = CLIENTS[0]
    held = (
        status_of(client, 500, retry="a")
        if verdict == EQUAL
        else status_of(client, 500, pulled="a:0 a:1 a:2 a:3", retry="a")
    )
    events = topic(), join(client, language=language), topic(perm=2, at=100)
    result = compare(snapshot_of(*events, facts=held))
    assert (result.verdict, result.reason) == (verdict, LANGUAGE if verdict == UNKNOWN else "")
    assert result.differences == ()


@pytest.mark.parametrize(("suspended", "why"), [(30, "SUSPENDED"), (90, UNEXPLAINED)])
def test_a_retry_queue_that_a_member_never_took_as_it_was_suspended(
    suspended: float, why: str
) -> None:
    """A member learns of its retry topic up to 53 s after it joins."""
    paused = of_member(CONSUMER_SUSPEND, CLIENTS[0], suspended)
    facts = status_of(CLIENTS[0], 900, pulled="a:0")
    group = snapshot_of(topic(read=1), join(CLIENTS[0], at=10), paused, facts=facts)
    (one,) = compare(group).differences
    assert (one.queue.topic, one.why) == ("%RETRY%g", why)
    assert ("has been suspended since" in one.note) is (why == "SUSPENDED")
