"""Queues that consumerProgress shows with nobody: a fact, or a member that did not answer."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.comparison import compare
from rebalance_core.audit.comparison_findings import comparison_findings
from rebalance_core.audit.confidence import borne_out
from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot
from rebalance_core.model.verdicts import DIFFERS, EQUAL, NOT_TOLD, UNKNOWN
from tests.unit.audit.group_rows import (
    DUMPED_MS,
    JOINED_MS,
    RUN,
    A,
    B,
    Row,
    fact,
    ledger,
    member,
    progress,
    snapshot,
    status,
)
from tests.unit.audit.snapshots import broker_logs

UNKNOWN_STRATEGY = [{"rule_id": "INGEST_STRATEGY_UNKNOWN"}]
C = "10.0.0.3@3#3"
HELD = "10.0.0.1", "10.0.0.1", "10.0.0.2"


def round_of_dumps(at_ms: int, *addresses: str, committed: int = 20, end: int = 700) -> list[Row]:
    """consumerProgress -s with offsets: what nobody holds stands at `committed`."""
    offsets = {"broker_offset": str(end)}
    rows = progress(at_ms, *addresses)
    for row in rows[1:]:
        at = end if row["details"]["client_ip"] else committed
        row["details"] = row["details"] | offsets | {"consumer_offset": str(at)}
    return rows


def listed(*clients: str, at_ms: int = DUMPED_MS, language: str = "JAVA") -> list[Row]:
    """Members as consumerConnection of the broker lists them."""
    return [
        {
            "asked_broker": "b",
            "client_id": client_id,
            "observed_ms": at_ms,
            "source": "list",
            "client_addr": client_id,
            "language": language,
            "version": "5.3.3",
        }
        for client_id in clients
    ]


def found(group: GroupSnapshot, rule_id: str = "QUEUES_NOT_READ") -> list[Finding]:
    findings = comparison_findings(group, compare(group))
    return [one for rule, one in findings if rule.rule_id == rule_id]


@pytest.mark.parametrize("findings", [[], UNKNOWN_STRATEGY])
def test_an_unowned_queue_with_messages_is_a_fact_whatever_the_strategy(findings: Any) -> None:
    group = snapshot(
        *round_of_dumps(DUMPED_MS, *HELD, ""), observed_members=listed(A, B), findings=findings
    )
    (one,) = found(group)
    assert "b:3 of T: no holder (dump of 1970-01-01 02:30:00Z), 680 messages behind" in one.summary
    assert (one.severity, one.topic, one.queue_id, one.first_ms) == (None, "T", 3, DUMPED_MS)
    assert compare(group).verdict == (UNKNOWN if findings else DIFFERS)


@pytest.mark.parametrize(
    ("ids", "addresses", "is_found"),
    [
        (("10.0.x.x@1#1", "10.0.x.x@2#2"), HELD, True),
        (("10.0.x.x@1#1", "10.0.x.x@2#2"), ("10.0.0.1",) * 3, False),  # one may not have answered
        (("10.0.x.x@1#1", "10.0.x.x@2#2"), ("10.0.0.1", "10.7.0.2", "10.7.0.2"), False),
        (("10.0.0.1@xxxx", "10.0.0.2@xxxx"), HELD, True),
        (("10.0.0.1@xxxx", "10.0.0.1@xxxx", "10.0.0.2@xxxx"), HELD, False),
    ],
)
def test_an_unowned_queue_is_a_fact_though_ids_are_masked(
    ids: tuple[str, ...], addresses: tuple[str, ...], is_found: bool
) -> None:
    tables = json.loads(json.dumps(ledger()).replace(A, ids[0]).replace(B, ids[-1]))
    members = listed(*ids)
    for number, row in enumerate(members):
        row["client_addr"] = f"10.0.0.{number}:7"
    tables["observed_members"] = members
    group = snapshot(*round_of_dumps(DUMPED_MS, *addresses, ""), **tables)
    assert bool(found(group)) == is_found
    assert compare(group).verdict == UNKNOWN


def test_queues_of_one_topic_are_one_finding() -> None:
    (one,) = found(snapshot(*round_of_dumps(DUMPED_MS, "10.0.0.1", "", "10.0.0.2", "")))
    assert one.summary.startswith("b:1,3 of T: no holder")
    assert "1,360 messages" in one.summary


@pytest.mark.parametrize(
    "rows",
    [
        round_of_dumps(DUMPED_MS, *HELD, "", committed=700),
        round_of_dumps(DUMPED_MS, *HELD, "10.0.0.2"),
        [
            *round_of_dumps(DUMPED_MS - 60_000, *HELD, ""),
            *round_of_dumps(DUMPED_MS, *HELD, "10.0.0.2"),
        ],
        round_of_dumps(JOINED_MS + 2_000, *HELD, ""),
        [*round_of_dumps(DUMPED_MS, *HELD, ""), *status(B, DUMPED_MS + 500, 2, 3)],
    ],
    ids=["nothing waits", "held", "held again", "in a window", "its client has it"],
)
def test_what_is_no_such_fact(rows: list[Row]) -> None:
    assert found(snapshot(*rows)) == []


def test_a_dump_that_is_too_old_shows_nothing_of_the_present() -> None:
    late = replace(RUN, end_ms=DUMPED_MS + RUN.stale_ms + 1)
    assert found(snapshot(*round_of_dumps(DUMPED_MS, *HELD, ""), run=late)) == []


def test_without_a_broker_a_change_may_be_unknown() -> None:
    missing = replace(RUN, missing=frozenset({"b"}))
    assert found(snapshot(*round_of_dumps(DUMPED_MS, *HELD, ""), run=missing)) == []


@pytest.mark.parametrize(
    ("ends_ms", "severity"), [(DUMPED_MS, None), (DUMPED_MS - 120_000, "INFO")]
)
def test_after_the_end_of_a_log_a_change_may_be_unknown(ends_ms: int, severity: str | None) -> None:
    logs = broker_logs(b=[LogSpan(0, ends_ms, from_start=True)])
    given = snapshot(
        *round_of_dumps(DUMPED_MS, *HELD, ""), run=replace(RUN, coverage=Coverage(logs, known=True))
    )
    findings = comparison_findings(given, compare(given))
    rule, finding = next((r, f) for r, f in findings if r.rule_id == "QUEUES_NOT_READ")
    (one,) = borne_out(rule, given, [finding], UNKNOWN)
    assert one.severity == severity


def commit(offset: int, at_ms: int) -> Row:
    return {"topic": "T", "broker_name": "b", "queue_id": 3, "observed_ms": at_ms,
            "committed_offset": offset, "client_id": None}  # fmt: skip


def test_one_look_counts_where_no_commit_moves_and_two_always() -> None:
    one_round = round_of_dumps(DUMPED_MS, *HELD, "")
    for moved in (commit(30, DUMPED_MS + 5_000), commit(10, DUMPED_MS - 5_000)):
        assert found(snapshot(*one_round, committed_offsets=[moved])) == []
    for still in (commit(20, DUMPED_MS + 5_000), commit(10, DUMPED_MS - 600_000)):
        assert found(snapshot(*one_round, committed_offsets=[still]))
    two = [*round_of_dumps(DUMPED_MS - 60_000, *HELD, ""), *one_round]
    (one,) = found(snapshot(*two, committed_offsets=[commit(30, DUMPED_MS + 5_000)]))
    assert one.first_ms == DUMPED_MS - 60_000


def test_who_waits_for_an_order_lock_is_not_yet_gone_as_an_owner() -> None:
    joined = round_of_dumps(JOINED_MS + 55_000, *HELD, "")
    assert found(snapshot(*joined))
    assert found(snapshot(*joined, consumer_groups=[{"ordered": True}])) == []


def test_a_topic_that_cannot_be_read_or_is_popped_has_no_holders() -> None:
    closed = {"topic": "T", "broker_name": "b", "event_type": "TOPIC_CONFIG", "perm": 2,
              "read_queue_nums": 4, "event_ms": 0}  # fmt: skip
    rows = round_of_dumps(DUMPED_MS, *HELD, "")
    assert found(snapshot(*rows, topics=[closed])) == []
    assert found(snapshot(*rows, topics=[closed | {"perm": 6}]))


def test_a_topic_without_any_holder_that_is_read_is_popped() -> None:
    """Of popped queues no dump names a holder, and no file may name the topic's mode."""
    unheld = round_of_dumps(DUMPED_MS, "", "", "", "")
    assert compare(snapshot(*unheld)).verdict == DIFFERS
    assert found(snapshot(*unheld))
    retry = [
        row | {"topic": "%RETRY%g_T"} for row in round_of_dumps(DUMPED_MS, "", committed=700)[1:]
    ]
    moving = [commit(30, DUMPED_MS + 5_000)]
    for popped in (snapshot(*unheld, *retry), snapshot(*unheld, committed_offsets=moving)):
        assert compare(popped).differences == ()
        assert found(popped) == []


def test_a_retry_topic_is_a_warning() -> None:
    retry = "%RETRY%g"
    rows = [
        row | {"topic": retry} if row["topic"] else row
        for row in round_of_dumps(DUMPED_MS, *HELD, "")
    ]
    owned = [{**row, "topic": retry} for row in snapshot().tables["ownership"]]
    (one,) = found(snapshot(*rows, ownership=owned))
    assert one.severity == "WARNING"


def test_who_does_not_answer_leaves_no_queue_unowned() -> None:
    """mqadmin stops at the first member that does not answer: N/A for all that come after it."""
    unheld = round_of_dumps(DUMPED_MS, "", "", "", "")
    answered = status(A, DUMPED_MS + 500, 0, 1)
    group = snapshot(*unheld, *answered, observed_members=listed(A, B, language="CPP"))
    assert compare(group).verdict == EQUAL
    assert found(group) == []
    (one,) = found(group, "QUEUES_NOT_TOLD")
    assert (
        "1 of 2 members did not report its queues (CPP); 2 queues could not be verified"
        in one.summary
    )
    assert one.evidence["members"] == B
    cut = [
        row | {"client_id": None, "details": row["details"] | {"rows": "0"}}
        for row in status("the list of the group, cut off", DUMPED_MS)
    ]
    lists = group.tables["observed_members"]
    cut_off = snapshot(*unheld, *answered, *cut, observed_members=lists)
    assert found(cut_off, "QUEUES_NOT_TOLD") == [one]
    all_answered = snapshot(
        *unheld, *answered, *status(B, DUMPED_MS + 500, 2, 3), observed_members=listed(A, B)
    )
    assert compare(all_answered).verdict == EQUAL
    assert found(all_answered, "QUEUES_NOT_TOLD") == []


def test_where_no_host_answers_nothing_is_compared() -> None:
    group = snapshot(*round_of_dumps(DUMPED_MS, "", "", "", ""), observed_members=listed(A, B))
    result = compare(group)
    assert (result.verdict, result.reason, found(group)) == (UNKNOWN, NOT_TOLD, [])


def test_who_reports_that_it_holds_nothing_was_asked() -> None:
    """An idle member names no queue in consumerProgress, which is no silence."""
    idle = snapshot(*round_of_dumps(DUMPED_MS, *HELD, ""), *status(C, DUMPED_MS + 500),
                observed_members=listed(A, B, C),
                memberships=[member(A, 0), member(B, JOINED_MS), member(C, 0)])  # fmt: skip
    assert found(idle)
    silent = snapshot(*round_of_dumps(DUMPED_MS, *HELD, ""), observed_members=listed(A, B, C))
    assert found(silent) == []


def test_an_answer_of_another_round_is_none_of_this() -> None:
    """A Go client answers in one round and not in the next, a minute later."""
    earlier = [*status(A, DUMPED_MS - 60_000, 0, 1), *status(C, DUMPED_MS - 60_000)]
    now = [*round_of_dumps(DUMPED_MS, *HELD, ""), *status(A, DUMPED_MS + 500, 0, 1)]
    assert found(snapshot(*earlier, *now, observed_members=listed(A, B, C))) == []


def test_of_two_members_at_one_address_one_may_be_silent() -> None:
    beside = "10.0.0.2@9#9"
    group = snapshot(*round_of_dumps(DUMPED_MS, *HELD, ""), observed_members=listed(A, B, beside))
    assert found(group) == []


def test_who_left_meanwhile_is_not_waited_for() -> None:
    left = [member(A, 0), member(B, JOINED_MS), member(C, 0, DUMPED_MS - 400_000)]
    lists = listed(A, B, C, at_ms=DUMPED_MS - 500_000)
    assert found(
        snapshot(*round_of_dumps(DUMPED_MS, *HELD, ""), observed_members=lists, memberships=left)
    )


def test_an_answer_that_ends_before_its_queues_shows_none() -> None:
    (cut,) = status(B, DUMPED_MS + 500)
    cut["details"] = cut["details"] | {"queues_told": "false"}
    held = round_of_dumps(DUMPED_MS, *HELD, "10.0.0.2")
    assert compare(snapshot(*held, cut)).verdict == EQUAL
    whole = cut | {"details": cut["details"] | {"queues_told": "true"}}
    assert compare(snapshot(*held, whole)).verdict == DIFFERS


def test_a_queue_without_a_commit_has_a_caveat() -> None:
    """What rocketmq-client-go#993 is known by."""
    rows = round_of_dumps(DUMPED_MS, *HELD, "", committed=0)
    (one,) = found(snapshot(*rows))
    assert one.evidence["committed"] == "none"
    (one,) = found(snapshot(*rows, committed_offsets=[commit(0, 5)]))
    assert one.evidence["committed"] == "all"
    unknown = replace(RUN, offsets_ms={})
    (one,) = found(snapshot(*rows, run=unknown))
    assert one.evidence["committed"] == "unknown"


def test_what_go_clients_let_go_of_is_no_difference() -> None:
    """The ledger follows Java's clients, which keep the queues of a topic that nobody can read."""
    closed = {"topic": "T", "broker_name": "b", "event_type": "TOPIC_CONFIG", "perm": 2,
              "read_queue_nums": 4, "event_ms": JOINED_MS + 500_000}  # fmt: skip
    gone = [*status(A, DUMPED_MS), *status(B, DUMPED_MS)]
    for language, verdict in (("GO", EQUAL), ("JAVA", DIFFERS)):
        lists = listed(A, B, language=language)
        assert compare(snapshot(*gone, observed_members=lists, topics=[closed])).verdict == verdict
    readable = [closed | {"perm": 6}]
    lists = listed(A, B, language="GO")
    assert compare(snapshot(*gone, observed_members=lists, topics=readable)).verdict == DIFFERS


def test_of_several_lists_of_a_broker_the_newest_counts() -> None:
    """Laid end to end they would be a list that no broker gave: A, B, B, B gives B queue 1."""
    before = [row for ms in (50_000, 25_000) for row in listed(B, at_ms=DUMPED_MS - ms)]
    wrong = round_of_dumps(DUMPED_MS, "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2")
    (one,) = compare(snapshot(*wrong, observed_members=[*before, *listed(A, B)])).differences
    assert (one.why, one.note) == ("UNEXPLAINED", "")
    both = listed(A, B, at_ms=DUMPED_MS - 50_000)
    alone = round_of_dumps(DUMPED_MS, "10.0.0.2", "10.0.0.2", "10.0.0.2", "10.0.0.2")
    (one, _) = compare(snapshot(*alone, observed_members=[*both, *listed(B)])).differences
    assert (one.why, one.note) == ("STALE_VIEW", f"b lists other members: {B}")


def test_facts_of_other_commands_are_no_looks() -> None:
    plain = fact(
        "QUEUE_PROGRESS",
        DUMPED_MS,
        topic="T",
        broker_name="b",
        queue_id=3,
        details={"with_clients": "false", "broker_offset": "9"},
    )
    assert found(snapshot(plain)) == []
