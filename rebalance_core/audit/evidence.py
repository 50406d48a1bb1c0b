"""Judges the evidence for a group's members: brokers' lists and gaps in logs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, listings
from rebalance_core.audit.group_snapshot import PERSISTENT_MS, GroupSnapshot
from rebalance_core.audit.topic_settings import subscribed_topics
from rebalance_core.audit.unknowns import (
    MAY_ASSIGN,
    MEMBERS_UNLOGGED,
    broker_log,
    refused_lines,
    return_unlogged,
)
from rebalance_core.model import events
from rebalance_core.model.queue import is_retry_topic, retry_topic
from rebalance_core.model.timeline import Unknown
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS, REBALANCE_WAIT_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import EpochsRow, ObservedMembersRow


def group_brokers(group: GroupSnapshot) -> set[str]:
    """Return the brokers of the group's topics or, without members, all known to the group or
    cluster.
    """
    topics = {*subscribed_topics(group, retry=True), retry_topic(group.consumer_group)}
    rows = [row for row in group.tables["topics"] if not group.members or row["topic"] in topics]
    brokers = {row["broker_name"] for row in (*group.owned, *rows) if row["broker_name"]}
    return brokers | shown_brokers(group) or set(group.run.coverage.brokers)


def shown_brokers(group: GroupSnapshot) -> set[str]:
    """Return the brokers with queues that dumps show as the group's, for any topic."""
    return {broker for _, broker in shown_pairs(group, retry=True)}


def shown_pairs(group: GroupSnapshot, *, retry: bool = False) -> set[tuple[str, str]]:
    """Return the topics and brokers of queues that dumps show as the group's."""
    rows = (*group.facts["HELD_QUEUE"], *group.facts["QUEUE_PROGRESS"])
    pairs = {(row["topic"], row["broker_name"]) for row in rows}
    return {pair for pair in pairs if retry or not is_retry_topic(pair[0])}


def contradicted(group: GroupSnapshot) -> bool:
    """Return True if a member reports at the end that its topics are not those in the logs."""
    last: dict[str, ObservedMembersRow] = {}
    for row in group.tables["observed_members"]:
        answered = row["asked_broker"] is None and "-consumerStatus-" in row["source"]
        if answered and row["observed_ms"] >= last.get(row["client_id"], row)["observed_ms"]:
            last[row["client_id"]] = row
    cut = {
        row["source"] for row in group.facts["DUMP"] if dumps.flag(row["details"].get("partial"))
    }
    for member in group.members:
        said = last.get(member["client_id"])
        if said is None or member["subscriptions"] is None or said["source"] in cut:
            continue
        stated = {topic for topic in said["subscriptions"] or () if not is_retry_topic(topic)}
        subscribed = {topic for topic in member["subscriptions"] if not is_retry_topic(topic)}
        changed = any(
            event["event_type"] in (events.SUBSCRIBE, events.UNSUBSCRIBE, events.CONSUMER_JOIN)
            and event["client_id"] == member["client_id"]
            and event["event_ms"] > said["observed_ms"] - SETTLING_MS
            for event in group.tables["cluster_events"]
        )
        if stated and stated != subscribed and not changed:
            return True
    return False


def newest_dump_ms(group: GroupSnapshot) -> int | None:
    """Return when the group's latest dump was made, or None if there is none."""
    return max((row["first_ms"] for row in group.facts["DUMP"]), default=None)


def end_of(group: GroupSnapshot) -> int:
    """Return the time for which the final state is reported: that of the group's latest dump, or of
    the last line of any server.
    """
    newest_ms = newest_dump_ms(group)
    if newest_ms is not None:
        return newest_ms
    coverage = group.run.coverage
    servers = [*coverage.brokers.values()]
    servers += [coverage.name_servers] if coverage.name_servers else []
    return max((log.end_ms for log in servers), default=0)


def listed_now(group: GroupSnapshot, since_ms: int = 0) -> bool:
    """Return True if each broker of the group lists the ledger's members equally often in the last
    round.

    If so, neither a log nor a clock affects who the members are now.

    Args:
        group: the group's snapshot.
        since_ms: earlier lists are ignored.
    """
    until_ms = lists_hold_until(group)
    return until_ms is not None and max(end_of(group), since_ms) <= until_ms


def lists_hold_until(group: GroupSnapshot) -> int | None:
    """Return the time until which the brokers' newest lists hold if each has the ledger's members,
    with equal counts; None if a list differs or a broker of the group was not asked.
    """
    lists = newest_lists(group)
    processes = Counter(member["client_id"] for member in group.members)
    asked = group_brokers(group) - group.run.down
    if any(broker not in lists or lists[broker][1] != processes for broker in asked):
        return None
    made_ms = min((lists[broker][0] for broker in asked), default=None)
    return None if made_ms is None else made_ms + listings.SAME_ROUND_MS


def unlogged_unless_listed(group: GroupSnapshot, since_ms: int = 0) -> Unknown | None:
    """Return why lines about members may be missing, or None if none are or the last round lists
    the members.
    """
    gap = unlogged(group)
    if gap is None or gap is MAY_ASSIGN or contradicted(group):
        return gap
    return None if listed_now(group, since_ms) else gap


def shown_by_dumps(group: GroupSnapshot, epoch: EpochsRow) -> bool:
    """Return True if only dumps show the event that began the epoch, so it may have happened
    earlier.

    This does not apply to a deleted topic, whose queues no dump shows any more.
    """
    rows = [*group.tables["cluster_events"], *group.tables["topics"]]
    begun = [row for row in rows if row["event_ms"] == epoch["from_ms"]]
    return bool(begun) and all(
        (row.get("source") or "").startswith("mqadmin/")
        and row["event_type"] != events.TOPIC_DELETED
        for row in begun
    )


def unlogged(group: GroupSnapshot) -> Unknown | None:
    """Return why lines about members may be missing, or None.

    A member joined or left without a log line, or no file shows whether it rebalances its
    subscriptions.
    """
    if dumps.may_assign(group):
        return MAY_ASSIGN
    if not group.run.coverage.known:
        return None
    back = sorted(group_brokers(group) & group.run.returned.keys())
    if back:
        return return_unlogged(back[0], group.run.returned[back[0]])
    again = _answered_in_outage(group)
    if again is not None:
        return again
    odd = any(row["rule_id"] in UNLOGGED for row in group.tables["findings"])
    odd = odd or contradicted(group) or listed_once(group) or _listed_no_more(group)
    return MEMBERS_UNLOGGED if odd else None


def _answered_in_outage(group: GroupSnapshot) -> Unknown | None:
    """Return a broker that lists members while its master is down according to events, so it was
    back earlier.
    """
    for row in listings.broker_answers(group):
        broker, at_ms = row["asked_broker"], row["observed_ms"]
        for outage in group.run.masters.get(broker, ()) if row["client_id"] else ():
            gone_ms = outage.down_ms + MINUTE_MS
            if gone_ms < at_ms < (outage.up_ms or at_ms + 1):
                return return_unlogged(broker, outage.down_ms)
    return None


def listed_once(group: GroupSnapshot) -> bool:
    """Return True if at the end brokers list only once a client id that two processes share in the
    logs.
    """
    since: dict[str, list[int]] = {}
    for member in group.members:
        since.setdefault(member["client_id"], []).append(member["from_ms"])
    lists = newest_lists(group)
    for client_id, begins in since.items():
        later = [ids[client_id] for ms, ids in lists.values() if ms > max(begins) + SETTLING_MS]
        if len(begins) > 1 and later and max(later) < 2:
            return True
    return False


def _listed_no_more(group: GroupSnapshot) -> bool:
    """Return True if a broker dropped a member from its list at the end, after its log had ended.

    It is a member of the ledger only because no later list of another broker was collected.
    """
    unlisted = {
        broker: {row["client_id"] for row in group.members} - ids.keys()
        for broker, (made_ms, ids) in newest_lists(group).items()
        if group.run.coverage.of_broker(broker).gap(made_ms, made_ms)
    }
    return any(unlisted.values()) and any(
        row["client_id"] in unlisted.get(row["asked_broker"], ())
        for row in listings.broker_answers(group)
    )


SETTLING_MS = HEARTBEAT_MS + REBALANCE_WAIT_MS
"""Brokers learn of a client's subscriptions with its next heartbeat."""
UNLOGGED = ("INGEST_JOIN_NOT_LOGGED", "INGEST_LEAVE_NOT_LOGGED", "INGEST_CONTRADICTION")
OWNERS_UNSURE = (*UNLOGGED, "INGEST_STRATEGY_UNKNOWN", "INGEST_MAY_ASSIGN")
"""Findings that make ownership unknown at any time."""


def unlogged_group(group: GroupSnapshot) -> Unknown | None:
    """Return the gap for one of the group's brokers if no log of any of them was read
    completely.
    """
    brokers = sorted(group_brokers(group))
    logs = [group.run.coverage.brokers[b] for b in brokers if group.run.coverage.ends(b)]
    if any(not log.torn for log in logs):
        return None
    if logs:
        return refused_lines(logs[0].file.host)
    return broker_log(brokers[0] if brokers else "the brokers").missing()


def unlogged_end(group: GroupSnapshot) -> Unknown | None:
    """Return the gap after the last log of the group's brokers, if the collection continues beyond
    it.
    """
    coverage, at_ms = group.run.coverage, group.run.end_ms - PERSISTENT_MS
    logs = [coverage.brokers[b] for b in sorted(group_brokers(group)) if coverage.ends(b)]
    if not logs or any(log.down or log.end_ms >= at_ms for log in logs):
        return None
    return max(logs, key=lambda log: log.end_ms).timeline.gap(group.run.end_ms, group.run.end_ms)


def newest_lists(group: GroupSnapshot) -> dict[str, tuple[int, Counter[str]]]:
    """Return the time of each broker's latest complete list, and how often it contains each client
    id.
    """
    lists: dict[str, tuple[int, Counter[str]]] = {}
    for row in listings.broker_answers(group):
        broker, made_ms = row["asked_broker"], row["observed_ms"]
        if broker not in lists or made_ms > lists[broker][0]:
            lists[broker] = (made_ms, Counter())
        if row["client_id"] is not None and made_ms == lists[broker][0]:
            lists[broker][1][row["client_id"]] += 1
    return lists
