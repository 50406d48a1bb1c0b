from dataclasses import replace

from rebalance_core.audit.case import GroupCase
from rebalance_core.model.events import CONSUMER_LOST, Event
from tests.unit.audit.cases import (
    Row,
    case_of,
    commit,
    end,
    fact,
    findings_of,
    join,
    leave,
    listed_at,
    ms,
    of_member,
    severities,
    topic,
)

RULE, UNLISTED, OFFLINE = "PROXY_GROUP_UNSEEN", "RUNNING_NOT_LISTED", "OFFLINE_WITH_LAG"
DENIED = [fact("NOT_ONLINE", 500, broker_name="a"),
          fact("GROUP_AT_BROKER", 500, broker_name="a", members=0)]  # fmt: skip


def commits(*offsets: int, name: str = "T", client: str | None = None) -> list[Row]:
    return [
        commit(0, offset, at=100 * number, name=name, client=client)
        for number, offset in enumerate(offsets, 1)
    ]


def unseen(*rows: Row, facts: list[Row] = DENIED, members: list[Row] | None = None) -> GroupCase:
    return case_of(
        topic(), facts=facts, commits=rows, ends=[end(0, 500)], stores=(), members=members or ()
    )


def test_offsets_that_advance_with_nobody_there() -> None:
    case = unseen(*commits(10, 20, 30))
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["WARNING"]
    assert "Offsets of 1 queue of T advanced" in one.summary
    assert "a say that nobody is online" in one.summary
    assert findings_of("OFFLINE_WITH_LAG", case) == []


def test_one_step_may_be_a_reset() -> None:
    case = unseen(*commits(10, 20))
    assert severities(RULE, case) == ["INFO"]
    assert severities("OFFLINE_WITH_LAG", case) == ["WARNING"]


def test_a_pop_retry_topic_tells_that_it_pops() -> None:
    case = unseen(*commits(10, 20), *commits(1, 1, name="%RETRY%g_T"))
    assert severities(RULE, case) == ["WARNING"]


def test_dumps_of_progress_count_as_well() -> None:
    progress = [
        fact("QUEUE_PROGRESS", at, topic="T", broker_name="a", queue_id=0, consumer_offset=offset)
        for at, offset in ((150, 12), (250, 25))
    ]
    assert severities(RULE, unseen(*commits(10), facts=[*DENIED, *progress])) == ["WARNING"]


def test_groups_that_stand_still_or_have_members() -> None:
    assert findings_of(RULE, unseen(*commits(10, 10, 10))) == []
    assert findings_of(RULE, unseen(*commits(30, 20, 10))) == []
    assert findings_of(RULE, unseen(*commits(10, 20, 30, client="x"))) == []
    assert findings_of(RULE, unseen(*commits(1, 2, 3, name="SCHEDULE_TOPIC_XXXX"))) == []
    listed = unseen(*commits(10, 20, 30), members=listed_at("a", 300, "x"))
    assert findings_of(RULE, listed) == []
    gone = case_of(topic(), join("x"), leave("x", 400), commits=commits(10, 20, 30))
    assert findings_of(RULE, gone) == []


LOST = of_member(CONSUMER_LOST, "x", 300, detail="EXPIRED")
"""A broker gave the client up."""
CONFIG = fact("GROUP_CONFIG", 0, 1000, broker_name="a")


def given_up(
    *also: Event, end_of_it: Event = LOST, last: float = 990, facts: tuple[Row, ...] = (),
    members: list[Row] | None = None,
) -> GroupCase:  # fmt: skip
    commits_of_x = [commit(0, 5, at=290, client="x"), commit(0, 6, at=last, client="x")]
    return case_of(
        topic(read=1), join("x"), end_of_it, *also,
        commits=commits_of_x, ends=[end(0, 50)], facts=(CONFIG, *facts), members=members or (),
    )  # fmt: skip


def test_a_client_that_commits_after_it_was_lost_runs_and_nobody_lists_it() -> None:
    case = given_up()
    (one,) = findings_of(UNLISTED, case)
    assert severities(UNLISTED, case) == ["ERROR"]
    assert "x goes on" in one.summary
    assert "44 messages not read" in one.summary
    assert one.client_id == "x"
    assert findings_of(OFFLINE, case) == []


def test_the_log_of_a_client_that_was_lost_goes_on() -> None:
    says = fact("NO_MEMBER_LIST", 310, 985, 30, topic="T", client_id="x")
    assert severities(UNLISTED, given_up(last=295, facts=(says,))) == ["ERROR"]


def test_beside_members_it_reads_what_others_have() -> None:
    assert severities(UNLISTED, given_up(join("y"))) == ["WARNING"]


def test_who_was_lost_and_is_silent_or_left_or_came_back() -> None:
    silent, left = given_up(last=350), given_up(end_of_it=leave("x", 300))
    back, listed = given_up(join("x", at=400)), given_up(members=listed_at("a", 800, "x"))
    for case in (silent, left, back, listed):
        assert findings_of(UNLISTED, case) == []
    assert severities(OFFLINE, silent) == ["WARNING"]


def test_who_went_on_and_stopped_may_still_run() -> None:
    case = given_up(last=600)
    assert severities(UNLISTED, case) == ["INFO"]
    (offline,) = findings_of(OFFLINE, case)
    assert "delete nothing" in str(offline.remedy)


def test_after_the_end_of_a_broker_s_log_nothing_proves_that_it_is_not_listed() -> None:
    case = given_up()
    ended = replace(case, run=replace(case.run, log_ends={"a": ms(320)}))
    assert findings_of(UNLISTED, ended) == []


def test_pulls_that_a_broker_refuses_while_nobody_is_a_member() -> None:
    def refused(at: float, until: float) -> GroupCase:
        return given_up(last=295, facts=(fact("GROUP_NOT_KNOWN", at, until, 20, broker_name="a"),))

    (one,) = findings_of(UNLISTED, refused(940, 997))
    assert "Somebody pulls for g" in one.summary
    assert "a from" in one.summary
    assert findings_of(OFFLINE, refused(940, 997)) == []
    assert findings_of(UNLISTED, refused(301, 301)) == []  # a pull that the broker still held
    online = case_of(topic(), join("x"), facts=[fact("GROUP_NOT_KNOWN", 940, broker_name="a")])
    assert findings_of(UNLISTED, online) == []
