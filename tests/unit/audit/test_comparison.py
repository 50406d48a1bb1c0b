"""Predicted against observed ownership: each observation in the epoch of its own time."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.comparison import compare
from rebalance_core.audit.comparison_findings import comparison_findings
from rebalance_core.audit.coverage import ALWAYS, Coverage, LogSpan
from rebalance_core.audit.difference import (
    DUPLICATE_ID,
    FOREIGN,
    LOCK,
    NOT_STARTED,
    STALE,
    UNEXPLAINED,
)
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.prediction import MOST_CHANGES, Prediction
from rebalance_core.audit.unknowns import return_unlogged
from rebalance_core.model.timeline import Timeline
from rebalance_core.model.verdicts import (
    ASSIGNED,
    DIFFERS,
    EQUAL,
    INCOMPLETE,
    LOG_ENDED,
    NO_DUMP,
    NOT_COVERED,
    NOT_TOLD,
    OFFLINE,
    STALE_DUMP,
    STRATEGY,
    SUBSCRIPTION,
    SYSTEM,
    UNKNOWN,
    UNSTABLE,
)
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
from tests.unit.audit.snapshots import broker_logs, settled_by, why_unknown

C = "10.0.0.3@3#3"
HEALTHY = [*status(A, DUMPED_MS, 0, 1), *status(B, DUMPED_MS + 100, 2, 3)]

WHOLE_LOG = LogSpan(0, 1 << 50, from_start=True)


def test_live_ownership_that_is_the_predicted_one() -> None:
    result = compare(
        snapshot(*HEALTHY, *progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2"))
    )
    assert (result.verdict, result.observations, result.differences) == (EQUAL, 6, ())
    assert list(comparison_findings(snapshot(*HEALTHY), result)) == []


def test_a_client_that_answers_with_no_queue_is_an_observation_too() -> None:
    result = compare(snapshot(*status(A, DUMPED_MS, 0, 1), *status(B, DUMPED_MS)))
    assert result.verdict == DIFFERS
    assert {one.queue.queue_id for one in result.differences} == {2, 3}


@pytest.mark.parametrize(
    ("torn_ms", "verdict"),
    [(JOINED_MS + 2_000, UNSTABLE), (JOINED_MS - 2_000, UNSTABLE), (JOINED_MS - 90_000, EQUAL)],
)
def test_a_torn_dump_with_which_a_round_begins_may_show_what_was_changing(
    torn_ms: int, verdict: str
) -> None:
    """Recorded: consumerProgress in the window of a loss, consumerStatus 3 s later behind it."""
    after = JOINED_MS + 60_000
    shown = [*status(A, after, 0, 1), *status(B, after + 100, 2, 3)]
    details = {"command": "consumerProgress", "partial": "true"}
    torn = fact("DUMP", torn_ms, "torn.txt", details=details)
    run = replace(RUN, end_ms=after + 1_000)
    assert compare(snapshot(torn, *shown, run=run)).verdict == verdict
    before = status(A, torn_ms + 10, 0, 1, 2, 3) if torn_ms < JOINED_MS else []
    assert compare(snapshot(torn, *before, *shown, run=run)).verdict == EQUAL or not before
    whole = torn | {"details": {"command": "consumerProgress"}}
    assert compare(snapshot(whole, *shown, run=run)).verdict == EQUAL


def test_within_a_change_only_what_no_view_explains_differs() -> None:
    """0 and 1 stay with A by every view, 2 and 3 go to B, each once both have run a pass."""
    seen_ms = JOINED_MS + 1_000
    run = replace(RUN, end_ms=seen_ms)
    for holders, verdict in (
        (("10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"), UNSTABLE),
        (("10.0.0.1", "10.0.0.1", "", "10.0.0.2"), UNSTABLE),
        (("10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2"), DIFFERS),
    ):
        result = compare(snapshot(*progress(seen_ms, *holders), run=run))
        assert result.verdict == verdict, holders
        assert [one.queue.queue_id for one in result.differences] == [1] * (verdict == DIFFERS)


@pytest.mark.parametrize(
    ("changes", "verdict"), [(MOST_CHANGES, DIFFERS), (MOST_CHANGES + 1, UNSTABLE)]
)
def test_of_very_many_changes_at_once_no_state_is_compared_with(changes: int, verdict: str) -> None:
    seen_ms, tables = JOINED_MS + 1_000, ledger()
    first, last = tables["epochs"]
    begins = [JOINED_MS + number for number in range(changes)]
    ends = [*begins[1:], None]
    tables["epochs"] = [first] + [
        last | {"epoch": number, "from_ms": begin_ms, "to_ms": end_ms}
        for number, (begin_ms, end_ms) in enumerate(zip(begins, ends, strict=True), 1)
    ]
    held = progress(seen_ms, "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2")
    run = replace(RUN, end_ms=seen_ms)
    assert compare(snapshot(*held, run=run, **tables)).verdict == verdict


def test_a_change_on_which_no_owner_depends_leaves_the_verdict_as_it_is() -> None:
    """Recorded: a slave becomes master, and who owns which queue stays the same."""
    seen_ms, tables = JOINED_MS + 1_000, ledger()
    kept = [row | {"to_ms": None} for row in tables["ownership"] if row["client_id"] == A]
    tables |= {"ownership": kept, "memberships": [member(A, 0)], "diffs": []}
    tables["epochs"][1]["causes"] = ["MASTER_UP"]
    run = replace(RUN, end_ms=seen_ms)
    result = compare(snapshot(*progress(seen_ms, *["10.0.0.1"] * 4), run=run, **tables))
    assert (result.verdict, result.reason) == (EQUAL, "")


def test_queues_that_the_application_names_are_compared_with_nothing() -> None:
    alone = member(A, 0) | {"subscriptions": []}
    held = status(A, DUMPED_MS, 0, 1), progress(DUMPED_MS, "10.0.0.1", "", "", "")
    pulls = [{"consumer_type": "LITE_PULL"}]
    tables: dict[str, Any] = {"consumer_groups": pulls, "memberships": [alone], "ownership": []}
    result = compare(snapshot(*held[0], *held[1], **tables))
    assert (result.verdict, result.reason) == (UNKNOWN, ASSIGNED)
    beside = [member(A, 0), member(B, JOINED_MS), member(C, 0) | {"subscriptions": []}]
    all_ = [*HEALTHY, *status(C, DUMPED_MS, 0, 3)]
    shown = progress(DUMPED_MS, "10.0.0.3", "10.0.0.1", "10.0.0.2", "10.0.0.3")
    mixed = snapshot(*all_, *shown, memberships=beside, consumer_groups=pulls)
    assert compare(mixed).verdict == EQUAL


def test_who_keeps_queues_of_a_deleted_topic_is_no_difference() -> None:
    """Recorded on 4.9.4: those who know its route divide it again when a member leaves."""
    gone = {"topic": "T", "broker_name": "b", "event_type": "TOPIC_DELETED"}
    other = [*status(A, DUMPED_MS, 0), *progress(DUMPED_MS, "10.0.0.2", "", "", "")]
    for at_ms, verdict in ((DUMPED_MS - 1, EQUAL), (DUMPED_MS + 1, DIFFERS)):
        tables: dict[str, Any] = {"topics": [gone | {"event_ms": at_ms}]}
        assert compare(snapshot(*other, **tables)).verdict == verdict


def test_a_name_that_mqadmin_cut_is_no_queue_and_one_that_fills_its_column_is() -> None:
    def filling(topic: str, *addresses: str) -> list[Any]:
        dump, *rows = progress(DUMPED_MS, *addresses)
        return [
            dump,
            *(
                row | {"topic": topic, "details": row["details"] | {"names_cut": "true"}}
                for row in rows
            ),
        ]

    cut = compare(snapshot(*HEALTHY, *filling("T-that-goes-", "10.0.0.9", "10.0.0.9")))
    assert (cut.verdict, cut.differences) == (EQUAL, ())
    assert compare(snapshot(*HEALTHY, *filling("T", "10.0.0.9"))).verdict == DIFFERS


def pulling(version: str, consumer_type: str = "LITE_PULL") -> Any:
    return {
        "consumer_groups": [{"consumer_type": consumer_type}],
        "memberships": [row | {"version": version} for row in (member(A, 0), member(B, JOINED_MS))],
    }


@pytest.mark.parametrize(
    ("tables", "verdict"),
    [
        (pulling("4.9.4"), (UNKNOWN, NOT_TOLD)),
        (pulling("5.1.0"), (UNKNOWN, NOT_TOLD)),
        (pulling("5.1.1"), (DIFFERS, "")),
        (pulling("5.4.0", "PULL"), (UNKNOWN, NOT_TOLD)),
        (pulling("4.9.4", "PUSH"), (DIFFERS, "")),
    ],
)
def test_members_that_do_not_tell_their_queues_are_not_said_to_hold_none(
    tables: dict[str, Any], verdict: tuple[str, str]
) -> None:
    """4.9.4: consumerStatus of a lite pull consumer ends before the queues, -s shows N/A."""
    empty = [*status(A, DUMPED_MS), *status(B, DUMPED_MS + 100)]
    unheld = progress(DUMPED_MS, "", "", "", "")
    result = compare(snapshot(*empty, *unheld, **tables))
    assert (result.verdict, result.reason) == verdict


def test_a_member_that_could_not_be_asked_is_not_said_to_hold_none() -> None:
    """consumerStatus printed RemotingSendRequestException; consumerProgress -s says N/A then."""
    (asked,) = status(B, DUMPED_MS + 100)
    failed = asked | {"details": asked["details"] | {"rows": "0", "error": "CODE 1 send failed"}}
    progressed = progress(DUMPED_MS + 200, "10.0.0.1", "10.0.0.1", "", "")
    result = compare(snapshot(*status(A, DUMPED_MS, 0, 1), failed, *progressed))
    assert (result.verdict, result.observations) == (EQUAL, 3)
    late = progress(DUMPED_MS - 700_000, "10.0.0.1", "10.0.0.1", "", "")
    assert compare(snapshot(*HEALTHY, failed, *late)).differences
    assert compare(snapshot(*status(A, DUMPED_MS, 0, 1), *status(B, DUMPED_MS))).verdict == DIFFERS


def test_what_a_member_reports_counts_whatever_its_version() -> None:
    tables = pulling("4.9.4")
    assert compare(snapshot(*HEALTHY, **tables)).verdict == EQUAL
    assert compare(snapshot(*progress(DUMPED_MS, "10.9.9.9"), **tables)).verdict == DIFFERS


@pytest.mark.parametrize("address", ["", "10.9.9.9"])
def test_an_unowned_queue_or_an_owner_that_is_a_stranger_differs(address: str) -> None:
    live = progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "10.0.0.2", address)
    (one,) = compare(snapshot(*live)).differences
    assert (one.queue.queue_id, one.predicted, one.live) == (3, frozenset({B}), address or None)
    assert one.why == UNEXPLAINED


def test_each_observation_is_compared_with_its_own_epoch() -> None:
    before = status(A, JOINED_MS - 100_000, 0, 1, 2, 3)
    assert compare(snapshot(*before, *HEALTHY)).verdict == EQUAL


def test_a_group_that_changes_while_it_is_dumped_is_unstable() -> None:
    observations = [
        *status(A, JOINED_MS - 60_000, 0, 1, 2, 3),
        *status(B, JOINED_MS + 60_000, 2, 3),
    ]
    group = snapshot(*observations)
    result = compare(group)
    assert (result.verdict, result.differences) == (UNSTABLE, ())
    ((rule, differences),) = comparison_findings(group, result)
    assert (rule.rule_id, rule.severity) == ("GROUP_UNSTABLE", "INFO")
    assert "CONSUMER_JOIN" in differences.summary


def test_who_left_between_two_rounds_is_not_asked_again() -> None:
    """The older dump does not count as part of the last round for that one client."""
    before = [*status(A, JOINED_MS - 60_000, 0, 1, 2, 3), *status(C, JOINED_MS - 60_000)]
    before = [row | {"source": "one dump"} for row in before]
    result = compare(snapshot(*before, *status(A, JOINED_MS + 60_000, 0, 1)))
    assert (result.verdict, result.last_round_ms) == (EQUAL, JOINED_MS + 60_000)


def test_what_differs_inside_the_window_of_a_change_proves_nothing() -> None:
    result = compare(snapshot(*status(A, JOINED_MS + 1_000, 0, 1, 2, 3)))
    assert (result.verdict, result.differences) == (UNSTABLE, ())


def test_windows_are_longer_by_what_corrected_clocks_may_still_be_off() -> None:
    settled_ms = snapshot().settled_by[1]
    off = replace(RUN, coverage=Coverage(known=False, clocks={"brokers/a": Timeline.always(700)}))
    assert snapshot(run=off).settled_by[1] == settled_ms + 700
    for at_ms, within in ((JOINED_MS - 2_300, True), (JOINED_MS - 2_800, False)):
        sure, unsure = (Prediction(snapshot(run=run)).changing(at_ms, at_ms) for run in (RUN, off))
        assert (sure, unsure is not None) == (None, within)


def test_a_difference_of_an_earlier_round_that_healed_is_info() -> None:
    wrong = status(B, JOINED_MS + 1_000_000, 2)
    group = snapshot(*wrong, *HEALTHY)
    result = compare(group)
    assert result.verdict == EQUAL
    ((rule, differences),) = comparison_findings(group, result)
    assert (rule.rule_id, differences.severity) == ("OWNERSHIP_DIFFERS_UNEXPLAINED", "INFO")
    assert "agrees again" in differences.summary


def test_what_was_seen_before_the_logs_begin_proves_nothing() -> None:
    """Members may have held the queues then that left before the first line."""
    wrong = status(B, JOINED_MS + 1_000_000, 2)
    since = replace(RUN, members_since_ms=JOINED_MS + 1_000_001)
    result = compare(snapshot(*wrong, *HEALTHY, run=since))
    assert (result.verdict, result.differences) == (EQUAL, ())
    only = compare(snapshot(*wrong, run=since))
    assert (only.verdict, only.reason) == (UNKNOWN, NOT_COVERED)
    old = replace(since, end_ms=since.members_since_ms + RUN.stale_ms + 3_600_000)
    assert compare(snapshot(*wrong, run=old)).reason == STALE_DUMP


def test_without_a_dump_or_with_an_old_one_ownership_is_unknown() -> None:
    assert (compare(snapshot()).verdict, compare(snapshot()).reason) == (UNKNOWN, NO_DUMP)
    late = replace(RUN, end_ms=DUMPED_MS + RUN.stale_ms + 3_600_000)
    result = compare(snapshot(*HEALTHY, run=late))
    assert (result.verdict, result.reason) == (UNKNOWN, STALE_DUMP)


def test_what_depends_on_a_missing_broker_is_unknown() -> None:
    result = compare(snapshot(*HEALTHY, run=replace(RUN, missing=frozenset({"b"}))))
    assert (result.verdict, result.reason) == (UNKNOWN, INCOMPLETE)
    elsewhere = compare(snapshot(*HEALTHY, run=replace(RUN, missing=frozenset({"other"}))))
    assert elsewhere.verdict == EQUAL


def logged_until(b: int, **others: int) -> AuditRun:
    """The run with logs of brokers that end then."""
    spans = {name: [LogSpan(0, end_ms, from_start=True)] for name, end_ms in others.items()}
    logs = broker_logs(b=[LogSpan(0, b, from_start=True)], **spans)
    return replace(RUN, coverage=Coverage(logs, known=True))


def test_a_difference_after_the_end_of_a_log_proves_nothing() -> None:
    wrong = progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.9.9.9")
    assert compare(snapshot(*wrong)).verdict == DIFFERS
    behind = logged_until(DUMPED_MS - 120_000)
    result = compare(snapshot(*wrong, run=behind))
    assert (result.verdict, result.reason, result.differences) == (UNKNOWN, LOG_ENDED, ())
    assert compare(snapshot(*HEALTHY, run=behind)).verdict == EQUAL
    for run in (logged_until(DUMPED_MS - 30_000), logged_until(DUMPED_MS, other=0)):
        assert compare(snapshot(*wrong, run=run)).verdict == DIFFERS


def test_an_unknown_strategy_is_not_compared() -> None:
    differences = [{"rule_id": "INGEST_STRATEGY_UNKNOWN"}]
    result = compare(snapshot(*status(A, DUMPED_MS), findings=differences))
    assert (result.verdict, result.reason) == (UNKNOWN, STRATEGY)


def test_a_member_of_unknown_subscriptions_is_compared_with_nothing() -> None:
    wrong = progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.9.9.9")
    unknown = member(B, JOINED_MS) | {"subscriptions": None}
    result = compare(snapshot(*wrong, memberships=[member(A, 0), unknown]))
    assert (result.verdict, result.reason) == (UNKNOWN, SUBSCRIPTION)
    assert compare(snapshot(*wrong)).verdict == DIFFERS


def test_what_was_seen_while_one_was_there_of_unknown_subscriptions_proves_nothing() -> None:
    wrong = progress(JOINED_MS + 100_000, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.9.9.9")
    unknown = member("10.0.0.3@3#3", 0, JOINED_MS + 200_000) | {"subscriptions": None}
    members = [member(A, 0), member(B, JOINED_MS)]
    assert compare(snapshot(*HEALTHY, *wrong, memberships=members)).differences
    result = compare(snapshot(*HEALTHY, *wrong, memberships=[*members, unknown]))
    assert (result.verdict, result.differences) == (EQUAL, ())


def test_a_group_without_members_is_offline() -> None:
    assert compare(snapshot(memberships=[member(A, 0, 5_000_000)])).verdict == OFFLINE


@pytest.mark.parametrize(
    ("begins", "verdict"), [((4_000_000,), UNKNOWN), ((0,), OFFLINE), ((4_000_000, 0), OFFLINE)]
)
def test_a_log_that_begins_late_and_shows_the_last_leave_may_lack_joins_of_others(
    begins: tuple[int, ...], verdict: str
) -> None:
    """A member registers with each broker, so one broker's log is enough."""
    spans = [[replace(WHOLE_LOG, from_ms=at_ms, from_start=at_ms == 0)] for at_ms in begins]
    logs = broker_logs(**dict(zip("bc", spans, strict=False)))
    run = replace(RUN, coverage=Coverage(logs, known=True))
    topics = [{"topic": "T", "broker_name": broker} for broker in logs]
    left = snapshot(memberships=[member(A, 0, 5_000_000)], topics=topics)
    result = compare(replace(left, run=run))
    assert result.verdict == verdict
    assert verdict == OFFLINE or "no broker was asked for its members" in why_unknown(result)


def test_no_member_in_any_file_is_no_sign_that_there_is_none() -> None:
    """Without the log of a broker, and without an answer on its members, OFFLINE is a guess."""
    unlogged = replace(RUN, coverage=Coverage(known=True))
    result = compare(replace(snapshot(memberships=[]), run=unlogged))
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "no broker was asked for its members" in why_unknown(result)
    for denied in (
        fact("NOT_ONLINE", DUMPED_MS, details={}),
        fact("GROUP_AT_BROKER", DUMPED_MS, broker_name="b", details={"members": "0"}),
    ):
        assert compare(replace(snapshot(denied, memberships=[]), run=unlogged)).verdict == OFFLINE
    logged = replace(RUN, coverage=Coverage(broker_logs(b=[WHOLE_LOG]), known=True))
    assert compare(replace(snapshot(memberships=[]), run=logged)).verdict == OFFLINE


def test_a_group_that_only_a_client_s_log_has_commit_is_not_known_to_be_offline() -> None:
    logged = replace(RUN, coverage=Coverage(broker_logs(b=[WHOLE_LOG]), known=True))
    group = replace(snapshot(memberships=[]), run=logged)
    queue = {"topic": "T", "broker_name": "b", "queue_id": 0, "committed_offset": 1}
    committed: Any = {"client_id": A, "observed_ms": DUMPED_MS - 1_000, **queue}
    group = replace(group, tables=group.tables | {"committed_offsets": [committed]})
    result = compare(group)
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert f"no file shows {A} as a client of the group after" in why_unknown(result)
    denied = fact("NOT_ONLINE", DUMPED_MS, details={})
    denying = replace(snapshot(denied, memberships=[]), run=logged)
    denying = replace(denying, tables=denying.tables | {"committed_offsets": [committed]})
    assert compare(denying).verdict == OFFLINE


def test_a_group_whose_pulls_a_broker_compared_with_its_members_is_not_known_to_be_offline() -> (
    None
):
    """Only a broker that knows members answers that their subscription is not the latest."""
    run = replace(RUN, coverage=Coverage(broker_logs(b=[WHOLE_LOG]), known=True))
    refused = fact("SUBSCRIPTION_NOT_LATEST", DUMPED_MS - 1_000, broker_name="b", details={})
    result = compare(replace(snapshot(refused, memberships=[]), run=run))
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "b knew members of the group" in why_unknown(result)
    denied = fact("NOT_ONLINE", DUMPED_MS, details={})
    assert compare(replace(snapshot(refused, denied, memberships=[]), run=run)).verdict == OFFLINE
    left = [member(A, 0, DUMPED_MS)]
    assert compare(replace(snapshot(refused, memberships=left), run=run)).verdict == OFFLINE


def test_a_queue_without_an_owner_may_have_one_if_its_master_may_be_back() -> None:
    """Only a master grants order locks, and no log shows the return of this one."""
    group = snapshot(*HEALTHY)
    (row,) = (r for r in group.tables["ownership"] if r["queue_id"] == 3 and r["to_ms"] is None)
    unowned: Any = row | {"queue_id": 4, "client_id": None}
    group = replace(
        group, tables=group.tables | {"ownership": [*group.tables["ownership"], unowned]}
    )
    assert compare(group).verdict == EQUAL
    back = ALWAYS.put(0, 2 * DUMPED_MS, return_unlogged("b", 0))
    for broker, verdict in (("b", UNKNOWN), ("c", EQUAL)):
        result = compare(replace(group, run=replace(group.run, stops={broker: back})))
        assert result.verdict == verdict
        assert verdict == EQUAL or "no log shows its return" in why_unknown(result)


@pytest.mark.parametrize(("early_ms", "verdict"), [(140_000, OFFLINE), (160_000, UNKNOWN)])
def test_logs_that_end_before_the_collection_do_not_show_who_came_since(
    early_ms: int, verdict: str
) -> None:
    span = replace(WHOLE_LOG, to_ms=RUN.end_ms - early_ms)
    run = replace(RUN, coverage=Coverage(broker_logs(b=[span]), known=True))
    result = compare(replace(snapshot(memberships=[]), run=run))
    assert result.verdict == verdict
    assert verdict == OFFLINE or "broker.log of b" in why_unknown(result)


def test_a_group_whose_newest_list_has_members_is_not_offline() -> None:
    """Recorded: logs that begin after the dumps, and brokers that list none behind a proxy."""
    denied = fact("GROUP_AT_BROKER", DUMPED_MS, broker_name="b", details={"members": "0"})
    asked = {"command": "consumerConnection", "error": "", "proxy": "p"}
    shown = fact("DUMP", DUMPED_MS, details={**asked, "rows": "2"})
    later = LogSpan(DUMPED_MS + 60_000, 1 << 50, from_start=False)
    run = replace(RUN, coverage=Coverage(broker_logs(b=[later]), known=True))
    result = compare(replace(snapshot(denied, shown, memberships=[]), run=run))
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "p listed members" in why_unknown(result)
    assert "the broker.log of b that was collected begins" in why_unknown(result)
    gone = fact("DUMP", DUMPED_MS + 60_000, details={**asked, "rows": "0"})
    left = [member(A, 0, DUMPED_MS + 1)]
    assert (
        compare(replace(snapshot(denied, shown, gone, memberships=[]), run=run)).verdict == OFFLINE
    )
    assert compare(replace(snapshot(denied, shown, memberships=left), run=run)).verdict == OFFLINE


def test_members_may_be_back_that_went_before_a_log_ended() -> None:
    left = snapshot(memberships=[member(A, 0, JOINED_MS)])
    span = replace(WHOLE_LOG, to_ms=JOINED_MS + 1_000)
    for spans, verdict in (([span], UNKNOWN), ([WHOLE_LOG], OFFLINE)):
        later = LogSpan(DUMPED_MS, DUMPED_MS + 1, from_start=False)
        run = replace(RUN, coverage=Coverage(broker_logs(b=[*spans, later]), known=True))
        assert compare(replace(left, run=run)).verdict == verdict


def test_an_answer_from_before_a_member_left_is_no_sign_that_none_came_since() -> None:
    left = [member(A, 0, DUMPED_MS + 60_000)]
    spans = [replace(WHOLE_LOG, to_ms=DUMPED_MS + 70_000)]
    run = replace(RUN, coverage=Coverage(broker_logs(b=spans), known=True))
    for asked_ms, verdict in ((DUMPED_MS, UNKNOWN), (DUMPED_MS + 90_000, OFFLINE)):
        denied = fact("GROUP_AT_BROKER", asked_ms, broker_name="b", details={"members": "0"})
        shown = fact("DUMP", DUMPED_MS + 200_000, details={"command": "x", "error": ""})
        assert compare(replace(snapshot(denied, shown, memberships=left), run=run)).verdict == (
            verdict
        )


def test_logs_that_lack_other_joins_of_the_group_do_not_show_that_none_came() -> None:
    left = snapshot(memberships=[member(A, 0, JOINED_MS)])
    run = replace(RUN, coverage=Coverage(broker_logs(b=[WHOLE_LOG]), known=True))
    assert compare(replace(left, run=run)).verdict == OFFLINE
    lacking: Any = {"rule_id": "INGEST_LEAVE_NOT_LOGGED", "consumer_group": left.consumer_group}
    of_logs: Any = left.tables | {"findings": [lacking]}
    assert compare(replace(left, run=run, tables=of_logs)).verdict == UNKNOWN


def test_a_log_with_refused_lines_is_no_sign_that_there_is_no_member() -> None:
    whole, torn = [WHOLE_LOG], [replace(WHOLE_LOG, torn=True)]
    run = replace(RUN, coverage=Coverage(broker_logs(b=torn), known=True))
    result = compare(replace(snapshot(memberships=[]), run=run))
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "ingest refused lines of the broker.log of b" in why_unknown(result)
    run = replace(RUN, coverage=Coverage(broker_logs(b=whole), known=True))
    assert compare(replace(snapshot(memberships=[]), run=run)).verdict == OFFLINE


def test_a_group_of_rocketmq_that_no_file_shows_is_not_audited() -> None:
    unlogged = replace(RUN, coverage=Coverage(known=True))
    of_system = replace(snapshot(memberships=[]), consumer_group="CID_RMQ_SYS_TRANS", run=unlogged)
    assert (compare(of_system).verdict, compare(of_system).reason) == (UNKNOWN, SYSTEM)


def test_brokers_that_were_not_asked_are_named() -> None:
    asked = fact("DUMP", DUMPED_MS, broker_name="x", details={"command": "consumerConnection"})
    assert compare(snapshot(*HEALTHY, asked)).unasked == ("b",)
    assert compare(snapshot(*HEALTHY)).unasked == ()


def asked(broker: str, at_ms: int, source: str = "x") -> Row:
    details = {"command": "consumerConnection"}
    return fact("DUMP", at_ms, broker_name=broker, details=details, source=source)


def test_the_last_round_counts_alone_however_soon_it_came() -> None:
    round_before = [asked("other", DUMPED_MS), asked("b", DUMPED_MS + 100)]
    again = asked("other", DUMPED_MS + 90_000)
    assert compare(snapshot(*HEALTHY, *round_before, again)).unasked == ("b",)
    assert (
        compare(snapshot(*HEALTHY, *round_before, again, asked("b", DUMPED_MS + 91_000))).unasked
        == ()
    )
    repeated = asked("other", DUMPED_MS + 20_000)
    assert compare(snapshot(*HEALTHY, *round_before, repeated)).unasked == ()


def test_an_empty_answer_on_a_group_with_members_is_no_answer() -> None:
    dumps = [asked("other", DUMPED_MS), asked("b", DUMPED_MS, "mqadmin/b.txt")]
    empty = fact(
        "GROUP_AT_BROKER",
        DUMPED_MS,
        broker_name="b",
        details={"members": "0"},
        source="mqadmin/b.txt",
    )
    assert compare(snapshot(*HEALTHY, *dumps)).unasked == ()
    assert compare(snapshot(*HEALTHY, *dumps, empty)).unasked == ("b",)


def test_the_classes_of_a_difference() -> None:
    def why(*facts: dict[str, object], **tables: Any) -> set[str]:
        return {one.why for one in compare(snapshot(*facts, **tables)).differences}

    kept = [*status(A, DUMPED_MS, 0, 1, 2), *status(B, DUMPED_MS, 3)]
    assert STALE in why(*kept)
    turned = [*status(A, DUMPED_MS, 0, 2), *status(B, DUMPED_MS, 1, 3)]
    duplicate = [member(A, 0), member(B, JOINED_MS), member(B, JOINED_MS, channel="other")]
    assert why(*turned, memberships=duplicate) == {DUPLICATE_ID}
    refused = fact(
        "LOCK_REFUSED",
        DUMPED_MS - 1_000,
        client_id=B,
        topic="T",
        broker_name="b",
        queue_id=3,
        details={"owner": A},
    )
    assert why(*status(B, DUMPED_MS, 2), refused) == {LOCK}
    no_lock = refused | {"kind": "START_REFUSED", "details": {"reason": "LOCK_FAILED", "log": "h"}}
    assert why(*status(B, DUMPED_MS, 2), no_lock) == {LOCK}
    no_offset = no_lock | {"details": {"reason": "NO_OFFSET", "log": "h"}}
    assert why(*status(B, DUMPED_MS, 2), no_offset) == {NOT_STARTED}
    assert why(*status(B, DUMPED_MS, 2), no_offset | {"client_id": None}) == {NOT_STARTED}
    # of another client, or long before, it does not explain the queue
    for other in ({"client_id": A}, {"first_ms": 0, "last_ms": 1}):
        assert NOT_STARTED not in why(*status(B, DUMPED_MS, 2), no_offset | other)
    no_route = fact(
        "TOPIC_MISSING", DUMPED_MS - 1_000, client_id=B, topic="T", details={"log": "h"}
    )
    assert why(*status(B, DUMPED_MS, 2), no_route) == {NOT_STARTED}


def test_live_owners_of_another_strategy_are_called_so() -> None:
    circle = progress(DUMPED_MS, "10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2")
    differences = compare(snapshot(*circle)).differences
    assert {one.queue.queue_id: one.why for one in differences} == {1: FOREIGN, 2: FOREIGN}
    assert "AVG_BY_CIRCLE" in differences[0].note


def test_a_broker_that_lists_others_explains_a_stale_view() -> None:
    lists = [{"asked_broker": "b", "client_id": A, "client_addr": A, "observed_ms": DUMPED_MS}]
    live = progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.1")
    (one,) = compare(snapshot(*live, observed_members=lists)).differences
    assert one.why == STALE


def listed(broker: str, at_ms: int, *clients: str) -> list[Row]:
    return [
        {
            "asked_broker": broker,
            "client_id": client,
            "client_addr": client,
            "observed_ms": at_ms,
            "source": broker,
        }
        for client in clients
    ]


def test_no_owner_is_not_known_where_a_broker_does_not_list_a_member() -> None:
    """mqadmin asks those whom one broker lists, whichever, up to the first without an answer."""
    shown = progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "", "")
    nothing = status(B, DUMPED_MS + 1_000)
    both = listed("a", DUMPED_MS, A, B)
    for lists, answer, verdict in (
        ([], [], DIFFERS),
        (both, [], EQUAL),
        ([*both, *listed("b", DUMPED_MS + 1_000, A)], [], EQUAL),
        ([*both, *listed("b", DUMPED_MS, B, A)], nothing, DIFFERS),
    ):
        assert compare(snapshot(*shown, *answer, observed_members=lists)).verdict == verdict


def test_no_owner_is_not_known_where_a_client_reports_that_it_holds_the_queue() -> None:
    shown = progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "", "10.0.0.2")
    assert compare(snapshot(*shown)).verdict == DIFFERS
    assert compare(snapshot(*shown, *status(B, DUMPED_MS + 6_000, 2, 3))).verdict == EQUAL


def test_no_foreign_strategy_where_the_group_s_own_gives_the_holders_their_queues() -> None:
    """AVG_BY_CIRCLE fits them as well: that tells nothing of the queue that nobody had before."""
    first = progress(DUMPED_MS, "10.0.0.1", "", "", "")
    then = progress(DUMPED_MS + 10_000, "10.0.0.1", "", "", "10.0.0.2")
    shown = [row for row in (*first, *then) if row["queue_id"] in (None, 0, 3)]
    result = compare(snapshot(*shown))
    assert {one.why for one in result.differences} == {UNEXPLAINED}


def test_a_queue_that_no_file_shows_is_no_difference() -> None:
    """A line on the topic was lost: who should hold its queues nobody knows."""
    shown = progress(DUMPED_MS, *("10.0.0.1",) * 2, *("10.0.0.2",) * 2)
    stray = {**shown[-1], "broker_name": "c"}
    result = compare(snapshot(*shown, stray))
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "topicRoute -t T" in settled_by(result)


def test_a_held_queue_that_no_file_shows_is_no_agreement_during_a_change() -> None:
    """The change would explain the difference, but no file shows the topic's queues."""
    seen_ms, tables = JOINED_MS + 1_000, ledger()
    kept = [row | {"to_ms": None} for row in tables["ownership"] if row["client_id"] == A]
    tables |= {"ownership": kept, "memberships": [member(A, 0)], "diffs": []}
    tables["epochs"][1]["causes"] = ["MASTER_UP"]
    run = replace(RUN, end_ms=seen_ms)
    shown = progress(seen_ms, *["10.0.0.1"] * 4)
    assert compare(snapshot(*shown, run=run, **tables)).verdict == EQUAL
    stray = {**shown[-1], "topic": "U"}
    result = compare(snapshot(*shown, stray, run=run, **tables))
    assert (result.verdict, result.reason) == (UNKNOWN, NOT_COVERED)
    assert "topicRoute -t U" in settled_by(result)


@pytest.mark.parametrize(
    ("live", "why", "note"),
    [
        # the dump lists two queues of four: AVG of these, though AVG_BY_CIRCLE of all fits, too
        (
            ("10.0.0.1", "10.0.0.2"),
            STALE,
            "matches AVG of the topic without the queues that no dump",
        ),
        (
            ("10.0.0.1", "10.0.0.2", "", ""),
            STALE,
            "matches AVG of the topic without queues above 1",
        ),
        # by circle, and by no shorter list
        (("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2"), FOREIGN, "AVG_BY_CIRCLE"),
    ],
)
def test_a_foreign_strategy_is_the_last_explanation(
    live: tuple[str, ...], why: str, note: str
) -> None:
    result = compare(snapshot(*progress(DUMPED_MS, *live)))
    assert {one.why for one in result.differences} == {why}
    assert all(note in one.note for one in result.differences)


@pytest.mark.parametrize(
    ("after", "first_ms", "last_ms", "differs"),
    [
        ("PULL", DUMPED_MS, DUMPED_MS, False),  # at some time before a store showed it
        ("PULL", JOINED_MS + 900_000, JOINED_MS + 900_000, True),  # it was pulled already
        ("POP(share_queue_num=1)", JOINED_MS, DUMPED_MS, False),
        ("POP(share_queue_num=1)", JOINED_MS + 1_100_000, DUMPED_MS, True),
    ],
)
def test_whether_it_was_popped_before_a_change_of_mode_was_seen_is_unknown(
    after: str, first_ms: int, last_ms: int, differs: bool
) -> None:
    changed = {
        "rule_id": "INGEST_REQUEST_MODE_CHANGED", "topic": "T", "first_ms": first_ms,
        "last_ms": last_ms, "evidence": {"after": after},
    }  # fmt: skip
    wrong = status(B, JOINED_MS + 1_000_000, 2)
    assert bool(compare(snapshot(*wrong, *HEALTHY, findings=[changed])).differences) is differs
    behind = logged_until(JOINED_MS + 1_000_000)
    late = progress(DUMPED_MS, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.9.9.9")
    result = compare(snapshot(*wrong, *late, findings=[changed], run=behind))
    assert (result.reason, bool(result.differences)) == (LOG_ENDED, differs)
