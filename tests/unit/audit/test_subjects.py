"""What rules read beside what shows a finding, and what is stated where that is unknown."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.comparison import ComparisonResult, compare
from rebalance_core.audit.comparison_findings import settling
from rebalance_core.audit.coverage import ALWAYS, Coverage, LogSpan, coverage_of
from rebalance_core.audit.evidence import group_brokers, unlogged
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot
from rebalance_core.audit.registry import ALL_RULES
from rebalance_core.audit.rules.left_behind import MAY_RUN
from rebalance_core.audit.subjects import MEMBERS, gap_of
from rebalance_core.audit.unknowns import CLOCK_OFF, stop_unlogged
from rebalance_core.contracts.observed import CLOCK_UNSURE
from rebalance_core.model.events import CONSUMER_LEAVE, CONSUMER_SUSPEND
from rebalance_core.model.timeline import Timeline, Unknown, first_gap
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import LOG_BEGINS, LOG_ENDED, REASONS, UNKNOWN
from rebalance_core.replay.masters import MasterOutage
from tests.unit.audit.snapshots import (
    broker_logs,
    client_logs,
    commit,
    end,
    fact,
    join,
    leave,
    listed_at,
    ms,
    name_server_logs,
    of_member,
    queue_row,
    settled_by,
    snapshot_of,
    topic,
    why_unknown,
    with_rows,
)

A, B = "10.0.0.1@1", "10.0.0.2@2"


def covered(
    group: GroupSnapshot, *stretches: tuple[float, float], begins: bool = False
) -> GroupSnapshot:
    """The snapshot with a log of broker a from and to these seconds."""
    of_log = tuple(LogSpan(ms(one), ms(other), begins) for one, other in stretches)
    return replace(
        group, run=replace(group.run, coverage=Coverage(broker_logs(a=of_log), known=True))
    )


def found(group: GroupSnapshot, rule_id: str) -> Any:
    (row,) = (row for row in run_rules(group)["findings"] if row["rule_id"] == rule_id)
    return row


def fell_back() -> GroupSnapshot:
    """A commit goes back at 600 s, and no event explains it."""
    went = fact(
        "OFFSET_WENT_BACK",
        600,
        topic="T",
        broker_name="a",
        queue_id=0,
        client_host="10.0.0.1",
        highest_stored=9,
        lowest_asked=5,
    )
    return snapshot_of(topic(), join(A), facts=[went], commits=[commit(0, 9)])


def test_a_rule_of_error_or_warning_that_needs_nothing_rests_on_one_line_or_dump() -> None:
    """Each rule states what it needs where it is declared; these need no more than they show."""
    alone = {rule.rule_id for rule in ALL_RULES if not rule.reads and rule.severity != "INFO"}
    assert alone == {
        "BROKER_DOWN",
        "BROKER_FLAPS",
        "BROKER_NAME_TAKEN",
        "COLLECTION_INCOMPLETE",
        "CONSUMER_BLOCKED",
        "GAVE_UP_ASKING",
        "GROUP_DISABLED",
        "GROUP_SETTINGS_DIFFER",
        "INVISIBLE_TIME_TOO_SHORT",
        "MISSING_POP_RETRY_TOPIC",
        "NAME_SERVERS_DIFFER",
        "NOT_PULLING",
        "NO_BROKER_ADDRESS",
        "POP_ORDER_BLOCKED",
        "PULL_EXPIRED",
        "RARE_HEARTBEATS",
        "REVIVE_BEHIND",
        "REVIVE_REPEATS",
        "REVIVE_STUCK",
        "RULE_FAILED",
        "STARVED_TIMERS",
    }


@pytest.mark.parametrize(
    ("stretches", "severity", "reason"),
    [
        ([(0, 1000)], "WARNING", None),
        ([(300, 1000)], "WARNING", None),
        ([(500, 1000)], "INFO", "LOG_BEGINS"),
        ([(0, 450), (550, 1000)], "INFO", "NOT_COVERED"),
        ([(0, 500)], "INFO", "LOG_ENDED"),
        ([], "INFO", "NOT_COVERED"),
    ],
)
def test_no_event_explains_it_needs_a_log_that_would_have_it(
    stretches: list[tuple[float, float]], severity: str, reason: str | None
) -> None:
    row = found(covered(fell_back(), *stretches), "OFFSET_ROLLBACK")
    assert (row["severity"], row["evidence"].get("not_covered")) == (severity, reason)
    assert ("broker.log" in row["remedy"]) is bool(reason)


def test_a_line_that_every_log_lost_may_explain_it() -> None:
    torn, whole = (LogSpan(ms(0), ms(1000), from_start=True, torn=t) for t in (True, False))
    group = fell_back()

    def severity(**logs: list[LogSpan]) -> str:
        coverage = Coverage(broker_logs(**logs), known=True)
        made = replace(group, run=replace(group.run, coverage=coverage))
        return str(found(made, "OFFSET_ROLLBACK")["severity"])

    assert group_brokers(group) == {"a"}
    assert severity(a=[whole]) == "WARNING"
    assert severity(a=[torn]) == "INFO"


@pytest.mark.parametrize(
    ("at_s", "log_ends_s", "denied", "verdict"),
    [
        (600, 1000, False, "OFFLINE"),  # somebody behind a proxy: PROXY_GROUP_UNSEEN
        (600, 450, False, "UNKNOWN"),
        (600, 450, True, "OFFLINE"),
        (440, 450, False, "OFFLINE"),
        (170, 100, False, "OFFLINE"),  # what the member that went at 100 s had committed
    ],
)
def test_offsets_that_went_on_when_no_log_shows_members(
    at_s: float, log_ends_s: float, denied: bool, verdict: str
) -> None:
    facts = [fact("NOT_ONLINE", 50, broker_name="a")] if denied else []
    commits = [commit(0, 9, at=at_s - 20), commit(0, 20, at=at_s)]
    group = snapshot_of(topic(), join(A), leave(A, 100), facts=facts, commits=commits)
    result = compare(covered(group, (0, log_ends_s)))
    assert result.verdict == verdict
    assert ("broker.log of a" in settled_by(result)) is (verdict == "UNKNOWN")


def test_a_log_that_begins_with_the_broker_s_start_lacks_nothing() -> None:
    row = found(covered(fell_back(), (500, 1000), begins=True), "OFFSET_ROLLBACK")
    assert row["severity"] == "WARNING"


def test_tables_without_coverage_are_judged_as_ever() -> None:
    assert found(fell_back(), "OFFSET_ROLLBACK")["severity"] == "WARNING"


def idle(*members: Any) -> GroupSnapshot:
    """Two members for one queue."""
    return snapshot_of(topic(read=1), join(A), join(B), members=members)


def test_who_is_a_member_at_the_end_follows_from_a_list_or_a_log_from_the_start() -> None:
    late, begun = (500, 1000), (0, 1000)
    lists = listed_at("a", 900, A, B)
    assert found(covered(idle(*lists), late), "IDLE_MEMBER")["severity"] == "WARNING"
    assert found(covered(idle(), begun, begins=True), "IDLE_MEMBER")["severity"] == "WARNING"
    row = found(covered(idle(), late), "IDLE_MEMBER")
    assert (row["severity"], row["evidence"]["not_covered"]) == ("INFO", "LOG_BEGINS")
    dumped = fact("DUMP", 900, command="consumerConnection")
    unlogged = [stored(covered(of), 900) for of in (idle(*lists), idle(*lists[:1]))]
    alike, other = (with_rows(of, observed_facts=[dumped]) for of in unlogged)
    assert found(alike, "IDLE_MEMBER")["severity"] == "WARNING"
    row = found(other, "IDLE_MEMBER")
    assert (row["severity"], row["evidence"]["not_covered"]) == ("INFO", "NOT_COVERED")


@pytest.mark.parametrize(
    ("begins_s", "since_s", "reason"),
    [(100, 400, None), (300, 400, "LOG_BEGINS"), (300, None, None), (300, 150, None)],
)
def test_what_is_so_since_the_dumps_needs_logs_from_the_lists_on(
    begins_s: float, since_s: float | None, reason: str | None
) -> None:
    dump = fact("DUMP", 200, command="consumerConnection")
    lists = listed_at("a", 200, A, B)
    group = snapshot_of(topic(), join(A), join(B), facts=[dump], members=lists)
    since_ms = None if since_s is None else ms(since_s)
    gap = gap_of(covered(group, (begins_s, 1000)), MEMBERS, Finding("", first_ms=since_ms))
    assert (gap and gap.reason) == reason


@pytest.mark.parametrize(
    ("at_s", "ends_s", "reason"),
    [(790, 100, None), (500, 100, "LOG_ENDED"), (500, 790, None), (790, 700, None)],
)
def test_a_list_of_an_earlier_round_shows_who_is_there_with_the_log_since(
    at_s: float, ends_s: float, reason: str | None
) -> None:
    """That of the last round was cut off, say."""
    dump = fact("DUMP", 800, command="consumerConnection")
    group = snapshot_of(topic(), join(A), facts=[dump], members=listed_at("a", at_s, A))
    gap = gap_of(covered(group, (0, ends_s)), MEMBERS, Finding(""))
    assert (gap and gap.reason) == reason


@pytest.mark.parametrize(
    ("ends_s", "newer", "older", "reason"),
    [
        (700, [B], [A], "NOT_COVERED"),  # A may have gone before the newer list
        (1000, [B], [A], None),  # the log would have it
        (700, [A, B], [A], None),
        (700, [B], [], None),  # the broker never listed it
    ],
)
def test_a_member_that_its_broker_lists_no_more_may_be_gone(
    ends_s: float, newer: list[str], older: list[str], reason: str | None
) -> None:
    """The newest list of the other broker, from before, still has it."""
    lists = [*listed_at("a", 800, *older), *listed_at("a", 840, *newer), *listed_at("b", 800, A)]
    group = snapshot_of(topic(), join(A), join(B), members=lists)
    gap = unlogged(covered(group, (0, ends_s)))
    assert (gap and gap.reason) == reason


def progress(*holders: str, at: float = 900) -> list[Any]:
    """What consumerProgress -s shows of queues 0, 1 and so on."""
    dump = fact("DUMP", at, command="consumerProgress", rows=len(holders), rejected=0, error="")
    return [
        dump,
        *(
            fact(
                "QUEUE_PROGRESS",
                at,
                topic="T",
                broker_name="a",
                queue_id=number,
                broker_offset=9,
                consumer_offset=9,
                client_ip=holder,
                with_clients=True,
            )
            for number, holder in enumerate(holders)
        ),
    ]


def dumped(*holders: str) -> GroupSnapshot:
    group = snapshot_of(topic(), join(A), facts=progress(*holders), members=listed_at("a", 890, A))
    return covered(group, (0, 1000), begins=True)


def test_a_topic_whose_queues_a_dump_shows_is_there() -> None:
    """All lines on its creation are lost: it is frozen for want of a topic by the ledger alone."""
    lists = listed_at("a", 890, A)
    absent = stored(covered(snapshot_of(join(A), members=lists), (0, 1000), begins=True))
    assert found(absent, "FROZEN_GROUP")["severity"] == "ERROR"
    shown = covered(snapshot_of(join(A), facts=progress(A), members=lists), (0, 1000), begins=True)
    row = found(shown, "FROZEN_GROUP")
    assert row["severity"] == "INFO"
    assert "dumps show queues of a topic on a that no other file names" in row["summary"]
    assert row["remedy"].startswith("Copy topics.json of a")


def stored(group: GroupSnapshot, at_s: float = 100) -> GroupSnapshot:
    """The snapshot with a topics.json of broker a, copied then."""
    coverage = replace(group.run.coverage, topic_stores={"a": ms(at_s)})
    return replace(group, run=replace(group.run, coverage=coverage))


@pytest.mark.parametrize("begins", [True, False])
def test_a_topic_that_no_file_shows_may_be_older_than_the_logs_or_its_line_is_lost(
    begins: bool,
) -> None:
    group = covered(
        snapshot_of(join(A), members=listed_at("a", 890, A)), (100, 1000), begins=begins
    )
    assert found(stored(group), "FROZEN_GROUP")["severity"] == "ERROR"
    unknown = replace(group.run, coverage=Coverage())
    assert found(replace(group, run=unknown), "FROZEN_GROUP")["severity"] == "ERROR"
    row = found(group, "FROZEN_GROUP")
    assert row["severity"] == "INFO"
    assert "the topics.json of a was not collected" in row["summary"]
    assert row["remedy"].startswith("Copy topics.json of a")


@pytest.mark.parametrize(("at_s", "severity"), [(300, "WARNING"), (700, "INFO")])
def test_a_topic_of_which_a_later_dump_shows_more_queues_has_grown(
    at_s: float, severity: str
) -> None:
    where: Any = {"topic": "T", "broker_name": "a", "queue_id": 9}
    dumped = fact("QUEUE_PROGRESS", at_s, **where, consumer_offset=5, broker_offset=5)
    group = snapshot_of(topic(at=500), join(A), commits=[commit(9, 5)], facts=[dumped])
    row = found(covered(group, (0, 1000), begins=True), "LEFTOVER_OFFSETS")
    assert row["severity"] == severity


def shown(group: GroupSnapshot) -> tuple[ComparisonResult, str]:
    result = compare(group)
    return result, settling(group, result) or ""


def test_equal_needs_a_dump_of_every_queue() -> None:
    result, _ = shown(dumped(*["10.0.0.1"] * 4))
    assert result.verdict == "EQUAL"
    result, settled = shown(dumped("10.0.0.1"))
    assert (result.verdict, result.reason) == ("UNKNOWN", "NOT_COVERED")
    assert "3 queues" in why_unknown(result)
    assert settled.startswith("Dump consumerProgress -s true -g g")


def test_lists_that_are_old_by_now_tell_who_was_there() -> None:
    """A file of a clock that is hours ahead makes all dumps old."""
    twice = join(A, channel="2", at=300)
    group = covered(snapshot_of(topic(), join(A), twice, members=listed_at("a", 500, A)), (0, 1000))
    for end_s in (1_000, 100_000):
        gap = unlogged(replace(group, run=replace(group.run, end_ms=ms(end_s))))
        assert gap is not None
        assert gap.reason == "NOT_COVERED"


@pytest.mark.parametrize("what", ["JOIN", "LEAVE"])
def test_members_that_came_or_went_without_a_line_are_those_that_every_broker_lists(
    what: str,
) -> None:
    group = dumped(*["10.0.0.1"] * 4)
    row = {"rule_id": f"INGEST_{what}_NOT_LOGGED", "first_ms": ms(500), "last_ms": ms(500)}
    group = with_rows(group, findings=[row])
    result = compare(group)
    assert (result.verdict, result.basis) == ("EQUAL", "DUMPS")
    for lists in ([], listed_at("a", 890, A, B), listed_at("a", 600, A)):
        unlike = with_rows(group, observed_members=lists)
        result, settled = shown(unlike)
        assert (result.verdict, result.reason) == ("UNKNOWN", "NOT_COVERED")
        assert settled.startswith("Collect broker.log of every broker")


def test_whom_brokers_list_proves_no_difference_since_when_it_is_one() -> None:
    """What the other one held may be what a member left whose end is in no line."""
    group = covered(dumped(*["10.0.0.9"] * 4))
    result, settled = shown(group)
    assert (result.verdict, result.reason) == ("UNKNOWN", "NOT_COVERED")
    assert settled.startswith("Copy the broker.log of a")


def test_a_difference_needs_a_log_that_would_have_its_cause() -> None:
    group = dumped(*["10.0.0.9"] * 4)
    assert compare(group).verdict == "DIFFERS"
    late = covered(group, (850, 1000))
    result, settled = shown(late)
    assert (result.verdict, result.reason, result.differences) == ("UNKNOWN", "LOG_BEGINS", ())
    assert settled.startswith("Also copy the older files of the broker.log of a")
    judged = run_rules(late)
    of_owners = [row for row in judged["findings"] if row["rule_id"].startswith("OWNERSHIP")]
    assert [row["severity"] for row in of_owners] == ["INFO"]
    assert judged["group_verdicts"][0]["settled_by"] == settled


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [("AVG", "AVG", "DIFFERS"), ("AVG", None, "UNKNOWN"), (None, None, "DIFFERS")],
)
def test_how_one_member_divides_does_not_tell_how_another_does(
    one: str | None, other: str | None, verdict: str
) -> None:
    joins = join(A, strategy=one), join(B, strategy=other)
    lists = listed_at("a", 890, A, B)
    held = progress("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2")
    group = covered(snapshot_of(topic(), *joins, facts=held, members=lists), (0, 1000), begins=True)
    judged = run_rules(group)
    (row,) = judged["group_verdicts"]
    assert row["verdict"] == verdict
    differing = [r for r in judged["findings"] if r["rule_id"].startswith("OWNERSHIP_DIFFERS")]
    assert any(row["severity"] != "INFO" for row in differing) is (verdict == "DIFFERS")
    if verdict == "UNKNOWN":
        assert (row["reason"], (row["settled_by"] or "")[:23]) == (
            "NOT_COVERED",
            "Dump consumerStatus -i ",
        )


def test_who_may_read_what_its_application_assigns_holds_against_nothing() -> None:
    group = dumped(*["10.0.0.9"] * 4)
    row = {"rule_id": "INGEST_MAY_ASSIGN", "evidence": {"clients": A}, "severity": "INFO",
           "first_ms": None, "last_ms": None, "summary": "", "remedy": ""}  # fmt: skip
    judged = run_rules(with_rows(group, findings=[row]))
    assert {one["severity"] for one in judged["findings"]} == {"INFO"}
    assert judged["group_verdicts"][0]["verdict"] == "UNKNOWN"


def test_a_member_that_reports_otherwise_than_the_logs() -> None:
    own = listed_at(
        "a",
        900,
        A,
        asked_broker=None,
        subscriptions=["U"],
        source=f"mqadmin/1-consumerStatus-g/{A}.txt:1",
    )
    group = snapshot_of(topic(), join(A), facts=progress(*["10.0.0.1"] * 4), members=own)
    assert compare(covered(group, (0, 1000), begins=True)).reason == "NOT_COVERED"


def test_who_left_is_no_contradiction() -> None:
    group = snapshot_of(topic(), join(A), join(B), leave(B, 500), facts=progress(*["10.0.0.1"] * 4))
    assert compare(covered(group, (0, 1000), begins=True)).verdict == "EQUAL"


def test_a_queue_that_the_ledger_has_only_later_was_there_before_any_file_showed_it() -> None:
    group = snapshot_of(
        topic(),
        topic(read=5, at=950),
        join(A),
        facts=[
            fact("DUMP", 900, command="consumerProgress"),
            *(
                fact(
                    "QUEUE_PROGRESS",
                    900,
                    topic="T",
                    broker_name="a",
                    queue_id=queue,
                    client_ip="10.0.0.1",
                    with_clients=True,
                )
                for queue in range(5)
            ),
        ],
    )
    result, settled = shown(group)
    assert (result.verdict, result.reason) == ("UNKNOWN", "NOT_COVERED")
    assert settled.startswith("Dump topicRoute -t T")


@pytest.mark.parametrize(("up", "verdict"), [(None, "UNKNOWN"), (850, "DIFFERS")])
def test_a_broker_that_lists_members_while_its_master_is_gone_was_back_before(
    up: float | None, verdict: str
) -> None:
    group = dumped(*["10.0.0.9"] * 4)
    group = with_rows(group, observed_members=listed_at("a", 880, A))
    outage = MasterOutage(ms(500), None if up is None else ms(up), None)
    group = replace(group, run=replace(group.run, masters={"a": (outage,)}))
    assert compare(covered(group, (0, 1000), begins=True)).verdict == verdict


@pytest.mark.parametrize(
    ("stretches", "severity", "reason"),
    [
        ([(0, 1000)], "WARNING", None),
        ([(500, 1000)], "INFO", "LOG_BEGINS"),
        ([(0, 450), (520, 1000)], "INFO", "NOT_COVERED"),
        ([(0, 500)], "INFO", "LOG_ENDED"),
        ([], "INFO", "NOT_COVERED"),
    ],
)
def test_which_brokers_were_up_follows_from_name_servers(
    stretches: list[tuple[float, float]], severity: str, reason: str | None
) -> None:
    group = covered(fell_back(), (0, 1000), begins=True)
    stated = (LogSpan(ms(one), ms(other), one == 0) for one, other in stretches)
    coverage = replace(group.run.coverage, name_servers=name_server_logs(*stated))
    row = found(replace(group, run=replace(group.run, coverage=coverage)), "OFFSET_ROLLBACK")
    assert (row["severity"], row["evidence"].get("not_covered")) == (severity, reason)
    assert ("namesrv.log" in row["remedy"]) is bool(reason)


@pytest.mark.parametrize(
    ("broker", "again", "severity"),
    [("a", 590, "INFO"), ("a", 460, "INFO"), ("a", 300, "WARNING"), ("b", 590, "WARNING")],
)
def test_a_broker_that_was_down_since_no_line_shows_may_explain_it(
    broker: str, again: float, severity: str
) -> None:
    group = covered(fell_back(), (0, 1000), begins=True)
    stops = {broker: ALWAYS.put(ms(10), ms(again) + 1, stop_unlogged(broker, ms(again)))}
    row = found(replace(group, run=replace(group.run, stops=stops)), "OFFSET_ROLLBACK")
    assert row["severity"] == severity
    assert ("no log shows when it went down" in row["summary"]) is (severity == "INFO")


@pytest.mark.parametrize(
    ("stretches", "severity"),
    [([(0, 1000)], "WARNING"), ([(0, 505), (525, 1000)], "INFO"), ([(510, 1000)], "INFO")],
)
def test_a_reset_may_have_been_followed_by_one_whose_line_is_missing(
    stretches: list[tuple[float, float]], severity: str
) -> None:
    reset = fact("OFFSET_RESET", 500, topic="T", broker_name="a", queue_id=0, offset=90)
    observations = [commit(0, 30, at=400), commit(0, 35, at=530)]
    group = snapshot_of(topic(), join(A), facts=[reset], commits=observations)
    assert found(covered(group, *stretches), "RESET_NOT_KEPT")["severity"] == severity


@pytest.mark.parametrize(
    ("logs", "reason"),
    [
        ({"a": (0, 900_000), "b": (0, 900_000)}, None),
        ({"a": (0, 900_000), "b": (0, 310_000)}, "LOG_ENDED"),
        ({"a": (0, 900_000), "b": (400_000, 900_000)}, "LOG_ENDED"),
        ({}, "LOG_ENDED"),
    ],
)
def test_a_name_server_that_writes_little_shows_nothing_by_silence(
    logs: dict[str, tuple[int, int]], reason: str | None
) -> None:
    """Name servers of 4.x and 5.0: that no broker went down since is told by brokers alone."""
    row = {"complete": True, "note": None, "clock_offset_ms": None}
    rows: list[Any] = [
        {
            **row,
            "host": host,
            "role": "BROKER",
            "kind": "broker_log",
            "from_ms": one,
            "to_ms": other,
        }
        for host, (one, other) in logs.items()
    ]
    rows += [
        {
            **row,
            "host": "namesrv",
            "role": "NAME_SERVER",
            "kind": "namesrv_log",
            "from_ms": 0,
            "to_ms": 300_000,
        }
    ]
    gap = coverage_of(rows, {host: [host] for host in logs}).routes.gap(100_000, 900_000)
    assert (gap and gap.reason) == reason


@pytest.mark.parametrize(
    ("stretches", "severity"),
    [([(0, 1000)], "ERROR"), ([(0, 450), (520, 1000)], "INFO"), ([(0, 500)], "INFO")],
)
def test_queues_that_a_suspended_member_leaves_rest_on_its_whole_log(
    stretches: list[tuple[float, float]], severity: str
) -> None:
    """When a third one joins, the first queue of its new share is not one that it holds."""
    paused = of_member(CONSUMER_SUSPEND, B, 100)
    happened = topic(read=8), join(A), join(B), paused, join("10.0.0.3@3", at=400)
    group = snapshot_of(*happened, facts=[fact("DUMP", 900, command="consumerProgress")])
    group = covered(group, (0, 1000), begins=True)
    where = {CONSUMER_SUSPEND: "clients/c1/rocketmq_client.log:7"}
    stated = [
        {**row, "source": where.get(row["event_type"])} for row in group.tables["cluster_events"]
    ]
    group = with_rows(group, cluster_events=stated)
    of_log = tuple(LogSpan(ms(one), ms(other), False) for one, other in stretches)
    coverage = replace(group.run.coverage, clients=client_logs(c1=of_log))
    group = replace(group, run=replace(group.run, coverage=coverage))
    row = found(group, "ORPHAN_QUEUES")
    assert row["severity"] == severity
    assert ("rocketmq_client.log of c1" in row["summary"]) is (severity == "INFO")


@pytest.mark.parametrize(
    ("stretches", "severity"), [([(0, 1000)], "ERROR"), ([(0, 300)], "INFO"), ([(0, 480)], "ERROR")]
)
def test_what_a_dump_shows_at_rest_needs_a_log_of_that_time(
    stretches: list[tuple[float, float]], severity: str
) -> None:
    held = [queue_row("T", "a", 0, 500, client_id=one, source="d") for one in (A, B)]
    group = snapshot_of(topic(), join(A), join(B), owned=held, members=listed_at("a", 900, A, B))
    assert found(covered(group, *stretches, begins=True), "DOUBLE_OWNER")["severity"] == severity


def test_a_copy_of_which_nothing_was_collected_may_be_the_master() -> None:
    dump = fact("DUMP", 900, command="consumerConnection")
    listed = listed_at("a", 900, A)
    group = covered(snapshot_of(topic(), join(A), members=listed, facts=[dump]), (0, 1000))
    down = MasterOutage(ms(880), None, None)
    run = replace(group.run, masters={"a": (down,)})
    for missing, host in (((), None), (("a-1",), "a-1")):
        gone = replace(group, run=replace(run, missing=frozenset(missing)))
        gap = gap_of(gone, MEMBERS, Finding(""))
        assert (gap and gap.where) == host


@pytest.mark.parametrize(("told_until", "reason"), [(900, None), (1100, "LOG_ENDED")])
def test_a_group_without_a_dump_stands_as_at_the_end_of_all_logs(
    told_until: float, reason: str | None
) -> None:
    """Its master may be back since the broker's log ended, though it was down just before."""
    group = covered(snapshot_of(topic(), join(A)), (0, 900), begins=True)
    stated = name_server_logs(LogSpan(0, ms(told_until), True))
    run = replace(group.run, masters={"a": (MasterOutage(ms(890), None, None),)})
    run = replace(run, coverage=replace(run.coverage, name_servers=stated))
    gap = gap_of(replace(group, run=run), MEMBERS, Finding("", first_ms=ms(890)))
    assert (gap and gap.reason) == reason


def test_a_state_that_has_ended_is_for_information_and_needs_no_more_evidence() -> None:
    """What shows its end stands in the summary; it is no evidence that is missing."""
    happened = topic(), topic(name="U"), join(A, "T"), join(B, "T", "U")
    for stretch in ((0, 1000), (0, 500)):
        group = snapshot_of(*happened, leave(B, 800))
        row = found(covered(group, stretch, begins=True), "INCONSISTENT_SUBSCRIPTION")
        assert (row["severity"], row["last_ms"]) == ("INFO", ms(800))
        assert row["summary"].endswith(f"; ended at {utc(ms(800))}: CONSUMER_LEAVE of {B}.")
        assert "not_covered" not in row["evidence"]
    standing = found(
        covered(snapshot_of(*happened), (0, 1000), begins=True), "INCONSISTENT_SUBSCRIPTION"
    )
    assert (standing["severity"], standing["last_ms"]) == ("ERROR", None)


@pytest.mark.parametrize(
    ("stretches", "stored", "severity"),
    [
        ([(0, 1000)], 0, "ERROR"),
        ([(0, 500)], 0, "INFO"),
        ([(0, 300), (400, 1000)], 0, "INFO"),
        # the numbers are those of its topics.json, too
        ([(0, 500)], 890, "ERROR"),
        ([(0, 500)], 510, "INFO"),
        ([(0, 300), (400, 1000)], 450, "ERROR"),
    ],
)
def test_how_a_topic_is_set_up_at_the_end_needs_a_later_file(
    stretches: list[tuple[float, float]], stored: float, severity: str
) -> None:
    group = snapshot_of(topic(read=4, write=8, at=100), join(A), facts=[fact("DUMP", 890)])
    group = covered(group, *stretches)
    coverage = replace(group.run.coverage, topic_stores={"a": ms(stored)} if stored else {})
    row = found(
        replace(group, run=replace(group.run, coverage=coverage)), "READ_FEWER_THAN_WRITTEN"
    )
    assert row["severity"] == severity


def test_nothing_rests_on_a_broker_s_clock_that_is_off() -> None:
    group = covered(fell_back(), (0, 1000))
    coverage = replace(group.run.coverage, clocks={"": Timeline.always(CLOCK_OFF)})
    row = found(replace(group, run=replace(group.run, coverage=coverage)), "OFFSET_ROLLBACK")
    assert (row["severity"], row["evidence"]["not_covered"]) == ("INFO", "NOT_COVERED")
    assert "collection.toml" in row["remedy"]


@pytest.mark.parametrize(("broker", "severity"), [("a", "INFO"), ("b", "WARNING")])
def test_the_clock_of_another_group_s_broker_does_not_matter(broker: str, severity: str) -> None:
    group = covered(fell_back(), (0, 1000))
    coverage = replace(
        group.run.coverage,
        clocks={"brokers/x": Timeline.always(CLOCK_OFF)},
        hosts={broker: ("brokers/x",)},
    )
    row = found(replace(group, run=replace(group.run, coverage=coverage)), "OFFSET_ROLLBACK")
    assert row["severity"] == severity


def test_a_log_of_an_unsure_clock_is_its_broker_s() -> None:
    row = {
        "role": "BROKER",
        "kind": "broker_log",
        "from_ms": 0,
        "to_ms": 900_000,
        "complete": True,
        "clock_offset_ms": None,
    }
    rows: list[Any] = [row | {"host": "x", "note": CLOCK_UNSURE}, row | {"host": "y", "note": None}]
    coverage = coverage_of(rows, {"a": ["x"], "b": ["y"]})
    assert gap_of_clock(coverage, "a") is CLOCK_OFF
    assert gap_of_clock(coverage, "b") is None
    stray = coverage_of(rows, {"b": ["y"]})
    assert gap_of_clock(stray, "b") is CLOCK_OFF, "whose log it is, is not known"


def gap_of_clock(coverage: Coverage, broker: str, at_ms: int = 500_000) -> Unknown | None:
    return first_gap(coverage.clocks_of([broker]), at_ms, at_ms)


def test_a_clock_is_off_in_the_part_of_a_log_whose_times_are_not_known() -> None:
    row = {"role": "BROKER", "host": "x", "kind": "broker_log", "complete": True, "note": None}
    right = row | {"clock_offset_ms": 0, "clock_error_ms": None}
    rows: list[Any] = [
        right | {"from_ms": 0, "to_ms": 299_999},
        right | {"from_ms": 300_000, "to_ms": 599_999, "note": CLOCK_UNSURE},
        row | {"from_ms": 700_000, "to_ms": 900_000, "clock_offset_ms": 4, "clock_error_ms": 9_000},
    ]
    coverage = coverage_of(rows, {"a": ["x"]})
    unknown_at = [at for at in (100, 400, 690, 950) if gap_of_clock(coverage, "a", 1_000 * at)]
    assert unknown_at == [400]
    errors = [coverage.clock_error_ms(1_000 * at) for at in (100, 400, 690, 692, 908, 950)]
    assert errors == [0, 0, 0, 9_000, 9_000, 0]
    far: list[Any] = [rows[0], rows[2] | {"clock_error_ms": 90_000}]
    assert gap_of_clock(coverage_of(far, {"a": ["x"]}), "a", 620_000) is CLOCK_OFF


@pytest.mark.parametrize(
    ("stretches", "may_run"),
    [([(0, 1000)], False), ([(500, 1000)], False), ([(950, 1000)], True), ([(0, 800)], True),
     ([], True)],
)  # fmt: skip
def test_clients_may_run_where_no_log_shows_that_brokers_refuse_their_pulls(
    stretches: list[tuple[float, float]], *, may_run: bool
) -> None:
    """That no broker lists a member, and what waits, is so either way."""
    facts = [fact("GROUP_CONFIG", 0, 1000, broker_name="a"), fact("DUMP", 900),
             fact("GROUP_AT_BROKER", 900, broker_name="a", members=0)]  # fmt: skip
    group = snapshot_of(topic(), facts=facts, commits=[commit(0, 4)], ends=[end(0, 9)])
    row = found(covered(group, *stretches), "OFFLINE_WITH_LAG")
    assert row["severity"] == "WARNING"
    assert (row["remedy"] == MAY_RUN) is may_run
    assert row["summary"].startswith("No broker lists a member" if may_run else "No member since")


@pytest.mark.parametrize(
    ("came", "gone", "source", "severity"),
    [(10, 900, "mqadmin/1-consumerConnection-g.txt:1", "INFO"),
     (10, 900, "brokers/a/broker.log:1", "WARNING"),
     (610, 900, "mqadmin/1-consumerConnection-g.txt:1", "WARNING"),
     (10, 200, "mqadmin/1-consumerConnection-g.txt:1", "WARNING")],
)  # fmt: skip
def test_whom_a_dump_alone_shows_to_be_gone_may_have_gone_at_any_time_before(
    came: float, gone: float, source: str, severity: str
) -> None:
    went = fact(
        "OFFSET_WENT_BACK",
        600,
        topic="T",
        broker_name="a",
        queue_id=0,
        client_host="10.0.0.1",
        highest_stored=9,
        lowest_asked=5,
    )
    group = snapshot_of(
        topic(),
        join(A, at=5),
        join(B, at=came),
        leave(B, gone),
        facts=[went],
        commits=[commit(0, 9)],
    )
    where = {CONSUMER_LEAVE: source}
    stated = [
        {**row, "source": where.get(row["event_type"])} for row in group.tables["cluster_events"]
    ]
    group = with_rows(group, cluster_events=stated)
    row = found(covered(group, (0, 1000), begins=True), "OFFSET_ROLLBACK")
    assert row["severity"] == severity


@pytest.mark.parametrize(
    ("missing", "progress", "severity"),
    [("", False, "WARNING"), ("a", False, "WARNING"), ("b", False, "INFO"), ("b", True, "WARNING")],
)
def test_a_broker_of_which_nothing_was_collected_may_have_more_queues(
    missing: str, progress: bool, severity: str
) -> None:
    shown = [fact("QUEUE_PROGRESS", 900, topic="T", broker_name="a", queue_id=0)]
    group = snapshot_of(
        topic(read=1),
        join(A),
        join(B),
        members=listed_at("a", 900, A, B),
        facts=shown if progress else [],
    )
    group = covered(group, (0, 1000), begins=True)
    group = replace(group, run=replace(group.run, missing=frozenset(missing)))
    row = found(group, "IDLE_MEMBER")
    assert row["severity"] == severity
    assert ("the broker.log of b was not collected" in row["summary"]) is (severity == "INFO")


def judged_by_clocks_that_are_off(group: GroupSnapshot) -> dict[str, str]:
    log = (LogSpan(ms(0), ms(1000), from_start=True),)
    coverage = Coverage(broker_logs(a=log), known=True, clocks={"": Timeline.always(CLOCK_OFF)})
    rows = run_rules(replace(group, run=replace(group.run, coverage=coverage)))["findings"]
    return {row["rule_id"]: row["severity"] for row in rows}


def test_who_brokers_list_at_the_end_needs_no_broker_s_clock() -> None:
    members = listed_at("a", 990, A, B)
    assert judged_by_clocks_that_are_off(idle(*members))["IDLE_MEMBER"] == "WARNING"
    for other in (listed_at("a", 500, A, B), listed_at("a", 990, A), []):
        assert judged_by_clocks_that_are_off(idle(*other))["IDLE_MEMBER"] == "INFO"


def test_an_id_twice_in_a_list_needs_no_log() -> None:
    twice = listed_at("a", 900, f"{A}/10.0.0.1:1", f"{A}/10.0.0.1:2")
    group = snapshot_of(topic(), members=twice)
    assert judged_by_clocks_that_are_off(group)["DUPLICATE_CLIENT_ID"] == "ERROR"
    assert found(covered(group), "DUPLICATE_CLIENT_ID")["severity"] == "ERROR"


@pytest.mark.parametrize("reason", sorted(REASONS.keys() - {LOG_BEGINS, LOG_ENDED}))
def test_every_reason_has_a_remedy_of_its_own(reason: str) -> None:
    """Those of logs come with the log that lacks the lines."""
    result = ComparisonResult(UNKNOWN, reason)
    remedy = settling(snapshot_of(topic(), join("x")), result)
    assert remedy
    assert "{" not in remedy
