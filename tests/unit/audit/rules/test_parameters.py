"""Parameters of strategies: lists of queues, rooms that nobody is in."""

from dataclasses import replace

from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.unknowns import CLOCK_OFF
from rebalance_core.model.timeline import Timeline
from tests.unit.audit.snapshots import end, findings_of, join, severities, snapshot_of, topic


def reading(*lists: str) -> GroupSnapshot:
    members = [join(f"c{n}", strategy=f"CONFIG(queues={text})") for n, text in enumerate(lists)]
    return snapshot_of(topic(read=3), *members, ends=[end(n, 5) for n in range(3)])


def test_a_queue_in_no_list() -> None:
    (one,) = findings_of("CONFIG_GAP", reading("T/a/0", "T/a/1"))
    assert "1 queue of T (a:2): 5 messages behind" in one.summary
    assert findings_of("CONFIG_GAP", reading("T/a/0|T/a/1", "T/a/2")) == []


def test_a_queue_in_two_lists() -> None:
    (one,) = findings_of("CONFIG_OVERLAP", reading("T/a/0|T/a/1", "T/a/1|T/a/2"))
    assert "1 queue of T (a:1)" in one.summary
    assert findings_of("CONFIG_OVERLAP", reading("T/a/0|T/a/1", "T/a/2")) == []


def test_an_overlap_with_a_member_that_came_just_now() -> None:
    strategy = "CONFIG(queues=T/a/0)"
    group = snapshot_of(topic(), join("x", strategy=strategy), join("y", strategy=strategy, at=999))
    assert findings_of("CONFIG_OVERLAP", group) == []


def test_a_queue_that_does_not_exist() -> None:
    (one,) = findings_of("CONFIG_FOREIGN_QUEUE", reading("T/a/0|T/a/1|T/a/2|T/a/9"))
    assert "a:9" in one.summary
    assert findings_of("CONFIG_FOREIGN_QUEUE", reading("T/a/0|T/a/1|T/a/2")) == []


def test_a_topic_that_is_not_known_is_not_judged() -> None:
    assert findings_of("CONFIG_FOREIGN_QUEUE", reading("T/a/0|Other/a/0")) == []


def test_the_retry_topic_is_read_only_if_listed() -> None:
    assert severities("CONFIG_RETRY_UNREAD", reading("T/a/0")) == ["INFO"]
    assert findings_of("CONFIG_RETRY_UNREAD", reading("T/a/0|%25RETRY%25g/a/0")) == []


def test_other_strategies_have_no_lists() -> None:
    group = snapshot_of(topic(), join("x"), join("y", strategy="CONFIG(queues=T/a/0)"))
    for rule in ("CONFIG_GAP", "CONFIG_OVERLAP", "CONFIG_FOREIGN_QUEUE", "CONFIG_RETRY_UNREAD"):
        assert findings_of(rule, group) == []


RULE = "MACHINE_ROOM_UNMATCHED"


def reading_rooms(rooms: str, *brokers: str) -> GroupSnapshot:
    topics = [topic(broker=name, read=2) for name in brokers]
    return snapshot_of(*topics, join("x", strategy=f"MACHINE_ROOM(consumer_idcs={rooms})"))


def test_queues_of_rooms_that_no_setting_names() -> None:
    (one,) = findings_of(RULE, reading_rooms("r1", "r1@a", "r2@b", "plain"))
    assert "4 queues of T (plain:0-1, r2@b:0-1)" in one.summary
    assert "the names of plain do not have the form room@broker" in one.summary
    assert "no member names the rooms r2" in one.summary


def test_all_rooms_named_and_other_strategies() -> None:
    assert findings_of(RULE, reading_rooms("r1|r2", "r1@a", "r2@b")) == []
    assert findings_of(RULE, snapshot_of(topic(broker="plain"), join("x"))) == []


def test_lists_made_by_hand_need_no_broker_s_clock() -> None:
    lists = [join(f"c{n}", strategy=f"CONFIG(queues=T/a/{n})") for n in range(2)]
    other = join("x", "U", strategy="CONFIG(queues=T/a/0)")
    group = snapshot_of(topic(read=3), *lists, other, ends=[end(n, 5) for n in range(3)])
    group = replace(
        group, run=replace(group.run, coverage=Coverage(clocks={"": Timeline.always(CLOCK_OFF)}))
    )
    severity = {row["rule_id"]: row["severity"] for row in run_rules(group)["findings"]}
    assert (severity["CONFIG_GAP"], severity["INCONSISTENT_SUBSCRIPTION"]) == ("ERROR", "INFO")
