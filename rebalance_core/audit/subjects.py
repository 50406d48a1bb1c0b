"""Subjects that rules read besides the line or dump that shows a finding, as timelines of one
group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rebalance_core.audit import listings, unknowns
from rebalance_core.audit.coverage import ALWAYS, RUNS, Process
from rebalance_core.audit.duplicate_ids import ids_seen_twice
from rebalance_core.audit.evidence import (
    contradicted,
    end_of,
    group_brokers,
    lists_hold_until,
    newest_lists,
    shown_pairs,
    unlogged,
    unlogged_group,
)
from rebalance_core.audit.group_snapshot import PERSISTENT_MS, Finding, GroupSnapshot, Subject
from rebalance_core.audit.logged_causes import MEMBERS_CHANGE
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.audit.topic_settings import subscribed_topics
from rebalance_core.ingest.hashed_addresses import looks_masked
from rebalance_core.model import events
from rebalance_core.model.group_settings import BROADCASTING, CLIENT_REBALANCE
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.timeline import EVER_MS, Timeline, Unknown, first_gap
from rebalance_core.model.times import MINUTE_MS, SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupTopicsRow

Timelines = Iterator[Timeline[Process]]


def gap_of(group: GroupSnapshot, subject: Subject, finding: Finding) -> Unknown | None:
    """Return why a subject is unknown at the time of a finding; None: it is known."""
    span = _read_over(group, subject, finding)
    if span is None:
        return None
    return first_gap(subject.timelines(group, finding), *span)


def _read_over(group: GroupSnapshot, subject: Subject, finding: Finding) -> tuple[int, int] | None:
    """Return the period for which a rule reads a subject for a finding, or None if it does not."""
    begin_ms, until_ms = finding.first_ms, finding.last_ms
    if subject.when == "BEGIN":
        return None if begin_ms is None else (begin_ms, begin_ms)
    if until_ms is None:
        until_ms = max(end_of(group), begin_ms or 0, finding.shown_ms or 0)
    if subject.when == "END":
        return until_ms, until_ms
    return group.run.start_ms if begin_ms is None else begin_ms - subject.before_ms, until_ms


def _logs(group: GroupSnapshot) -> Timelines:
    """Yield the coverage of the logs of the group's brokers."""
    for broker in sorted(group_brokers(group)):
        yield group.run.coverage.of_broker(broker)


def _known_now(group: GroupSnapshot, gap: Unknown) -> Timeline[Process]:
    """Return a timeline that is unknown, except at the end if brokers' lists show the members."""
    timeline: Timeline[Process] = Timeline.always(gap)
    until_ms = lists_hold_until(group)
    return timeline if until_ms is None else timeline.put(end_of(group), until_ms + 1, RUNS)


def _clocks(group: GroupSnapshot, _: Finding) -> Timelines:
    until_ms = lists_hold_until(group)
    for clock in group.run.coverage.clocks_of(sorted(group_brokers(group))):
        yield clock if until_ms is None else clock.put(end_of(group), until_ms + 1, RUNS)


def _events(group: GroupSnapshot, finding: Finding) -> Timelines:
    """Yield the times for which logs cover joins and leaves, which brokers log completely."""
    yield from _clocks(group, finding)
    yield from _suspensions(group, None)
    gap = unlogged(group) or (unlogged_group(group) if group.run.coverage.known else None)
    if gap is not None:
        yield Timeline.always(gap)
    yield from _logs(group)


def _members(group: GroupSnapshot, finding: Finding) -> Timelines:
    yield from _clocks(group, finding)
    yield from _listed_members(group, finding)


def _ids(group: GroupSnapshot, _: Finding) -> Timelines:
    """Yield the process of each id where a tool masked the distinguishing part."""
    masked = next(filter(looks_masked, ids_seen_twice(group)), None)
    if masked is not None:
        yield Timeline.always(unknowns.ids_masked(masked))


def _listed_members(group: GroupSnapshot, finding: Finding) -> Timelines:
    """Yield who the members are: according to logs since a broker's list, or the list at the
    end.
    """
    yield from _ids(group, finding)
    yield from _suspensions(group, None)
    gap = unlogged(group)
    if gap is not None:
        always = gap is unknowns.MAY_ASSIGN or contradicted(group)
        yield Timeline.always(gap) if always else _known_now(group, gap)
    if group.run.coverage.known and any(
        row["rule_id"] == "INGEST_SUBSCRIPTION_NOT_LOGGED" for row in group.tables["findings"]
    ):  # a dump shows the final subscriptions, but not since when
        past: Timeline[Process] = Timeline.always(unknowns.MEMBERS_UNLOGGED)
        yield past.put(end_of(group), EVER_MS, RUNS)
    if group.members and all(map(is_proxied, group.members)):
        return
    lists = newest_lists(group)
    processes = Counter(member["client_id"] for member in group.members)
    listed = {client_id for _, ids in lists.values() for client_id in ids}
    for broker in sorted(group_brokers(group) - group.run.down):
        log = group.run.coverage.of_broker(broker)
        if broker not in lists:
            yield log.proven(())
            continue
        made_ms, ids = lists[broker]
        agrees = all(processes[client_id] == count for client_id, count in ids.items())
        if agrees and processes.keys() <= listed:
            until_ms = made_ms + listings.SAME_ROUND_MS + 1
            members_unlogged: Timeline[Process] = Timeline.always(unknowns.MEMBERS_UNLOGGED)
            yield log.proven([made_ms]).refined(members_unlogged.put(made_ms, until_ms, RUNS))
        else:
            yield log.proven([made_ms])
    yield from _masters(group)


def _masters(group: GroupSnapshot) -> Timelines:
    """Yield the brokers whose masters went down for good, by their and the name servers' logs.

    Another copy of such a broker, from which nothing was collected, may also be the master.
    """
    coverage = group.run.coverage
    for broker in sorted(group_brokers(group) & group.run.masters.keys()):
        outages = group.run.masters[broker]
        if outages and outages[-1].up_ms is None:
            if group.run.missing:
                yield Timeline.always(unknowns.broker_log(min(group.run.missing)).missing())
            yield coverage.of_broker(broker).proven([outages[-1].down_ms])
            yield coverage.routes.proven([outages[-1].down_ms])


def _suspensions(group: GroupSnapshot, client_id: str | None) -> Timelines:
    """Yield which members are suspended; a gap in the client's log may hide the end.

    Args:
        group: its snapshot.
        client_id: the client; None: all members.
    """
    folders: dict[str, set[str]] = {}
    for row in group.consumer_events:
        source = row["source"] or ""
        paused = row["event_type"] in (events.CONSUMER_SUSPEND, events.CONSUMER_RESUME)
        if paused and source.startswith("clients/"):
            folders.setdefault(row["client_id"], set()).add(source.split("/")[1])
    for member in group.tables["memberships"]:
        if not member["suspended"] or client_id not in (None, member["client_id"]):
            continue
        until_ms = EVER_MS if member["to_ms"] is None else member["to_ms"]
        for folder in sorted(folders.get(member["client_id"], ())):
            log = group.run.coverage.of_client(folder)
            for gap, why in log.gaps():
                begin_ms = max(gap.from_ms, member["from_ms"])
                if begin_ms < min(gap.to_ms, until_ms):
                    yield ALWAYS.put(begin_ms, until_ms, why)
                    break


def _suspensions_of(group: GroupSnapshot, finding: Finding) -> Timelines:
    return _suspensions(group, finding.client_id)


def _undated(group: GroupSnapshot, _: Finding) -> Timelines:
    """Yield joins and leaves that only a dump shows, at some time since the previous dump.

    A member may leave at any time after its join.
    """
    came: dict[str, int] = {}
    for row in group.consumer_events if group.run.coverage.known else ():
        if row["event_type"] not in MEMBERS_CHANGE or row["detail"] == events.OBSERVED:
            continue
        earliest_ms = came.get(row["client_id"], group.run.start_ms)
        came[row["client_id"]] = row["event_ms"]
        if (row.get("source") or "").startswith("mqadmin/"):
            yield ALWAYS.put(earliest_ms, row["event_ms"] + 1, unknowns.MEMBERS_UNLOGGED)


def _routes(group: GroupSnapshot, _: Finding) -> Timelines:
    """Yield which brokers were up."""
    yield group.run.coverage.routes
    for broker in sorted(group_brokers(group) & group.run.stops.keys()):
        yield group.run.stops[broker]


def _masters_back(group: GroupSnapshot, finding: Finding) -> Timelines:
    """Yield when the finding's broker, or each of the group's, was without a master."""
    brokers = {finding.broker_name} if finding.broker_name else group_brokers(group)
    for broker in sorted(brokers & group.run.stops.keys()):
        yield group.run.stops[broker]


def _causes(group: GroupSnapshot, finding: Finding) -> Timelines:
    yield from _events(group, finding)
    yield from _undated(group, finding)
    yield from _routes(group, finding)


def _commits(group: GroupSnapshot, _: Finding) -> Timelines:
    """Yield the times for which copies of consumerOffset.json cover the commits."""
    stores, coverage = group.run.offsets_ms, group.run.coverage
    if not coverage.known or stores is None:
        return
    for broker in sorted(group_brokers(group)):
        store = unknowns.offset_store(broker)
        copied_ms = stores.get(broker)
        copies = ALWAYS.put(
            -EVER_MS, EVER_MS if copied_ms is None else copied_ms, store.begins(copied_ms)
        )
        for lost_ms, again_ms in coverage.offsets_lost.get(broker, ()):
            copies = copies.put(lost_ms, again_ms, store.silent(lost_ms, again_ms))
        yield copies


def _strategies(group: GroupSnapshot, _: Finding) -> Timelines:
    """Yield each member's strategy.

    Where no file states it of any member, one strategy is fitted to all that members hold.
    """
    if not group.run.coverage.known:
        return
    joins = (
        row for row in group.tables["cluster_events"] if row["event_type"] == events.CONSUMER_JOIN
    )
    stated = {row["client_id"] for row in joins if row["strategy"]}
    dividing = {
        row["client_id"]
        for row in group.members
        if row["rebalance_mode"] == CLIENT_REBALANCE and row["message_model"] != BROADCASTING
    }
    if dividing - stated and dividing & stated:
        yield Timeline.always(unknowns.strategy_unstated(min(dividing - stated)))


def _topics(group: GroupSnapshot, finding: Finding) -> Timelines:
    """Yield how the group's topics are set up, by the logs since a store or dump shows them.

    A broker that may be up again changes the queues that members share; one with slaves keeps its
    queues while its master is gone. If a log begins too late, another file that shows the topic may
    have the missing facts.
    """
    run, end_ms = group.run, end_of(group)
    for broker in sorted(group_brokers(group) & run.stops.keys() - run.slaves):
        yield run.stops[broker]
    topics = {(row["topic"], row["broker_name"]): row for row in group.tables["topics"]}
    unlisted = {*shown_pairs(group) - topics.keys(), *_grown(group, topics)}
    if unlisted and run.coverage.known:
        yield Timeline.always(unknowns.queues_unlisted(min(broker for _, broker in unlisted)))
    brokers = group_brokers(group)
    unseen = run.missing - brokers if run.coverage.known else frozenset[str]()
    if unseen and not group.facts["QUEUE_PROGRESS"]:  # it shows the queues of every broker
        yield Timeline.always(unknowns.broker_log(min(unseen)).missing())
    nowhere = {*subscribed_topics(group)} - {topic for topic, _ in topics}
    for broker in sorted(brokers):
        stored_ms = run.coverage.topic_stores.get(broker, 0)
        if nowhere and not stored_ms and run.coverage.known:  # its line may have been dropped
            yield Timeline.always(unknowns.topic_store(broker).missing())
            continue
        shown_ms = _shown_ms(group, broker)
        log = run.coverage.of_broker(broker)
        shown = [stored_ms, shown_ms]
        if not nowhere:
            shown.append(finding.first_ms or 0)
            first = log.intervals[0]
            if run.coverage.ends(broker):
                log = log.put(first.from_ms, first.to_ms, RUNS)
        log = log.proven(shown)
        # a file from after the end also shows the state at the end
        for at_ms in shown:
            log = log.put(min(at_ms, end_ms), at_ms + 1, RUNS)
        yield log.put(shown_ms, shown_ms + MINUTE_MS + 1, RUNS)


def _grown(
    group: GroupSnapshot, topics: Mapping[tuple[str, str], GroupTopicsRow]
) -> Iterator[tuple[str, str]]:
    """Yield topics and brokers for which consumerProgress shows more queues than were known.

    A broker answers with the queues that the topic has at that time.
    """
    for shown in group.facts["QUEUE_PROGRESS"]:
        row = topics.get((shown["topic"], shown["broker_name"]))
        if row is not None and shown["first_ms"] > row["event_ms"]:
            queues = max(row["read_queue_nums"] or 0, row["write_queue_nums"] or 0)
            if queues <= shown["queue_id"]:
                yield shown["topic"], shown["broker_name"]


def _shown_ms(group: GroupSnapshot, broker: str) -> int:
    """Return when consumerProgress last showed all of the group's topics on a broker, or 0.

    Other dumps of its round come within a minute.
    """
    topics = {row["topic"] for row in group.tables["topics"] if row["broker_name"] == broker}
    shown = dict.fromkeys((topic for topic in topics if not is_retry_topic(topic)), 0)
    for row in group.facts["QUEUE_PROGRESS"]:
        if row["broker_name"] == broker and row["topic"] in shown:
            shown[row["topic"]] = max(shown[row["topic"]], row["first_ms"])
    return min(shown.values(), default=0)


def _is_denied(group: GroupSnapshot) -> bool:
    """Return whether a broker answered that no member is online."""
    return bool(group.facts["NOT_ONLINE"] or group.facts["GROUP_AT_BROKER"])


def _members_or_denied(group: GroupSnapshot, finding: Finding) -> Timelines:
    yield from _clocks(group, finding) if _is_denied(group) else _members(group, finding)


def _events_or_denied(group: GroupSnapshot, finding: Finding) -> Timelines:
    yield from _clocks(group, finding) if _is_denied(group) else _events(group, finding)


IDS = Subject("IDS", "which process has which id: ids without a masked part", _ids)
MEMBERS = Subject(
    "MEMBERS",
    "who the members are: the brokers' logs, or at the end a complete consumerConnection from each "
    "broker of the group",
    _members,
)
LISTED_MEMBERS = Subject(
    "LISTED_MEMBERS", "MEMBERS, regardless of when they joined", _listed_members
)
MEMBERS_OR_DENIED = Subject(
    "MEMBERS_OR_DENIED",
    "MEMBERS, or the answer of a broker that no member is online",
    _members_or_denied,
)
TOPICS = Subject(
    "TOPICS",
    "how topics are set up: the brokers' logs, or a later topics.json or consumerProgress; for a "
    "topic that no file shows, topics.json; and whether a broker that went down is back",
    _topics,
)
STRATEGIES = Subject("STRATEGIES", "the strategy of each member", _strategies)
SUSPENSIONS = Subject(
    "SUSPENSIONS", "whether the client is suspended: its log without a gap", _suspensions_of
)
EVENTS = Subject("EVENTS", "joins and departures in between: the brokers' logs", _events, "SPAN")
EVENTS_OR_DENIED = Subject(
    "EVENTS_OR_DENIED",
    "EVENTS, or the answer of a broker that no member is online",
    _events_or_denied,
    "SPAN",
)
ROUTES = Subject("ROUTES", "which brokers were up meanwhile: a name server's log", _routes, "SPAN")
MASTERS = Subject(
    "MASTERS", "how long a master was gone: a log with its return", _masters_back, "SPAN"
)
CAUSES = Subject(
    "CAUSES",
    f"what may explain it: EVENTS and ROUTES, and those of {PERSISTENT_MS // SECOND_MS} s before",
    _causes,
    "SPAN",
    before_ms=PERSISTENT_MS,
)
COMMITS = Subject(
    "COMMITS", "what was committed before: an earlier consumerOffset.json", _commits, "BEGIN"
)
COMMITTED = Subject(
    "COMMITTED", "commits at the end: a complete consumerOffset.json from that time", _commits
)
SUBJECTS = (
    IDS,
    MEMBERS,
    LISTED_MEMBERS,
    MEMBERS_OR_DENIED,
    TOPICS,
    STRATEGIES,
    SUSPENSIONS,
    EVENTS,
    EVENTS_OR_DENIED,
    ROUTES,
    MASTERS,
    CAUSES,
    COMMITS,
    COMMITTED,
)
"""Every subject, in the order of the documentation."""


def logs_gap(group: GroupSnapshot, first_ms: int, last_ms: int | None) -> Unknown | None:
    """Return the gaps in the logs of the group's brokers; ``last_ms`` None: up to the end."""
    until_ms = end_of(group) if last_ms is None else last_ms
    return first_gap(_logs(group), first_ms, until_ms)
