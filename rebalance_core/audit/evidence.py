"""Whether the evidence that a rule needs is there, and what is said without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps
from rebalance_core.audit.case import PERSISTENT_MS, Finding, GroupCase, Needs, Rule, listed
from rebalance_core.audit.coverage import FAR_MS, NAME_SERVERS, Gap
from rebalance_core.audit.orphans import MEMBERS_CHANGE
from rebalance_core.audit.subscriptions import is_proxied
from rebalance_core.model import events
from rebalance_core.model.group_settings import BROADCASTING, CLIENT_REBALANCE
from rebalance_core.model.queue import is_retry_topic, retry_topic
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS, REBALANCE_WAIT_MS, utc
from rebalance_core.model.verdicts import ASSIGNED, EQUAL, INFO, LOG_BEGINS, LOG_ENDED, NOT_COVERED

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        CaseTopicsRow,
        ConsumerEventsRow,
        EpochsRow,
        ObservedMembersRow,
    )

CLIENT_LOG, OFFSETS, TOPICS = "rocketmq_client.log", "consumerOffset.json", "topics.json"
RETURNED, STOPPED = "return", "stop"
CLOCK, CLIENT_CLOCK, CREATED, BEFORE = "clock", "client clock", "created", "before"
ANSWER = "consumerConnection"
TORN = "refused lines"
ASSIGNS, STRATEGY, QUEUES = "assign", "strategy", "queues"


def group_brokers(case: GroupCase) -> set[str]:
    """The brokers of the group's topics; without members those of all it knows, else all."""
    topics = {*dumps.subscribed_topics(case, retry=True), retry_topic(case.consumer_group)}
    rows = [row for row in case.tables["topics"] if not case.members or row["topic"] in topics]
    brokers = {row["broker_name"] for row in (*case.owned, *rows) if row["broker_name"]}
    return brokers | shown_brokers(case) or set(case.run.coverage.brokers)


def shown_brokers(case: GroupCase) -> set[str]:
    """Brokers whose queues dumps show as the group's, whatever is known of its topics there."""
    return {broker for _, broker in _shown_pairs(case, retry=True)}


def _shown_pairs(case: GroupCase, *, retry: bool = False) -> set[tuple[str, str]]:
    """Topics, and brokers that have them, of the queues that dumps show as the group's."""
    rows = (*case.facts["HELD_QUEUE"], *case.facts["QUEUE_PROGRESS"])
    pairs = {(row["topic"], row["broker_name"]) for row in rows}
    return {pair for pair in pairs if retry or not is_retry_topic(pair[0])}


def contradicted(case: GroupCase) -> bool:
    """True if a member says in the end that it subscribes other topics than the logs tell."""
    last: dict[str, ObservedMembersRow] = {}
    for row in case.tables["observed_members"]:
        answered = row["asked_broker"] is None and "-consumerStatus-" in row["source"]
        if answered and row["observed_ms"] >= last.get(row["client_id"], row)["observed_ms"]:
            last[row["client_id"]] = row
    cut = {row["source"] for row in case.facts["DUMP"] if dumps.flag(row["details"].get("partial"))}
    for member in case.members:
        said = last.get(member["client_id"])
        if said is None or member["subscriptions"] is None or said["source"] in cut:
            continue
        stated = {topic for topic in said["subscriptions"] or () if not is_retry_topic(topic)}
        known = {topic for topic in member["subscriptions"] if not is_retry_topic(topic)}
        changed = any(
            event["event_type"] in (events.SUBSCRIBE, events.UNSUBSCRIBE, events.CONSUMER_JOIN)
            and event["client_id"] == member["client_id"]
            and event["event_ms"] > said["observed_ms"] - SETTLING_MS
            for event in case.tables["cluster_events"]
        )
        if stated and stated != known and not changed:
            return True
    return False


def newest_dump_ms(case: GroupCase) -> int | None:
    """Return when the group's newest dump was made; None: it has none."""
    return max((row["first_ms"] for row in case.facts["DUMP"]), default=None)


def end_of(case: GroupCase) -> int:
    """The time that what holds at the end is said of: that of the group's newest dump, else of the
    last line of any server.
    """
    coverage = case.run.coverage
    logs = (*coverage.brokers.values(), coverage.name_servers if coverage.known else ())
    last_ms = max((of[-1].to_ms for of in logs if of and of[-1].to_ms < FAR_MS), default=0)
    newest_ms = newest_dump_ms(case)
    return last_ms if newest_ms is None else newest_ms


def gap_of(case: GroupCase, needs: Needs, first_ms: int | None, last_ms: int | None) -> Gap | None:
    """Name the evidence that a finding needs and that is missing; None: nothing is.

    Args:
        case: the group.
        needs: of the rule.
        first_ms: since when it is so; None: not known.
        last_ms: until when; None: it holds at the end.
    """
    if dumps.is_system_group(case.consumer_group):
        return None
    if needs.topics and last_ms is None and (unsure := _topics_gap(case, first_ms or 0)):
        return unsure
    if not needs.roles:
        return None
    if case.run.coverage.clock_off and needs.clocks:
        at_end = "ADMIN" in needs.roles and last_ms is None
        if not at_end or not listed_now(case):
            return CLOCK_OFF
    if needs.answers and (case.facts["NOT_ONLINE"] or case.facts["GROUP_AT_BROKER"]):
        return None
    if needs.offsets and (late := _late_offsets(case, first_ms)) is not None:
        return late
    if "ADMIN" in needs.roles and last_ms is None:
        since_ms = first_ms or 0
        return (
            unlogged_unless_listed(case, since_ms)
            or _members_gap(case, since_ms)
            or _outage_gap(case)
        )
    if "ADMIN" in needs.roles:
        first_ms = None  # who is a member, and of what, is what all lines so far left
        # a dump tells what is subscribed in the end, and not since when
        if case.run.coverage.known and any(
            row["rule_id"] == "INGEST_SUBSCRIPTION_NOT_LOGGED" for row in case.tables["findings"]
        ):
            return Gap(NOT_COVERED, "", None, None)
    gap = unlogged(case) or logs_gap(case, first_ms, last_ms, needs.before_ms)
    begin = case.run.start_ms if first_ms is None else first_ms - needs.before_ms
    return gap or _untold_cause(case, needs, begin, end_of(case) if last_ms is None else last_ms)


CLOCK_OFF = Gap(NOT_COVERED, "", None, None, kind=CLOCK)
"""Times of one broker cannot be compared with those of another."""
CLIENT_CLOCK_UNKNOWN = Gap(NOT_COVERED, "", None, None, kind=CLIENT_CLOCK)
"""Nor can those of a client."""
NOT_ASKED = Gap(NOT_COVERED, "", None, None, kind=ANSWER)
"""No broker was asked who is online."""
QUEUES_CREATED = Gap(NOT_COVERED, "", None, None, kind=CREATED)
"""Queues that a dump or store alone shows may be older than it."""
QUEUES_BEFORE = Gap(NOT_COVERED, "", None, None, kind=BEFORE)
"""What a queue held before the first look at it is not known."""


def listed_now(case: GroupCase, since_ms: int = 0) -> bool:
    """True if in the last round every broker of the group lists the members of the ledger, each as
    often: then neither a log nor a clock has a part in who they are now.

    Args:
        case: the group.
        since_ms: a list from before shows nothing of what is asked.
    """
    lists, end_ms = _newest_lists(case), end_of(case)
    processes = Counter(member["client_id"] for member in case.members)
    asked = group_brokers(case) - case.run.down
    return bool(asked) and all(
        broker in lists
        and max(end_ms, since_ms) <= lists[broker][0] + dumps.SAME_ROUND_MS
        and lists[broker][1] == processes
        for broker in asked
    )


def unlogged_unless_listed(case: GroupCase, since_ms: int = 0) -> Gap | None:
    """Why lines on members are known to be missing; None: none are, or the lists of the last round
    show who is there.
    """
    gap = unlogged(case)
    if gap is None or gap.kind == ASSIGNS or contradicted(case):
        return gap
    return None if listed_now(case, since_ms) else gap


def _untold_cause(case: GroupCase, needs: Needs, from_ms: int, to_ms: int) -> Gap | None:
    """What may have happened between these times though the brokers' logs do not have it."""
    gap = _undated(case, from_ms, to_ms) if needs.before_ms else None
    if needs.routes:
        gap = gap or case.run.coverage.name_server_gap(from_ms, to_ms)
        gap = gap or _untold_stop(case, from_ms, to_ms)
    return gap


def _undated(case: GroupCase, from_ms: int, to_ms: int) -> Gap | None:
    """A coming or going that a dump alone shows, and that may have been between these times.

    A member goes at any time since it came.
    """
    came: dict[str, int] = {}
    for row in case.consumer_events if case.run.coverage.known else ():
        if row["event_type"] not in MEMBERS_CHANGE or row["detail"] == events.OBSERVED:
            continue
        earliest_ms = came.get(row["client_id"], case.run.start_ms)
        came[row["client_id"]] = row["event_ms"]
        shown = (row.get("source") or "").startswith("mqadmin/")
        if shown and earliest_ms <= to_ms and from_ms <= row["event_ms"]:
            return Gap(NOT_COVERED, "", earliest_ms, row["event_ms"])
    return None


def shown_by_dumps(case: GroupCase, epoch: EpochsRow) -> bool:
    """True if dumps alone show what the epoch began with: it happened then or before.

    Not so of a topic that is gone: no dump shows its queues any more.
    """
    rows = [*case.tables["cluster_events"], *case.tables["topics"]]
    begun = [row for row in rows if row["event_ms"] == epoch["from_ms"]]
    return bool(begun) and all(
        (row.get("source") or "").startswith("mqadmin/")
        and row["event_type"] != events.TOPIC_DELETED
        for row in begun
    )


def _topics_gap(case: GroupCase, first_ms: int) -> Gap | None:
    """A broker on which topics may have been changed since: no log, store or dump tells.

    What a log that begins late does not have, the file tells that shows the topic, if one does.
    """
    run, end_ms = case.run, end_of(case)
    known = {(row["topic"], row["broker_name"]): row for row in case.tables["topics"]}
    untold = {*_shown_pairs(case) - known.keys(), *_grown(case, known)}
    if untold and run.coverage.known:
        return Gap(NOT_COVERED, min(broker for _, broker in untold), None, None, kind=QUEUES)
    brokers = group_brokers(case)
    unseen = run.missing - brokers if run.coverage.known else frozenset[str]()
    if unseen and not case.facts["QUEUE_PROGRESS"]:  # which shows the queues of every broker
        return Gap(NOT_COVERED, min(unseen), None, None)
    nowhere = {*dumps.subscribed_topics(case)} - {topic for topic, _ in known}
    for broker in sorted(brokers):
        stored_ms = run.coverage.topic_stores.get(broker, 0)
        if nowhere and not stored_ms and run.coverage.known:  # its line may have been dropped
            return Gap(NOT_COVERED, broker, None, None, kind=TOPICS)
        since_ms = max(stored_ms, _shown_ms(case, broker) + MINUTE_MS, 0 if nowhere else first_ms)
        if since_ms < end_ms:
            gap = run.coverage.gap(broker, since_ms, end_ms, down=broker in run.down)
            if gap is not None and (nowhere or gap.reason != LOG_BEGINS):
                return gap
    return None


def _grown(
    case: GroupCase, known: Mapping[tuple[str, str], CaseTopicsRow]
) -> Iterator[tuple[str, str]]:
    """Topics, and brokers, of which consumerProgress shows more queues than were known before.

    A broker answers of the queues that the topic has then.
    """
    for shown in case.facts["QUEUE_PROGRESS"]:
        row = known.get((shown["topic"], shown["broker_name"]))
        if row is not None and shown["first_ms"] > row["event_ms"]:
            queues = max(row["read_queue_nums"] or 0, row["write_queue_nums"] or 0)
            if queues <= shown["queue_id"]:
                yield shown["topic"], shown["broker_name"]


def _shown_ms(case: GroupCase, broker: str) -> int:
    """When consumerProgress last showed every topic that the group has on a broker; 0: it did not.

    Other dumps of its round come within a minute.
    """
    topics = {row["topic"] for row in case.tables["topics"] if row["broker_name"] == broker}
    shown = dict.fromkeys((one for one in topics if not is_retry_topic(one)), 0)
    for row in case.facts["QUEUE_PROGRESS"]:
        if row["broker_name"] == broker and row["topic"] in shown:
            shown[row["topic"]] = max(shown[row["topic"]], row["first_ms"])
    return min(shown.values(), default=0)


def _untold_stop(case: GroupCase, from_ms: int, to_ms: int) -> Gap | None:
    """A broker that was down between these times, since when no line tells."""
    for broker in sorted(group_brokers(case) & case.run.untold.keys()):
        for begin_ms, again_ms in case.run.untold[broker]:
            if begin_ms <= to_ms and from_ms <= again_ms:
                return Gap(NOT_COVERED, broker, begin_ms, again_ms, kind=STOPPED)
    return None


def unlogged(case: GroupCase) -> Gap | None:
    """A member that came or went without a line, so that other lines may be missing, too; or of
    which no file tells whether it divides what it subscribes.
    """
    if dumps.may_assign(case):
        return Gap(ASSIGNED, "", None, None, kind=ASSIGNS)
    if not case.run.coverage.known:
        return None
    back = sorted(group_brokers(case) & case.run.returned.keys())
    if back:
        return Gap(NOT_COVERED, back[0], case.run.returned[back[0]], None, kind=RETURNED)
    again = _answered_in_outage(case)
    if again is not None:
        return again
    rows = [row for row in case.tables["findings"] if row["rule_id"] in UNLOGGED]
    first = min(rows, key=lambda row: row["first_ms"] or 0, default=None)
    if first is not None:
        return Gap(NOT_COVERED, "", first["first_ms"], first["last_ms"])
    odd = contradicted(case) or listed_once(case) or _listed_no_more(case)
    return Gap(NOT_COVERED, "", None, None) if odd else None


def _answered_in_outage(case: GroupCase) -> Gap | None:
    """A broker that lists members while its master is gone by the events: it was back before."""
    for row in dumps.broker_answers(case):
        broker, at_ms = row["asked_broker"], row["observed_ms"]
        for outage in case.run.masters.get(broker, ()) if row["client_id"] else ():
            gone_ms = outage.down_ms + MINUTE_MS
            if gone_ms < at_ms < (outage.up_ms or at_ms + 1):
                return Gap(NOT_COVERED, broker, outage.down_ms, None, kind=RETURNED)
    return None


def listed_once(case: GroupCase) -> bool:
    """True if brokers list a client id once in the end that two processes have by the logs."""
    since: dict[str, list[int]] = {}
    for member in case.members:
        since.setdefault(member["client_id"], []).append(member["from_ms"])
    lists = _newest_lists(case)
    for client_id, begins in since.items():
        later = [ids[client_id] for ms, ids in lists.values() if ms > max(begins) + SETTLING_MS]
        if len(begins) > 1 and later and max(later) < 2:
            return True
    return False


def _listed_no_more(case: GroupCase) -> bool:
    """True if a broker that listed a member lists it no more in the end, once its log had ended.

    It is a member of the ledger only because no later list of another broker was collected.
    """
    unlisted = {
        broker: {row["client_id"] for row in case.members} - ids.keys()
        for broker, (made_ms, ids) in _newest_lists(case).items()
        if case.run.coverage.gap(broker, made_ms, made_ms) is not None
    }
    return any(unlisted.values()) and any(
        row["client_id"] in unlisted.get(row["asked_broker"], ())
        for row in dumps.broker_answers(case)
    )


SETTLING_MS = HEARTBEAT_MS + REBALANCE_WAIT_MS
"""Brokers learn with the next heartbeat what a client subscribes."""
UNLOGGED = ("INGEST_JOIN_NOT_LOGGED", "INGEST_LEAVE_NOT_LOGGED", "INGEST_CONTRADICTION")
OWNERS_UNSURE = (*UNLOGGED, "INGEST_STRATEGY_UNKNOWN", "INGEST_MAY_ASSIGN")
"""Who owned what at any time is not known."""


def logs_gap(
    case: GroupCase, first_ms: int | None, last_ms: int | None, before_ms: int = 0
) -> Gap | None:
    """A time between these, and before, of which a log of the group's brokers tells nothing."""
    run = case.run
    begin = run.start_ms if first_ms is None else first_ms - before_ms
    end = end_of(case) if last_ms is None else last_ms
    gaps = (
        run.coverage.gap(broker, begin, end, down=broker in run.down)
        for broker in sorted(group_brokers(case))
    )
    return next((gap for gap in gaps if gap is not None), None)


def unlogged_group(case: GroupCase) -> Gap | None:
    """Return the gap of a broker of the group if no log of any of its brokers was read whole."""
    brokers = sorted(group_brokers(case))
    logs = {broker: of for broker in brokers if (of := case.run.coverage.brokers.get(broker))}
    if any(not any(one.torn for one in of) for of in logs.values()):
        return None
    if logs:
        return Gap(NOT_COVERED, next(iter(logs)), None, None, kind=TORN)
    return Gap(NOT_COVERED, brokers[0] if brokers else "the brokers", None, None)


def _client_hole(case: GroupCase, finding: Finding, client_id: str | None) -> Gap | None:
    """A time of which the log that has a suspension tells nothing: it may be over.

    Args:
        case: the group.
        finding: what rests on it.
        client_id: whose suspension; None: of anybody who is suspended meanwhile.
    """
    begin = case.run.start_ms if finding.first_ms is None else finding.first_ms
    end = end_of(case) if finding.last_ms is None else finding.last_ms
    paused = [
        row
        for row in case.tables["memberships"]
        if row["suspended"]
        and client_id in (None, row["client_id"])
        and row["from_ms"] <= end
        and (row["to_ms"] is None or row["to_ms"] >= begin)
    ]
    since = {row["client_id"]: row["from_ms"] for row in reversed(paused)}
    hosts = {
        (row["source"].split("/")[1], min(begin, since[row["client_id"]]))
        for row in case.consumer_events
        if row["event_type"] in (events.CONSUMER_SUSPEND, events.CONSUMER_RESUME)
        and row["client_id"] in since
        and row["source"] is not None
        and row["source"].startswith("clients/")
    }
    for host, since_ms in sorted(hosts):
        hole = case.run.coverage.client_gap(host, since_ms, end)
        if hole is not None:
            return Gap(NOT_COVERED, host, *hole, kind=CLIENT_LOG)
    return None


def _unseen_change(case: GroupCase, finding: Finding) -> Gap | None:
    """A time before what a dump showed of which the logs tell nothing: it may not have settled."""
    seen_ms = finding.seen_ms
    if seen_ms is None:
        return None
    first_ms = seen_ms if finding.first_ms is None else finding.first_ms
    return logs_gap(case, first_ms, seen_ms, PERSISTENT_MS)


def _late_offsets(case: GroupCase, first_ms: int | None) -> Gap | None:
    """A broker whose stored offsets were not copied before: what was committed is not known."""
    stores = case.run.offsets_ms
    if not case.run.coverage.known or stores is None or first_ms is None:
        return None
    for broker in sorted(group_brokers(case)):
        if stores.get(broker, first_ms + 1) > first_ms:
            return Gap(LOG_BEGINS, broker, None, stores.get(broker), kind=OFFSETS)
        for lost_ms, again_ms in case.run.coverage.offsets_lost.get(broker, ()):
            if lost_ms <= first_ms < again_ms:
                return Gap(NOT_COVERED, broker, lost_ms, again_ms, kind=OFFSETS)
    return None


def _members_gap(case: GroupCase, first_ms: int) -> Gap | None:
    """A broker that did not list the members at the end, and whose log does not tell of all since.

    Of one without a log nothing told when members went: its list has to be that of the ledger.

    Args:
        case: the group.
        first_ms: since when it is so; a list from before tells nothing of it.
    """
    if case.members and all(map(is_proxied, case.members)):
        return None
    lists = _newest_lists(case)
    dumped_ms = end_of(case)
    end = max(dumped_ms, first_ms)
    processes = Counter(member["client_id"] for member in case.members)
    listed_ids = {one for _, ids in lists.values() for one in ids}
    for broker in sorted(group_brokers(case) - case.run.down):
        made_ms, ids = lists.get(broker, (0, Counter()))
        if first_ms > max(dumped_ms, made_ms) or end > made_ms + dumps.SAME_ROUND_MS:
            gap = case.run.coverage.gap(broker, made_ms, end)
        else:
            gap = case.run.coverage.gap(broker, end, end, down=True)
            known = all(processes[one] == count for one, count in ids.items())
            if gap and (gap.reason == LOG_BEGINS or (known and processes.keys() <= listed_ids)):
                gap = None
        if gap is not None:
            return gap
    return None


def _outage_gap(case: GroupCase) -> Gap | None:
    """A broker whose master was gone when its logs ended: it may be back since.

    So may another copy of it be the master, of which nothing was collected.
    """
    end = end_of(case)
    for broker in sorted(group_brokers(case) & case.run.masters.keys()):
        outages = case.run.masters[broker]
        if outages and outages[-1].up_ms is None:
            down_ms, coverage = outages[-1].down_ms, case.run.coverage
            if case.run.missing:
                return Gap(NOT_COVERED, min(case.run.missing), None, None)
            gap = coverage.gap(broker, end, end)
            if gap is not None and gap.reason == LOG_ENDED:
                return gap
            gap = coverage.gap(broker, down_ms, end, down=True)
            gap = gap or coverage.name_server_gap(down_ms, end)
            if gap is not None:
                return gap
    return None


def _newest_lists(case: GroupCase) -> dict[str, tuple[int, Counter[str]]]:
    """By broker when its newest whole list was made, and how often that has each client id."""
    lists: dict[str, tuple[int, Counter[str]]] = {}
    for row in dumps.broker_answers(case):
        broker, made_ms = row["asked_broker"], row["observed_ms"]
        if broker not in lists or made_ms > lists[broker][0]:
            lists[broker] = (made_ms, Counter())
        if row["client_id"] is not None and made_ms == lists[broker][0]:
            lists[broker][1][row["client_id"]] += 1
    return lists


def _strategy_gap(case: GroupCase) -> Gap | None:
    """A member of which no file tells how it divides, in a group others of which tell it.

    Where nobody tells it, one strategy is fitted to all that members hold.
    """
    if not case.run.coverage.known:
        return None
    joins = (
        row for row in case.tables["cluster_events"] if row["event_type"] == events.CONSUMER_JOIN
    )
    told = {row["client_id"] for row in joins if row["strategy"]}
    dividing = {
        row["client_id"]
        for row in case.members
        if row["rebalance_mode"] == CLIENT_REBALANCE and row["message_model"] != BROADCASTING
    }
    if dividing <= told or not dividing & told:
        return None
    return Gap(NOT_COVERED, min(dividing - told), None, None, kind=STRATEGY)


def without_evidence(
    rule: Rule, case: GroupCase, found: Iterable[Finding], verdict: str
) -> Iterator[Finding]:
    """The findings; those that lack evidence are for information, with the reason, and so is a
    state that has ended, with what shows that.

    Args:
        rule: whose.
        case: the group.
        found: by the rule.
        verdict: of the group: EQUAL shows that all divide as they are taken to.
    """
    for finding in found:
        if finding.last_ms is not None and (rule.state or finding.ended_by):
            yield as_ended(case, rule, finding, finding.last_ms)
            continue
        severity = finding.severity or rule.severity
        needs = rule.needs if finding.needs is None else finding.needs
        gap = None
        if severity != INFO:
            client_id = finding.client_id if needs.clients else None
            gap = finding.gap or (_client_hole(case, finding, client_id) if needs.roles else None)
            gap = gap or _unseen_change(case, finding)
            gap = gap or gap_of(case, needs, finding.first_ms, finding.last_ms)
            if rule.by_owners and verdict != EQUAL:
                gap = gap or _strategy_gap(case)
        yield finding if gap is None else as_not_sure(finding, gap)


def as_ended(case: GroupCase, rule: Rule, finding: Finding, at_ms: int) -> Finding:
    """The finding for information, with when it ended and what shows it."""
    return ended(rule, finding, at_ms, finding.ended_by or _turn(case, at_ms))


def ended(rule: Rule, finding: Finding, at_ms: int, shown_by: str) -> Finding:
    """As `as_ended`, of a finding on a cluster, too."""
    return replace(
        finding,
        severity=INFO,
        summary=f"{finding.summary.removesuffix('.')}; ended at {utc(at_ms)}: {shown_by}.",
        evidence={**finding.evidence, "ended_by": shown_by},
        remedy=f"Nothing now. If it comes back: {finding.remedy or rule.remedy}",
    )


def _turn(case: GroupCase, at_ms: int) -> str:
    """What happened to the group at a time, with the line of the broker's log that shows it."""
    happened = [row for row in case.consumer_events if row["event_ms"] == at_ms]
    if happened:
        return listed(map(_named, happened), 2)
    epoch = case.epoch_at(at_ms)
    return listed(epoch["causes"], 3) if epoch and epoch["causes"] else "as the logs show"


def _named(event: ConsumerEventsRow) -> str:
    source = event.get("source") or ""
    line = f" ({source})" if source.startswith("brokers/") else ""
    return f"{event['event_type']} of {event['client_id']}{line}"


def as_not_sure(finding: Finding, gap: Gap) -> Finding:
    """The finding for information, with what is missing to be sure of it."""
    why = gap_text(gap)
    return replace(
        finding,
        severity=INFO,
        summary=f"{finding.summary.removesuffix('.')}; not sure: {why}.",
        evidence={**finding.evidence, "not_covered": gap.reason, "why": why},
        remedy=settled_by(gap),
    )


_BY_KIND = {
    TORN: (
        "lines of the broker.log of {host} were refused: they may show members",
        "Copy the broker.log of {host} again, unchanged, or dump consumerConnection of the group.",
    ),
    CLOCK: (
        "the clock of a broker is off, and its times are not corrected",
        "Name the broker's time zone in collection.toml, or synchronise its clock.",
    ),
    CLIENT_CLOCK: (
        "the clock of a client may be off: nothing compares it with the brokers' clocks",
        "Name the client's time zone in collection.toml, and collect the logs of its brokers.",
    ),
    ANSWER: (
        "no answer of a broker shows whether a member is online",
        "Dump consumerConnection of the group, asked of every broker.",
    ),
    BEFORE: (
        "no dump shows the queues from before the group came",
        "Dump topicStatus of the group's topics every night, before groups come.",
    ),
    CREATED: (
        "no log records when the queues were created",
        "Collect broker.log of every broker, with all rotated files, and dump again.",
    ),
    STRATEGY: (
        "the strategy of some members is in no file",
        "Dump consumerStatus -i {host}, or collect its rocketmq_client.log.",
    ),
    ASSIGNS: (
        "no file tells whether every lite pull member divides what it subscribes",
        "Dump consumerStatus of the group: its members' properties tell.",
    ),
    QUEUES: (
        "dumps show queues of a topic on {host} that no other file tells of",
        "Copy topics.json of {host}, or dump topicRoute of the group's topics.",
    ),
}
"""What is missing in words, and what would settle it."""


def gap_text(gap: Gap) -> str:
    """The gap in words."""
    if gap.kind in _BY_KIND:
        return _BY_KIND[gap.kind][0].format(host=gap.host)
    if not gap.host:
        return "members came, went or changed their topics, and no line of a log shows it"
    if gap.kind == RETURNED and gap.from_ms is not None:
        return f"{gap.host} went down at {utc(gap.from_ms)}, goes on, and no log has its return"
    if gap.kind == STOPPED and gap.to_ms is not None:
        return f"{gap.host} was back at {utc(gap.to_ms)}, and no log has when it went"
    log = f"the {gap.kind} of {gap.host}"
    if gap.reason == LOG_BEGINS and gap.to_ms is not None:
        return f"{log} that was collected begins at {utc(gap.to_ms)}"
    if gap.reason == LOG_ENDED and gap.from_ms is not None:
        return f"{log} that was collected ends at {utc(gap.from_ms)}"
    if gap.from_ms is not None:
        until = "on" if gap.to_ms is None else f"to {utc(gap.to_ms)}"
        return f"{log} has nothing from {utc(gap.from_ms)} {until}"
    return f"{log} was not collected"


def settled_by(gap: Gap) -> str:
    """The one file that would settle it."""
    if gap.kind in _BY_KIND:
        return _BY_KIND[gap.kind][1].format(host=gap.host)
    if gap.kind == TOPICS:
        return _BY_KIND[QUEUES][1].format(host=gap.host)
    if not gap.host:
        return _BY_KIND[CREATED][1]
    if gap.kind == OFFSETS:
        return f"Copy config/consumerOffset.json of {gap.host} every few minutes."
    if gap.kind == "log":
        which = "every name server" if gap.host == NAME_SERVERS else gap.host
        return f"Copy namesrv.log of {which}, with all rotated files."
    if gap.kind == CLIENT_LOG:
        return f"Copy all files of the rocketmq_client.log of {gap.host} (other_days/), too."
    if gap.reason == LOG_ENDED:
        return f"Copy the broker.log of {gap.host} after the dumps, up to its last line."
    if gap.reason == LOG_BEGINS:
        return (
            f"Copy the older files of the broker.log of {gap.host} (otherdays/), too, or "
            f"dump consumerConnection -b {gap.host}."
        )
    return f"Copy the broker.log of {gap.host}, with all rotated files (otherdays/)."
