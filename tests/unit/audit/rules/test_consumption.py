"""Queues that a member holds and does not read, or reads too slowly."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from rebalance_core.audit.confidence import borne_out
from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.dumps import expired_messages
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.night import ENDED_BY
from rebalance_core.audit.progress import deleted_unread, progress_of
from rebalance_core.audit.rules import rules_by_id
from rebalance_core.model.group_settings import BROADCASTING, GroupSettings
from rebalance_core.model.times import utc
from tests.unit.audit.snapshots import (
    Row,
    broker_logs,
    commit,
    end,
    fact,
    findings_of,
    join,
    leave,
    ms,
    of_unknown_strategy,
    severities,
    snapshot_of,
    topic,
    with_rows,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MessagesOfAnyExpiredFact

STILL, FALLS, NEVER = "COMMIT_STANDS_STILL", "FALLS_BEHIND", "NEVER_COMMITTED"
TWO = topic(read=2), join("x")
OTHER = [commit(1, 50, at=100), commit(1, 300, at=900)], [end(1, 60, at=100), end(1, 300, at=900)]
"""Commits and ends of queue 1, which is read."""


def held(
    commits: list[Row], ends: list[Row], *happened: Any, other: bool = True, **more: Any
) -> GroupSnapshot:
    """Queue 0 with these observations beside queue 1, which is read."""
    commits, ends = commits + OTHER[0] * other, ends + OTHER[1] * other
    return snapshot_of(*TWO, *happened, commits=commits, ends=ends, **more)


def stuck(**more: Any) -> GroupSnapshot:
    commits = [commit(0, 40, at=100), commit(0, 70, at=300), commit(0, 70, at=900)]
    return held(commits, [end(0, 40, at=100), end(0, 90, at=400), end(0, 290, at=900)], **more)


def test_a_commit_that_does_not_move_while_messages_come_is_found() -> None:
    group = stuck()
    (one,) = findings_of(STILL, group)
    assert severities(STILL, group) == ["WARNING"]
    assert "The commit of 1 queue has not moved since" in one.summary
    assert "220 messages unread in T a:0 at 70" in one.summary
    assert (one.client_id, one.first_ms) == ("x", 1_795_000_300_000)
    assert progress_of(group).word == "STANDS_STILL"


def test_it_is_an_error_if_every_queue_that_gets_messages_stands_still() -> None:
    ends = [end(0, 90, at=400), end(0, 290, at=900)]
    group = held([commit(0, 70, at=300), commit(0, 70, at=900)], ends, other=False)
    assert severities(STILL, group) == ["ERROR"]


@pytest.mark.parametrize(
    ("ends", "stores_ms", "severity"),
    [
        # the other queue was never committed, whether or not it received messages
        ([end(1, 60, at=100), end(1, 300, at=900)], ms(900), "ERROR"),
        ([end(1, 60, at=100)], ms(900), "ERROR"),
        # no store shows that it was not
        ([end(1, 60, at=100), end(1, 300, at=900)], ms(100), "WARNING"),
        # or it is read
        (OTHER[1], ms(900), "WARNING"),
    ],
)
def test_a_queue_that_was_never_committed_makes_no_progress_either(
    ends: list[Row], stores_ms: int, severity: str
) -> None:
    commits = [commit(0, 70, at=300), commit(0, 70, at=900)]
    commits += OTHER[0] if ends is OTHER[1] else []
    group = held(commits, [end(0, 90, at=400), end(0, 290, at=900), *ends], other=False)
    run = replace(group.run, offsets_ms={"a": ms(0)}, offsets_until_ms={"a": stores_ms})
    group = replace(group, run=run)
    assert severities(STILL, group) == [severity]
    (one,) = findings_of(STILL, group)
    assert "The commit of 1 queue has not moved" in one.summary, "queue 1 is not named with it"


def test_queues_that_stand_still_since_different_times() -> None:
    commits = [commit(0, 70, at=300), commit(0, 70, at=900), commit(1, 50, at=600)]
    ends = [end(0, 90, at=400), end(0, 290, at=900), end(1, 60, at=650), end(1, 300, at=900)]
    (one,) = findings_of(STILL, held([*commits, commit(1, 50, at=900)], ends, other=False))
    since, last = utc(1_795_000_300_000), utc(1_795_000_600_000)
    assert f"has not moved since {since} (the last of them since {last})" in one.summary
    assert one.first_ms == 1_795_000_300_000


@pytest.mark.parametrize(
    ("commits", "ends"),
    [
        # the commit was at the end shortly before
        ([(70, 300), (70, 900)], [(70, 880), (290, 900)]),
        # seen once
        ([(70, 900)], [(90, 400), (290, 900)]),
        # it moved in between
        ([(70, 300), (80, 600), (80, 650)], [(90, 400), (290, 900)]),
        # two minutes have not passed
        ([(70, 800), (70, 900)], [(90, 750), (290, 900)]),
        # a fast group: the difference flickers, and is negative at times
        ([(70, 300), (200, 600), (290, 900)], [(65, 300), (210, 600), (285, 900)]),
        # the end is older than the standstill
        ([(70, 300), (70, 900)], [(60, 100), (70, 290)]),
    ],
)
def test_what_moves_or_has_nothing_to_read_does_not_stand_still(
    commits: list[tuple[int, int]], ends: list[tuple[int, int]]
) -> None:
    group = held(
        [commit(0, offset, at=at) for offset, at in commits],
        [end(0, offset, at=at) for offset, at in ends],
    )
    assert findings_of(STILL, group) == []
    assert progress_of(group).word == "MOVES"


def test_a_commit_below_an_earlier_one_may_be_of_an_old_copy() -> None:
    commits = [commit(0, offset, at=at) for offset, at in ((70, 100), (200, 200), (70, 300))]
    ends = [end(0, 90, at=100), end(0, 290, at=900)]
    group = held([*commits, commit(0, 70, at=900)], ends)
    assert findings_of(STILL, group) == findings_of(FALLS, group) == []
    assert progress_of(group).word == "UNKNOWN"
    fell, _ = group.tables["queue_progress"]
    assert (fell["queue_id"], fell["reason"]) == (0, "COMMIT_FELL")


def test_without_a_member_no_queue_is_held() -> None:
    commits = [commit(0, 70, at=300), commit(0, 70, at=900)]
    ends = [end(0, 90, at=400), end(0, 290, at=900)]
    group = snapshot_of(*TWO, leave("x", 200), commits=commits, ends=ends)
    assert findings_of(STILL, group) == []
    assert progress_of(group).word == "STANDS_STILL"


def test_mqadmin_alone_shows_it_by_two_answers() -> None:
    rows = [
        fact(
            "QUEUE_PROGRESS",
            at,
            topic="T",
            broker_name="a",
            queue_id=0,
            broker_offset=high,
            consumer_offset=70,
            names_cut="false",
            with_clients="true",
        )
        for at, high in ((300, 90), (900, 290))
    ]
    (one,) = findings_of(STILL, held([], [], facts=rows))
    assert "220 messages unread" in one.summary
    # mqadmin prints 0 where nothing was committed
    for row in rows:
        row["details"]["consumer_offset"] = "0"
    assert findings_of(STILL, held([], [], facts=rows)) == []


def failed(address: str, at: float = 400, until: float = 890, **more: Any) -> Row:
    details = {"request": "PULL", "reason": "CODE 1: no permission", "address": address}
    return fact("REQUEST_FAILED", at, until, 30, log="app", **(details | more))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (failed("1.1.1.1:1"), "pulls fail"),
        (failed("1.1.1.1:1", client_id="x"), "pulls fail"),
        (failed("9.9.9.9:1"), "not the address of any broker"),
        (failed(""), "pulls fail"),
        # of another broker, client or request, or before it
        (failed("2.2.2.2:1"), "unknown"),
        (failed("1.1.1.1:1", client_id="y"), "unknown"),
        (failed("1.1.1.1:1", request="COMMIT"), "unknown"),
        (failed("1.1.1.1:1", at=100, until=200), "unknown"),
    ],
)
def test_pulls_that_fail_are_the_cause_of_their_broker_s_queues(row: Row, reason: str) -> None:
    group = stuck(facts=[row])
    run = replace(group.run, addresses={"1.1.1.1:1": "a", "2.2.2.2:1": "b"})
    (one,) = findings_of(STILL, replace(group, run=run))
    assert one.evidence["reason"] == reason
    assert ("CODE 1: no permission (client's log)" in one.summary) == (reason != "unknown")
    assert ("keeps asking 9.9.9.9:1" in (one.remedy or "")) == (
        reason == "not the address of any broker"
    )


def test_an_offset_that_the_broker_lacks_is_the_cause_of_its_queue() -> None:
    where = {"topic": "T", "broker_name": "a", "queue_id": 0}
    illegal = fact("OFFSET_ILLEGAL", 400, 890, 7, asked="92", given="70", log="app", **where)
    (one,) = findings_of(STILL, stuck(facts=[illegal]))
    assert "lacks offset 92 and redirects the client to 70 (7 times, client's log)" in one.summary


def lacking(*asked: int, until: float = 890, broker: str = "a") -> Row:
    lowest, highest = min(asked), max(asked)
    details = {"sent_to": "0", "lowest_asked": str(lowest), "highest_asked": str(highest)}
    place = {"topic": "T", "broker_name": broker}
    return fact("OFFSET_NOT_CORRECTED", 310, until, 10, **place, **details)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (lacking(70), "slave lacks the offset"),
        (lacking(12, 4711), "slave may lack the offset"),
        (lacking(70, 71), "slave may lack the offset"),
        (lacking(71), "unknown"),
        (lacking(70, until=299), "unknown"),
        (lacking(70, broker="b"), "unknown"),
    ],
)
def test_a_slave_that_lacks_the_offset_is_the_cause(row: Row, reason: str) -> None:
    (one,) = findings_of(STILL, stuck(facts=[row]))
    assert one.evidence["reason"] == reason
    assert ("the replica with id 0" in one.summary) == (reason != "unknown")
    offsets = row["details"]["lowest_asked"], row["details"]["highest_asked"]
    of_any_queue = "lacks offsets of the topic's queues from {} to {}, maybe that offset"
    assert (of_any_queue.format(*offsets) in one.summary) == reason.startswith("slave may")


def test_what_a_slave_may_lack_is_the_last_cause_and_no_warning() -> None:
    may_lack = lacking(12, 4711)
    for other, reason in ((expired(85), "consumeTimeout"), (held_back(890, "COUNT"), "slow")):
        (one,) = findings_of(STILL, stuck(facts=[may_lack, other]))
        assert str(one.evidence["reason"]).startswith(reason)
    commits = [commit(0, 10, at=100), commit(0, 110, at=900)]
    ends = [end(0, 20, at=100), end(0, 820, at=900)]
    for row, severity in ((may_lack, "INFO"), (lacking(110), "WARNING")):
        assert severities(FALLS, held(commits, ends, facts=[row])) == [severity]


def expired(highest: int, at: float = 890, kind: str = "MESSAGES_EXPIRED", **more: Any) -> Row:
    details = {"lowest": "70", "highest": str(highest), "log": "app", "address": "10.0.0.1:10911"}
    place = {"topic": "T", "broker_name": None, "queue_id": 0, "client_id": "x"} | more
    return fact(kind, 310, at, 3, **place, **details)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (expired(85), "consumeTimeout"),
        (expired(70, client_id=None), "consumeTimeout"),
        (expired(85, client_id="y"), "unknown"),
        (expired(85, queue_id=1), "unknown"),
        (expired(85, at=299), "unknown"),
        # below the commit, or above the end: of the retry topic
        (expired(69), "unknown"),
        (expired(9_000), "unknown"),
    ],
)
def test_messages_beyond_consume_timeout_are_the_cause_of_their_queue(
    row: Row, reason: str
) -> None:
    (one,) = findings_of(STILL, stuck(facts=[row]))
    assert one.evidence["reason"] == reason


def test_what_a_listener_has_of_queue_0_may_be_retries() -> None:
    (one,) = findings_of(STILL, stuck(facts=[expired(85)]))
    assert "consumeTimeout (those of queue 0 may be retries), and the client" in one.summary
    stands = [commit(1, 70, at=at) for at in (300, 900)]
    ends = [end(1, n, at=at) for at, n in ((100, 40), (400, 90), (900, 290))]
    of_1 = expired(85, queue_id=1)
    (one,) = findings_of(STILL, snapshot_of(*TWO, commits=stands, ends=ends, facts=[of_1]))
    assert "for longer than consumeTimeout, and the client sent" in one.summary
    stands += [commit(1, 5, at=900, name="%RETRY%g")]
    (one,) = findings_of(STILL, snapshot_of(*TWO, commits=stands, ends=ends, facts=[of_1]))
    assert "(those of queue 1 may be retries)" in one.summary


@pytest.mark.parametrize(("broker", "reason"), [("a", "consumeTimeout"), ("b", "unknown")])
def test_a_line_without_a_group_is_a_cause_of_the_queue_at_its_address(
    broker: str, reason: str
) -> None:
    group = stuck()
    row = expired(85, kind="MESSAGES_OF_ANY_EXPIRED", client_id=None)
    run = replace(
        group.run,
        addresses={"10.0.0.1:10911": broker},
        expired={("T", 0): [expired_messages(cast("MessagesOfAnyExpiredFact", row))]},
    )
    (one,) = findings_of(STILL, replace(group, run=run))
    assert one.evidence["reason"] == reason
    assert ("clients/app, whose line names no group" in one.summary) == (broker == "a")


def test_what_files_show_of_the_cause_is_named() -> None:
    (one,) = findings_of(STILL, stuck())
    assert "no file shows why" in one.summary
    config = fact("GROUP_CONFIG", 800, 1000, broker_name="a", consume_enable="false")
    (one,) = findings_of(STILL, stuck(facts=[config]))
    assert "the group is disabled at a (consumeEnable=false)" in one.summary
    assert one.evidence["reason"] == "disabled"
    assert "updateSubGroup" in (one.remedy or "")
    answer: dict[str, Any] = {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": "x"}
    cached = fact("HELD_QUEUE", 890, **answer, commit_offset="70", cached_messages="25")
    (one,) = findings_of(STILL, stuck(facts=[cached]))
    assert "T a:0 at 70; the client has messages from the commit on in its cache" in one.summary
    blocked = fact("STUCK_QUEUE", 890, **answer, trouble="consume", count="268139")
    (one,) = findings_of(STILL, stuck(facts=[blocked]))
    assert one.evidence["reason"] == "unfinished message"
    before = fact("STUCK_QUEUE", 200, **answer, trouble="consume", count="68139")
    (one,) = findings_of(STILL, stuck(facts=[before]))
    assert one.evidence["reason"] == "unknown"
    finished = fact("HELD_QUEUE", 890, **answer, commit_offset="70", cached_messages="0")
    (one,) = findings_of(STILL, stuck(facts=[finished]))
    assert "no file shows why" in one.summary
    members = [row | {"suspended": True} for row in stuck().tables["memberships"]]
    (one,) = findings_of(STILL, with_rows(stuck(), memberships=members))
    assert "x is suspended" in one.summary


def test_a_group_that_reads_less_than_comes_falls_behind() -> None:
    commits = [commit(0, 10, at=100), commit(0, 110, at=900)]
    group = held(commits, [end(0, 20, at=100), end(0, 820, at=900)])
    (one,) = findings_of(FALLS, group)
    assert severities(FALLS, group) == ["INFO"]
    assert "receives 1 messages a second and the group reads 0.125" in one.summary
    assert "710 messages unread, up from at most 10 at 2026" in one.summary
    assert progress_of(group).word == "FALLS_BEHIND"
    group = held([commit(0, 20, at=100), *commits[1:]], [end(0, 20, at=100), end(0, 820, at=900)])
    (one,) = findings_of(FALLS, group)
    assert "710 messages unread, up from none at 2026" in one.summary


def falling(
    read: dict[int, float], *members: Any, queues: int = 4, come: float = 1, **own: Any
) -> Any:
    """Return the finding of a group whose queues receive ``come`` a second, and are read at these
    rates.

    Args:
        read: Messages per second of each queue.
        members: Ids of the group's members.
        queues: Of the topic.
        come: Messages per second that each queue receives.
        own: Fields of the members' joins.
    """
    commits, ends = list[Row](), list[Row]()
    for queue_id in range(queues):
        offsets = (10, 10 + round(read[queue_id] * 1000))
        commits += [commit(queue_id, n, at=at) for n, at in zip(offsets, (100, 1100), strict=True)]
        ends += [end(queue_id, 10, at=100), end(queue_id, 10 + round(come * 1000), at=1100)]
    happened = topic(read=queues), *(join(name, **own) for name in members)
    (one,) = findings_of(FALLS, snapshot_of(*happened, commits=commits, ends=ends))
    return one


def test_the_moment_of_an_answer_is_no_cause_while_the_commit_moves() -> None:
    """A slow listener has always messages in its cache, the first of which is at its commit."""
    answer: dict[str, Any] = {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": "x"}
    dump = fact("HELD_QUEUE", 1490, **answer, commit_offset="400", cached_messages="25")
    full = fact("FLOW_CONTROLLED", 700, 1490, 20, **answer, log="app", reason="COUNT")
    ends = [end(0, 40, at=100), end(0, 3000, at=1495)]
    for last, reason in ((1440, "slow listener"), (1300, "unfinished message")):
        commits = [commit(0, 40, at=100), commit(0, 300, at=700), commit(0, 400, at=last)]
        group = held([*commits, commit(0, 400, at=1500)], ends, facts=[dump, full])
        (one,) = findings_of(FALLS, group)
        assert one.evidence["reason"] == reason


def test_a_group_that_falls_behind_states_how_many_members_would_do() -> None:
    # each reads 0.8 a second, and a queue gets 0.4
    one = falling(dict.fromkeys(range(4), 0.2), "x", come=0.4)
    goes_on = "if each goes on like that, "
    assert f"Its member reads 0.8 a second; {goes_on}2 members keep up, without" in one.summary
    assert "(4 queues allow at most 4)" in one.summary
    assert one.evidence["members_needed"] == 2
    assert one.remedy is None
    two = falling(dict.fromkeys(range(4), 0.4), "x", "y", come=0.8)
    assert f"Each of 2 reads 0.8 a second; {goes_on}4 members keep up" in two.summary


@pytest.mark.parametrize(
    ("strategy", "stated"),
    [
        ("AVG", True),
        ("AVG_BY_CIRCLE", True),
        ("CONSISTENT_HASH", False),  # one of two members gets 3 or 4 of 4 queues
    ],
)
def test_how_many_would_do_is_stated_where_queues_are_divided_evenly(
    strategy: str, *, stated: bool
) -> None:
    one = falling(dict.fromkeys(range(4), 0.2), "x", come=0.4, strategy=strategy)
    assert ("members keep up" in one.summary) == stated
    assert ("members_needed" in one.evidence) == stated


def test_how_many_would_do_is_not_stated_of_shared_queues_or_an_unknown_strategy() -> None:
    commits = [commit(n, o, at=at) for n in range(4) for at, o in ((100, 10), (1100, 210))]
    ends = [end(n, o, at=at) for n in range(4) for at, o in ((100, 10), (1100, 410))]
    group = snapshot_of(topic(), join("x"), commits=commits, ends=ends)
    assert "members_needed" in next(iter(findings_of(FALLS, group))).evidence
    pops = [row | {"rebalance_mode": "BROKER"} for row in group.tables["memberships"]]
    for other in (with_rows(group, memberships=pops), of_unknown_strategy(group)):
        (one,) = findings_of(FALLS, other)
        assert "members_needed" not in one.evidence


def test_no_number_of_members_reads_a_queue_faster_than_a_single_one() -> None:
    one = falling(dict.fromkeys(range(4), 0.2), "x")
    assert "not even a member for each of 4 queues keeps up" in one.summary
    assert one.evidence["members_needed"] == "more than queues"
    assert (one.remedy or "").startswith("Make the listener faster")


def test_where_a_single_member_is_slow_more_members_are_no_answer() -> None:
    one = falling({0: 0.2, 1: 0.2, 2: 1, 3: 1}, "x", "y")
    assert "Only 1 of 2 members falls behind." in one.summary
    assert "members_needed" not in one.evidence


def test_how_many_would_do_is_not_stated_where_another_cause_is_shown() -> None:
    commits = [commit(0, 10, at=100), commit(0, 110, at=900)]
    group = held(commits, [end(0, 20, at=100), end(0, 820, at=900)], facts=[failed("10.0.0.1:1")])
    (one,) = findings_of(FALLS, group)
    assert "no permission" in one.summary
    assert "members" not in one.evidence


@pytest.mark.parametrize(
    ("kept_s", "severity", "said"),
    [
        # 1 - 0.125 of each second: the age of 800 s reaches 1,000 s after 229 s
        (1_000, "WARNING", ms(900 + 200 / 0.875)),
        (200_000, "INFO", ms(900 + 199_200 / 0.875)),
    ],
)
def test_a_group_that_loses_messages_within_a_day_is_a_warning(
    kept_s: int, severity: str, said: float
) -> None:
    commits = [commit(0, 10, at=100), commit(0, 110, at=900)]
    group = held(commits, [end(0, 20, at=100), end(0, 820, at=900)])
    progress = [
        row | {"expires_ms": ms(100 + kept_s)} if row["queue_id"] == 0 else row
        for row in group.tables["queue_progress"]
    ]
    group = with_rows(group, queue_progress=progress)
    assert severities(FALLS, group) == [severity]
    (one,) = findings_of(FALLS, group)
    assert f"brokers delete messages unread from {utc(round(said))} on" in one.summary


@pytest.mark.parametrize(
    ("commits", "ends"),
    [
        # as much comes as is read
        ([(10, 100), (810, 900)], [(20, 100), (820, 900)]),
        # for less than ten minutes
        ([(10, 500), (110, 900)], [(20, 500), (820, 900)]),
        # not more than comes in a minute
        ([(10, 100), (765, 900)], [(20, 100), (820, 900)]),
        # the commit was seen long before the end
        ([(10, 100), (110, 200)], [(20, 100), (820, 900)]),
    ],
)
def test_a_burst_or_a_bound_is_not_behind(
    commits: list[tuple[int, int]], ends: list[tuple[int, int]]
) -> None:
    group = held(
        [commit(0, offset, at=at) for offset, at in commits],
        [end(0, offset, at=at) for offset, at in ends],
    )
    assert findings_of(FALLS, group) == []


def test_a_member_that_never_commits_is_named() -> None:
    group = held([], [end(0, 20, at=100), end(0, 820, at=900)])
    (one,) = findings_of(NEVER, group)
    assert "Members have held 1 queue since" in one.summary
    assert "T a:0" in one.summary
    # nothing came since, or another file has a commit
    assert findings_of(NEVER, held([], [end(0, 820, at=100), end(0, 820, at=900)])) == []
    assert findings_of(NEVER, held([commit(0, 1)], [end(0, 20, at=100), end(0, 820)])) == []


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ([(20, 300), (820, 900)], True),
        # they came within the time of a commit, perhaps just before the last look
        ([(20, 300), (820, 400)], False),
        ([(820, 300), (820, 900)], False),
        ([(820, 900)], False),
    ],
)
def test_ends_that_grow_after_the_join_show_that_messages_came(
    ends: list[tuple[int, int]], *, found: bool
) -> None:
    group = held([], [end(0, high, at=at) for high, at in ends])
    assert [one.first_ms for one in findings_of(NEVER, group)] == [ms(10)] * found


@pytest.mark.parametrize(
    ("ends", "stored", "answered", "found"),
    [
        ([(20, 100), (820, 900)], 920, None, True),
        # a single one may have come just before the store was copied
        ([(20, 100), (21, 900)], 920, None, True),
        ([(20, 100), (21, 900)], 899, None, False),
        ([(20, 100), (22, 900)], 899, None, True),
        # they came after it
        ([(20, 300), (820, 900)], 200, None, False),
        # the same by an answer that has no commit
        ([(20, 100), (820, 900)], 200, 906, True),
        ([(20, 100), (21, 900)], 200, 904, False),
        ([(20, 100), (820, 900)], 200, 800, False),
        # some came before
        ([(20, 100), (420, 600), (820, 900)], 700, None, True),
    ],
)
def test_messages_that_came_after_the_files_without_a_commit_do_not_count(
    ends: list[tuple[int, int]], stored: int, answered: int | None, *, found: bool
) -> None:
    queue: dict[str, Any] = {"topic": "T", "broker_name": "a", "queue_id": 0}
    answer: dict[str, Any] = {
        "broker_offset": "820",
        "consumer_offset": "0",
        "client_ip": "10.0.0.1",
    }
    facts = [] if answered is None else [fact("QUEUE_PROGRESS", answered, **queue, **answer)]
    seen = [end(0, high, at=at) for high, at in ends]
    group = held([], seen, facts=facts, other=False)
    run = replace(group.run, offsets_ms={"a": ms(0)}, offsets_until_ms={"a": ms(stored)})
    assert bool(findings_of(NEVER, replace(group, run=run))) is found


def test_the_time_since_which_the_last_queue_is_held_is_stated() -> None:
    ends = [end(n, high, at=at) for n in range(2) for at, high in ((100, 20), (1500, 820))]
    group = held([], ends, join("y", at=600), other=False)
    since = {row["from_ms"] for row in group.owned if row["topic"] == "T"}
    first, last = utc(min(since)), utc(max(since))
    (one,) = findings_of(NEVER, group)
    assert f"have held 2 queues since {first} (the last of them since {last}) and" in one.summary


def test_a_group_with_a_queue_that_was_never_committed_is_not_idle() -> None:
    ends = [end(0, 20, at=100), end(0, 820, at=900), end(1, 70, at=900)]
    group = held([commit(1, 70, at=900)], ends, other=False)
    assert findings_of(NEVER, group) != []
    assert progress_of(group) == ("UNKNOWN", "NO_COMMIT")
    # nor where the others move
    assert progress_of(held([], ends[:2])) == ("UNKNOWN", "NO_COMMIT")


def test_who_never_commits_is_not_known_where_ids_were_rewritten() -> None:
    """By the order of the ids as written another queue would be held."""
    group = held([], [end(0, 20, at=100), end(0, 820, at=900)], join("y"))
    assert NEVER in {row["rule_id"] for row in run_rules(group)["findings"]}
    hashed = replace(group, run=replace(group.run, ids_hashed=True))
    assert NEVER not in {row["rule_id"] for row in run_rules(hashed)["findings"]}


def test_members_of_a_broadcasting_group_keep_their_offsets_themselves() -> None:
    settings = GroupSettings(message_model=BROADCASTING)
    group = stuck(settings=settings)
    for rule in (STILL, FALLS, NEVER):
        assert findings_of(rule, group) == []
    assert progress_of(group) == ("UNKNOWN", "BROADCASTING")


def test_progress_of_a_group_without_movement() -> None:
    idle = held([commit(0, 70, at=900)], [end(0, 70, at=900)], other=False)
    assert progress_of(idle).word == "IDLE"
    # what is unread stays, and the end has not grown: nothing shows that messages came
    for ends in ([end(0, 70, at=400), end(0, 70, at=900)], [end(0, 70, at=900)]):
        unchanged = held([commit(0, 60, at=300), commit(0, 60, at=900)], ends)
        assert findings_of(STILL, unchanged) == []
        assert progress_of(unchanged) == ("UNKNOWN", "UNCHANGED")
    seen_once = held([commit(0, 60, at=900)], [end(0, 70, at=900)], other=False)
    assert progress_of(seen_once) == ("UNKNOWN", "SEEN_ONCE")
    assert progress_of(held([], [end(0, 70)], other=False)) == ("UNKNOWN", "NO_COMMIT")
    assert progress_of(held([commit(0, 60)], [], other=False)) == ("UNKNOWN", "NO_END")
    apart = held([commit(0, 60, at=100)], [end(0, 70, at=900)], other=False)
    assert progress_of(apart) == ("UNKNOWN", "READ_APART")


@pytest.mark.parametrize(
    ("ends", "progress"),
    [
        # nothing shows whether messages wait at the commit that stays, though others move
        ([], ("UNKNOWN", "NO_END")),
        ([end(0, 0, at=50)], ("UNKNOWN", "END_BELOW_COMMIT")),
        # nothing was unread when the end was seen
        ([end(0, 70, at=900)], ("MOVES", "")),
    ],
)
def test_a_commit_that_stays_without_an_end_may_stand_still(
    ends: list[Row], progress: tuple[str, str]
) -> None:
    group = held([commit(0, 60, at=100), commit(0, 70, at=300), commit(0, 70, at=900)], ends)
    assert progress_of(group) == progress


def test_a_commit_on_a_queue_that_no_member_holds_does_not_hide_that_others_move() -> None:
    """The commits of a topic that the group no longer subscribes stay in the store."""
    left = [commit(0, 60, at=100, name="Left"), commit(0, 60, at=900, name="Left")]
    group = held([*left, commit(0, 60, at=300), commit(0, 70, at=900)], [end(0, 70, at=900)])
    assert progress_of(group).word == "MOVES"


def test_a_queue_whose_commit_moved_is_not_idle_although_its_end_was_seen_once() -> None:
    ends = [end(0, 40, at=100), end(0, 90, at=400), end(0, 290, at=900), end(1, 60, at=100)]
    commits = [commit(0, 70, at=300), commit(0, 70, at=900), *OTHER[0]]
    assert severities(STILL, held(commits, ends, other=False)) == ["WARNING"]


def test_where_the_log_ends_before_the_dumps_the_member_may_be_gone() -> None:
    """Its commits stand still because it is dead, and no file has its end."""
    logs = broker_logs(a=[LogSpan(ms(0), ms(500), from_start=True)])
    group = stuck()
    run = replace(group.run, coverage=Coverage(logs, known=True))
    (one,) = borne_out(
        rules_by_id()[STILL], replace(group, run=run), findings_of(STILL, group), "EQUAL"
    )
    assert one.severity == "INFO"
    assert "not_covered" in one.evidence


def test_one_cause_is_one_finding_whatever_the_offsets() -> None:
    """Of a client whose listener hangs, each queue stands at an offset of its own."""
    commits = [commit(n, 70 + n, at=at) for n in range(2) for at in (300, 900)]
    ends = [end(n, high, at=at) for n in range(2) for high, at in ((90, 400), (290, 900))]
    answers = [
        fact(
            "HELD_QUEUE",
            890,
            topic="T",
            broker_name="a",
            queue_id=n,
            client_id="x",
            commit_offset=f"{70 + n}",
            cached_messages="25",
        )
        for n in range(2)
    ]
    (one,) = findings_of(STILL, held(commits, ends, other=False, facts=answers))
    assert one.severity == "ERROR"
    assert "every queue of the group that receives messages" in one.summary
    assert "T a:0 at 70, T a:1 at 71" in one.summary
    # two causes are two findings, neither of which is of every queue
    several = findings_of(STILL, held(commits, ends, other=False, facts=answers[:1]))
    assert {one.evidence["reason"] for one in several} == {"unfinished message", "unknown"}
    assert all("The commit of 1 queue" in one.summary for one in several)


def test_a_member_that_was_resumed_is_no_cause() -> None:
    now = stuck().tables["memberships"]
    before = [row | {"suspended": True, "to_ms": ms(200)} for row in now]
    (one,) = findings_of(STILL, with_rows(stuck(), memberships=[*before, *now]))
    assert one.evidence["reason"] == "unknown"


@pytest.mark.parametrize(
    ("kind", "details", "remedy"),
    [
        ("START_REFUSED", {"reason": "LOCK_FAILED"}, "STUCK_ORDER_LOCK"),
        ("START_REFUSED", {"reason": "NO_OFFSET"}, "ConsumeFromWhere"),
        ("START_REFUSED", {"reason": "OFFSET_FAILED"}, "reaches the broker's master"),
        ("TOPIC_MISSING", {}, "topicRoute"),
        ("OFFSET_ILLEGAL", {"asked": "70", "given": "60"}, "resetOffsetByTime"),
    ],
)
def test_a_queue_that_no_pass_takes_over_needs_another_remedy_than_a_stuck_message(
    kind: str, details: dict[str, str], remedy: str
) -> None:
    queue: dict[str, Any] = {} if kind == "TOPIC_MISSING" else {"broker_name": "a", "queue_id": 0}
    named: dict[str, Any] = {"topic": "T", "client_id": "x", "log": "h", **queue, **details}
    logged = fact(kind, 800, times=3, **named)
    (one,) = findings_of(STILL, stuck(facts=[logged]))
    assert one.evidence["reason"] != "unknown"
    assert remedy in (one.remedy or "")
    before = logged | {"first_ms": ms(10), "last_ms": ms(20)}
    (one,) = findings_of(STILL, stuck(facts=[before]))
    assert (one.evidence["reason"], one.remedy) == ("unknown", None)


def held_back(until: float, reason: str = "SPAN") -> Row:
    details: dict[str, Any] = {"reason": reason, "log": "h", "client_id": "x"}
    return fact(
        "FLOW_CONTROLLED", 310, until, topic="T", broker_name="a", queue_id=0, times=9, **details
    )


def test_a_full_cache_shows_a_standstill_where_no_file_has_the_end() -> None:
    commits = [commit(0, 40, at=100), commit(0, 70, at=300), commit(0, 70, at=900)]
    group = held(commits, [], facts=[held_back(880)])
    (one,) = findings_of(STILL, group)
    assert "a member holds it (x): messages unread in T a:0 at 70" in one.summary
    assert one.evidence["reason"] == "one message is not finished"
    assert one.first_ms == ms(310), "before, nothing shows that messages came"
    assert "unread" not in one.evidence, "no file has the end"
    assert progress_of(group).word == "STANDS_STILL"


@pytest.mark.parametrize(
    "facts",
    [
        [held_back(880)],
        # clients log one refused pull of many
        [held_back(320), held_back(880) | {"first_ms": ms(880)}],
    ],
)
def test_the_end_of_a_topics_making_hides_no_standstill(facts: list[Row]) -> None:
    commits = [commit(0, 40, at=100), commit(0, 70, at=300), commit(0, 70, at=900)]
    group = held(commits, [end(0, 0, at=50)], facts=facts)
    (one,) = findings_of(STILL, group)
    assert "a member holds it (x): messages unread in T a:0 at 70" in one.summary
    assert "unread" not in one.evidence
    assert progress_of(group).word == "STANDS_STILL"
    # one look at a full cache is a burst, perhaps
    once = held(commits, [end(0, 0, at=50)], facts=facts[1:] or [held_back(320)])
    assert findings_of(STILL, once) == []


EACH_MINUTE = [commit(0, 70, at=at) for at in range(300, 1501, 60)]
"""Commits of a client's log that stand still from 300 to the end."""
TWO_DUMPS = [end(0, 60, at=100), end(0, 910, at=1500)]
BETWEEN = [commit(0, 40, at=100), *EACH_MINUTE], TWO_DUMPS


@pytest.mark.parametrize("reason", ["COUNT", "SIZE", "SPAN"])
def test_a_full_cache_shows_that_messages_came_between_two_dumps(reason: str) -> None:
    (one,) = findings_of(STILL, (group := held(*BETWEEN, facts=[held_back(1490, reason)])))
    assert severities(STILL, group) == ["WARNING"]
    assert "840 messages unread in T a:0 at 70" in one.summary
    assert one.first_ms == ms(310)
    assert findings_of(FALLS, group) == []
    assert progress_of(group).word == "STANDS_STILL"
    alone = held(*BETWEEN, facts=[held_back(1490, reason)], other=False)
    assert severities(STILL, alone) == ["ERROR"]


def with_first(offset: int, since: float, until: float = 1490) -> Row:
    row = held_back(until)
    details = row["details"] | {"min_offset": str(offset), "min_since_ms": str(ms(since))}
    return row | {"details": details}


@pytest.mark.parametrize(
    ("low", "seen", "found"),
    [
        (950, 890, True),
        (950, 950, True),  # both by one round of dumps
        (950, 1100, False),  # a group may commit in three minutes
        (20, 890, False),  # the next message is there
    ],
)
def test_messages_that_were_deleted_unread_are_counted(low: int, seen: int, *, found: bool) -> None:
    group = held([commit(0, 20, at=900)], [end(0, 1000, low, at=seen)])
    assert severities(FALLS, group) == ["WARNING"] * found
    for one in findings_of(FALLS, group):
        assert one.summary == (
            "Brokers deleted 930 messages before the group committed them: T a:0 20 to 949."
        )
        assert one.evidence == {"queues": "T a:0", "deleted_unread": 930}


def test_a_topic_that_was_created_again_lost_no_message() -> None:
    ends = [end(0, 5200, 5000, at=100), end(0, 60, 0, at=900)]
    assert deleted_unread(held([commit(0, 40, at=900)], ends)) == {}
    assert deleted_unread(held([commit(0, -1, at=900)], [end(0, 60, 50, at=900)])) == {}


def test_a_queue_that_stands_still_or_falls_behind_states_what_was_deleted() -> None:
    text = "Brokers deleted 30 messages before the group committed them: T a:0 70 to 99."
    commits = [commit(0, 40, at=100), commit(0, 70, at=300), commit(0, 70, at=900)]
    group = held(commits, [end(0, 90, at=400), end(0, 290, 100, at=900)])
    (one,) = findings_of(STILL, group)
    assert one.summary.endswith(text)
    assert findings_of(FALLS, group) == []
    commits = [commit(0, 40, at=100), commit(0, 70, at=900)]
    (one,) = findings_of(FALLS, held(commits, [end(0, 50, at=110), end(0, 900, 100, at=900)]))
    assert one.summary.endswith(text)
    assert one.severity == "WARNING"


@pytest.mark.parametrize(
    ("asked", "given", "commits", "found"),
    [
        (70, 100, [commit(0, 70, at=100)], True),
        (75, 100, [commit(0, 70, at=100)], True),
        # the first start of a group, at 0
        (0, 100, [], False),
        (70, 100, [commit(0, 70, at=500)], False),
        # the offset was set back
        (70, 100, [commit(0, 90, at=100)], False),
        # beyond the end
        (70, 60, [commit(0, 70, at=100)], False),
    ],
)
def test_a_client_that_skips_deleted_messages_is_named(
    asked: int, given: int, commits: list[Row], *, found: bool
) -> None:
    where: dict[str, Any] = {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": "x"}
    offsets: dict[str, Any] = {"asked": str(asked), "given": str(given)}
    illegal = fact("OFFSET_ILLEGAL", 400, log="app", **where, **offsets)
    commits = [*commits, commit(0, 300, at=900)]
    group = held(commits, [end(0, 300, 100)], facts=[illegal])
    findings = findings_of(FALLS, group)
    assert len(findings) == found
    for one in findings:
        count = given - asked
        assert f"x skipped {count} messages that brokers had deleted before" in one.summary
        assert f"T a:0 {asked} to {given - 1} (client's log)" in one.summary
        (kept,) = borne_out(rules_by_id()[FALLS], group, [one], "UNKNOWN")
        assert kept.severity == "INFO", "it is over"
        assert ENDED_BY not in kept.evidence, "whether the group falls behind is another question"


@pytest.mark.parametrize(
    ("first", "stands"),
    [
        (with_first(70, 400), True),
        # an orderly listener has taken the message at the commit from the cache
        (with_first(71, 400), True),
        # another message is the first by now
        (with_first(69, 400), False),
        # for a moment
        (with_first(70, 1400), False),
        # since after the last commit that a file has
        (with_first(70, 1510, 1700), False),
        # its log names no first message
        (held_back(1490), False),
    ],
)
def test_the_first_message_in_a_full_cache_shows_it_without_commits_in_the_log(
    first: Row, *, stands: bool
) -> None:
    commits = [commit(0, 40, at=100), commit(0, 70, at=1500)]
    group = held(commits, TWO_DUMPS, facts=[first])
    assert len(findings_of(STILL, group)) == stands
    assert len(findings_of(FALLS, group)) == (not stands)
    assert progress_of(group).word == ("STANDS_STILL" if stands else "FALLS_BEHIND")


@pytest.mark.parametrize("reason", ["COUNT", "SIZE"])
@pytest.mark.parametrize(
    ("first", "unfinished"),
    [
        (with_first(70, 400), True),
        (with_first(71, 400), True),  # of an orderly listener
        (with_first(70, 1400), False),
        (with_first(90, 400), False),
        (held_back(1490), False),
    ],
)
def test_a_cache_that_is_full_behind_one_message_is_not_the_listener_s_speed(
    reason: str, first: Row, *, unfinished: bool
) -> None:
    ends = [end(0, at, at=at) for at in range(300, 1501, 60)]
    full = first | {"details": first["details"] | {"reason": reason}}
    (one,) = findings_of(STILL, held(EACH_MINUTE, ends, facts=[full]))
    slow = "slow listener"
    assert one.evidence["reason"] == ("one message is not finished" if unfinished else slow)
    assert ("its listener is too slow" in one.summary) is not unfinished


def test_a_cache_that_was_full_before_the_queue_was_read_to_its_end_is_over() -> None:
    ends = [end(0, 60, at=100), end(0, 70, at=1000), end(0, 910, at=1500)]
    early, late = full(310, 980), full(1010, 1490)
    (one,) = findings_of(STILL, held(BETWEEN[0], ends, facts=[early]))
    assert (one.severity, one.evidence["reason"]) == ("INFO", "unknown")
    (one,) = findings_of(STILL, held(BETWEEN[0], ends, facts=[early, late]))
    assert one.first_ms == ms(1010)
    # a copy that is older than assumed looks like a commit that fell
    fell = [commit(0, 200, at=200), *EACH_MINUTE]
    assert findings_of(STILL, held(fell, TWO_DUMPS, facts=[full(310, 1490)])) == []


def test_what_does_not_move_does_not_fall_behind() -> None:
    """Between two dumps nothing shows when the messages came."""
    group = held(*BETWEEN)
    assert findings_of(FALLS, group) == []
    assert progress_of(group) == ("UNKNOWN", "UNCHANGED")
    (one,) = findings_of(STILL, group)
    assert one.severity == "INFO"
    still_or = "it stands still, or these messages arrived just before the last look"
    assert f"840 messages unread in T a:0 at 70; {still_or}." in one.summary
    # a cause that files show tells that it does not read
    config = fact("GROUP_CONFIG", 800, 1600, broker_name="a", consume_enable="false")
    assert severities(STILL, held(*BETWEEN, facts=[config])) == ["WARNING"]


@pytest.mark.parametrize(("since", "found"), [(700, ["WARNING"]), (850, [])])
def test_a_cause_shows_a_standstill_between_two_looks_minutes_apart(
    since: int, found: list[str]
) -> None:
    """A listener hangs, or the group is disabled, shortly before the last of two looks."""
    commits = [commit(0, 70, at=at) for at in range(since, 901, 50)]
    looks = commits, [end(0, 70, at=since), end(0, 290, at=900)]
    assert severities(STILL, held(*looks)) == ["INFO"] * len(found)
    answer: dict[str, Any] = {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": "x"}
    for cause in (
        fact("GROUP_CONFIG", 800, 1000, broker_name="a", consume_enable="false"),
        fact("HELD_QUEUE", 890, **answer, commit_offset="70", cached_messages="25"),
    ):
        assert severities(STILL, held(*looks, facts=[cause])) == found


def test_what_was_read_to_the_end_shortly_before_does_not_fall_behind() -> None:
    """Commits equal the end for twenty minutes, and a burst comes with the last dump."""
    commits = [commit(0, 10, at=100)] + [commit(0, 900, at=at) for at in range(300, 1501, 60)]
    ends = [end(0, 60, at=100), end(0, 900, at=1450), end(0, 1800, at=1500)]
    group = held(commits, ends)
    assert findings_of(FALLS, group) == findings_of(STILL, group) == []
    assert progress_of(group).word == "MOVES"


IDLE_TO_1500 = [commit(0, 10, at=100)] + [commit(0, 900, at=at) for at in range(300, 1501, 60)]
BURST = IDLE_TO_1500, [end(0, 60, at=100), end(0, 900, at=800), end(0, 9000, at=1500)]
"""Commits that stay at the end, and an end that grew at an unknown time before the last look."""


def troubled(kind: str, first: float, last: float, times: int, **details: str) -> Row:
    named: dict[str, Any] = {"topic": "T", "client_id": "x", "broker_name": "a", "queue_id": 0}
    return fact(kind, first, last, times, log="h", **named, **details)


PULL_FAILS = {"request": "PULL", "reason": "timeout", "address": ""}


@pytest.mark.parametrize(
    "row",
    [
        # the burst fills the cache
        troubled("FLOW_CONTROLLED", 1485, 1488, 2, reason="COUNT"),
        troubled("FLOW_CONTROLLED", 1488, 1488, 1, reason="SPAN"),
        # long before, for a moment, or twice in 17 minutes
        troubled("REQUEST_FAILED", 900, 905, 2, **PULL_FAILS),
        troubled("REQUEST_FAILED", 850, 1300, 400, **PULL_FAILS),
        troubled("REQUEST_FAILED", 470, 1490, 2, **PULL_FAILS),
        troubled("START_REFUSED", 1400, 1490, 5, reason="LOCK_FAILED"),
        troubled("TOPIC_MISSING", 900, 905, 2),
        troubled("OFFSET_ILLEGAL", 1480, 1481, 2, asked="30", given="35"),
        troubled("OFFSET_NOT_CORRECTED", 1480, 1481, 2, sent_to="0")
        | {"details": lacking(900)["details"]},
    ],
)
def test_a_moment_s_trouble_is_no_cause_of_a_burst_just_before_the_last_look(row: Row) -> None:
    group = held(*BURST, facts=[row], other=False)
    assert progress_of(group) == ("UNKNOWN", "UNCHANGED")
    (one,) = findings_of(STILL, group)
    assert one.severity == "INFO"
    assert "for 11 min, and a member holds it (x): 8,100 messages unread" in one.summary
    assert "while messages arrive" not in one.summary


@pytest.mark.parametrize(
    "row",
    [
        troubled("REQUEST_FAILED", 700, 1490, 30, **PULL_FAILS),
        troubled("START_REFUSED", 1200, 1490, 14, reason="LOCK_FAILED"),
        troubled("HELD_QUEUE", 1490, 1490, 1, commit_offset="900", cached_messages="25"),
        expired(950, at=1490),
    ],
)
def test_a_trouble_that_goes_on_to_the_last_look_is_a_cause(row: Row) -> None:
    (one,) = findings_of(STILL, held(*BURST, facts=[row], other=False))
    assert one.severity == "ERROR"
    assert one.evidence["reason"] != "unknown"
    assert "for 11 min, while messages arrive and a member holds it" in one.summary


def test_queues_that_may_have_received_a_burst_make_no_error_of_another() -> None:
    commits = [commit(1, 70, at=at) for at in (300, 900, 1500)]
    ends = [end(1, 90, at=400), end(1, 290, at=900)]
    group = held(BURST[0] + commits, BURST[1] + ends, other=False)
    by_queue = {one.evidence["queues"]: one.severity for one in findings_of(STILL, group)}
    assert by_queue == {"T a:0": "INFO", "T a:1": "WARNING"}


def test_a_moment_s_full_cache_does_not_tell_why_a_queue_falls_behind() -> None:
    commits = [*IDLE_TO_1500[:13], commit(0, 905, at=1499)]
    for first, severity in ((1488, "INFO"), (900, "WARNING")):
        cache = troubled("FLOW_CONTROLLED", first, 1488, 10, reason="COUNT")
        assert severities(FALLS, held(commits, BURST[1], facts=[cache])) == [severity]


@pytest.mark.parametrize(
    ("committed", "ends", "until", "shown"),
    [
        # the lines show it for longer than the commits
        ((70, 300), [], 900, 900),
        # an end that is older than the messages does not show how many wait
        ((70, 500), [(70, 310)], 900, 900),
        # it lasted no standstill
        ((70, 300), [], 400, None),
        # long before the last look
        ((70, 300), [(9000, 5000)], 900, None),
        # the commit is not at the first message in the cache
        ((60, 300), [], 900, None),
    ],
)
def test_the_first_message_in_a_full_cache_shows_a_standstill_until_its_last_line(
    committed: tuple[int, int], ends: list[tuple[int, int]], until: float, shown: int | None
) -> None:
    offset, at = committed
    commits = [commit(0, offset, at=at)]
    seen = [end(0, high, at=when) for high, when in ends]
    group = held(commits, seen, facts=[with_first(70, 290, until)], other=False)
    found = findings_of(STILL, group)
    assert [one.shown_ms for one in found] == ([ms(shown)] if shown else [])
    assert (progress_of(group).word == "STANDS_STILL") == bool(shown)
    for one in found:
        assert "for 10 min" in one.summary or "for 9 min" in one.summary
        assert "(x): messages unread in T a:0 at 70" in one.summary
        assert "unread" not in one.evidence


def test_a_fact_of_a_whole_night_shows_the_cache_at_its_end_alone() -> None:
    """Its other lines may be older than the commit that has not moved."""
    commits = [commit(0, 40, at=100), commit(0, 70, at=300), commit(0, 70, at=900)]
    night = held_back(880) | {"first_ms": ms(110)}
    assert findings_of(STILL, held(commits, [], facts=[night])) == []
    (one,) = findings_of(STILL, held(commits, [], facts=[night, held_back(320)]))
    assert one.first_ms == ms(310)


def test_unread_messages_are_at_least_those_of_the_queues_with_an_end() -> None:
    commits = [commit(n, 70, at=at) for n in range(2) for at in (300, 900)]
    ends = [end(1, 90, at=400), end(1, 290, at=900)]
    cause = fact("GROUP_CONFIG", 800, 1000, broker_name="a", consume_enable="false")
    (one,) = findings_of(STILL, held(commits, ends, other=False, facts=[held_back(880), cause]))
    assert "at least 220 messages unread in T a:0 at 70, T a:1 at 70" in one.summary
    assert "unread" not in one.evidence


def full(first: float, until: float, client_id: str = "x") -> Row:
    return held_back(until) | {"first_ms": ms(first), "client_id": client_id}


@pytest.mark.parametrize(
    ("happened", "facts", "holder"),
    [
        # a burst fills the cache shortly before the second commit is seen
        ((), [full(890, 895)], None),
        # the holder left
        ((leave("x", 500),), [full(310, 480)], None),
        # another member holds the queue, and its own log has no full cache
        ((leave("x", 500), join("y")), [full(310, 480)], None),
        # and its cache was full for less than two minutes
        ((leave("x", 500), join("y")), [full(310, 480), full(800, 880, "y")], None),
        # the holder's cache counts, not the newest
        ((), [full(310, 700), full(310, 880, "z")], "x"),
        ((leave("x", 200), join("y")), [full(310, 880), full(320, 800, "y")], "y"),
    ],
)
def test_only_the_cache_of_the_holder_at_the_end_shows_a_standstill(
    happened: tuple[Any, ...], facts: list[Row], holder: str | None
) -> None:
    commits = [commit(0, 70, at=100), commit(0, 70, at=900)]
    group = held(commits, [], *happened, facts=facts, other=False)
    assert [one.evidence["holders"] for one in findings_of(STILL, group)] == [holder] * bool(holder)
    assert (progress_of(group).word == "STANDS_STILL") == bool(holder)


def test_the_full_cache_of_another_client_is_no_cause() -> None:
    (one,) = findings_of(STILL, stuck(facts=[full(310, 880, "z")]))
    assert one.evidence["reason"] == "unknown"
    both = [full(310, 880, "z"), full(310, 800) | {"details": {"reason": "COUNT", "log": "h"}}]
    (one,) = findings_of(STILL, stuck(facts=both))
    assert one.evidence["reason"] == "slow listener", "of the holder, though it is older"


def test_a_dump_that_is_older_than_the_holding_shows_no_holder_at_the_end() -> None:
    """From 400 on y holds queue 1, according to the ledger."""
    commits = [commit(1, 70, at=100), commit(1, 70, at=900)]
    of_x = full(410, 880) | {"queue_id": 1}
    group = held(commits, [], join("y", at=400), facts=[of_x], other=False)
    assert {row["client_id"] for row in group.owned if row["queue_id"] == 1} == {"y"}
    where = {"topic": "T", "broker_name": "a", "queue_id": 1, "client_id": "x"}
    for at, found in ((100, False), (800, True)):
        shown = with_rows(group, observed_ownership=[{**where, "observed_ms": ms(at)}])
        assert bool(findings_of(STILL, shown)) is found


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("START_REFUSED", {"reason": "LOCK_FAILED"}),
        ("OFFSET_ILLEGAL", {"asked": "30", "given": "35"}),
        ("REQUEST_FAILED", {"request": "PULL", "reason": "timeout", "address": ""}),
    ],
)
def test_a_cause_that_ended_before_does_not_explain_a_full_cache(
    kind: str, details: dict[str, str]
) -> None:
    commits = [commit(0, 40, at=100), commit(0, 70, at=300), commit(0, 70, at=900)]
    named: dict[str, Any] = {"topic": "T", "client_id": "x", "broker_name": "a", "queue_id": 0}
    ended = fact(kind, 10, 20, times=3, log="h", **named, **details)
    (one,) = findings_of(STILL, held(commits, [], facts=[held_back(880), ended]))
    assert one.evidence["reason"] == "one message is not finished"
    goes_on = ended | {"last_ms": ms(870)}
    (one,) = findings_of(STILL, held(commits, [], facts=[held_back(880), goes_on]))
    assert one.evidence["reason"] != "one message is not finished"


@pytest.mark.parametrize(
    ("commits", "ends", "until"),
    [
        # the commit moved at the end
        ([(70, 300), (80, 900)], [], 880),
        # the cache was full for a moment
        ([(70, 300), (70, 900)], [], 330),
        # the commit was seen for less than two minutes
        ([(70, 300), (70, 360)], [], 880),
        # an end shows that nothing is left
        ([(70, 300), (70, 900)], [(70, 900)], 880),
    ],
)
def test_a_full_cache_alone_is_no_standstill(
    commits: list[tuple[int, int]], ends: list[tuple[int, int]], until: int
) -> None:
    group = held(
        [commit(0, offset, at=at) for offset, at in commits],
        [end(0, offset, at=at) for offset, at in ends],
        facts=[held_back(until)],
    )
    assert findings_of(STILL, group) == []


def test_the_address_in_consumer_progress_is_a_holder_where_no_list_was_made() -> None:
    answers = [
        fact(
            "QUEUE_PROGRESS",
            at,
            topic="T",
            broker_name="a",
            queue_id=0,
            broker_offset=str(high),
            consumer_offset="70",
            client_ip="10.0.0.1",
        )
        for at, high in ((300, 90), (900, 290))
    ]
    offsets: dict[str, Any] = {"commits": [commit(0, 70)], "ends": [end(0, 290, at=900)]}
    config = fact("GROUP_CONFIG", 0, 1000, broker_name="a")
    group = snapshot_of(topic(read=2), facts=[*answers, config], **offsets)
    (one,) = findings_of(STILL, group)
    assert "a member holds it (10.0.0.1): 220 messages unread" in one.summary
    assert one.client_id is None
    assert findings_of("OFFLINE_WITH_LAG", group) == []
    without = [row | {"details": row["details"] | {"client_ip": ""}} for row in answers]
    for shown in (without, [answers[0], without[1]]):  # the newest answer counts
        unheld = snapshot_of(topic(read=2), facts=[*shown, config], **offsets)
        assert findings_of(STILL, unheld) == []
        assert findings_of("OFFLINE_WITH_LAG", unheld) != []
    came = snapshot_of(topic(read=2), facts=[without[0], answers[1], config], **offsets)
    assert findings_of("OFFLINE_WITH_LAG", came) == []


def test_a_topic_without_a_message_is_idle_and_a_commit_above_the_end_is_not() -> None:
    empty = [end(0, 0), end(1, 0)]
    assert progress_of(held([], empty, other=False)).word == "IDLE"
    for some in (empty[:1], [end(0, 0), end(1, 7)]):
        assert progress_of(held([], some, other=False)) == ("UNKNOWN", "NO_COMMIT")
    also = topic("U", read=1), join("y", "U")
    assert progress_of(held([], empty, *also, other=False)) == ("UNKNOWN", "NO_COMMIT")
    # a log shows that the queues were empty when the topic was made, and nothing what came since
    made = [end(0, 0, at=100), end(1, 0, at=100)]
    assert progress_of(held([], made, other=False)) == ("UNKNOWN", "NO_COMMIT")
    above = held([commit(0, 900, at=900)], [end(0, 70, at=900)], other=False)
    assert progress_of(above) == ("UNKNOWN", "END_BELOW_COMMIT")
    flickers = held([commit(0, 100, at=900)], [end(0, 70, at=900)], other=False)
    assert progress_of(flickers).word == "IDLE"
