from rebalance_core.audit.case import GroupCase
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
    severities,
    topic,
)

RULE = "PROXY_GROUP_UNSEEN"
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
