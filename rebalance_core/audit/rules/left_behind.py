"""Offsets of groups without a member, from which no client continues."""

from collections.abc import Collection, Iterable, Iterator

from rebalance_core.audit import dumps, listings, outsiders
from rebalance_core.audit.coverage import STORES_APART_MS
from rebalance_core.audit.evidence import end_of
from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.logged_causes import servers_near
from rebalance_core.audit.offsets import Offsets, backlog, messages
from rebalance_core.audit.progress import deleted_unread, progress_rows
from rebalance_core.audit.rules.consumption import with_deleted
from rebalance_core.audit.stretches import has_settled
from rebalance_core.audit.subjects import MEMBERS, MEMBERS_OR_DENIED, TOPICS, logs_gap
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.topic_settings import (
    configurations,
    is_configured_nowhere,
    is_deleted,
    lacks_configuration,
)
from rebalance_core.audit.unknowns import NOT_ASKED
from rebalance_core.model.events import CONSUMER_LOST, EXPIRED, TOPIC_CONFIG
from rebalance_core.model.queue import MessageQueue, is_retry_topic, is_system_topic
from rebalance_core.model.times import DAY_MS, MINUTE_MS, OFFSET_PERSIST_MS, utc
from rebalance_core.model.verdicts import EMPTY, INFO, WARNING, Severity
from rebalance_core.model.versions import nearest_version

RESTART_MS = MINUTE_MS
"""A group that is offline for less than this is probably restarting."""
ABANDONED_MS = DAY_MS
"""A group without clients for a day, according to complete logs, is no longer used: even daily jobs
would have run.
"""
MAY_RUN = (
    "Check whether its clients still run (RUNNING_NOT_LISTED) and restart them; delete nothing "
    "until you are sure."
)
MAY_BE_DELETED = (
    "Start its consumers, or delete the group (deleteSubGroup -r true) if it is no longer used. "
    "Unread messages are lost when they expire (fileReservedTime)."
)

OFFSETS_MAY_GO = (
    "If the group will not come back, remove its offsets (deleteSubGroup -r true). Before you "
    "reuse its name, reset its offsets (resetOffsetByTime)."
)


def find_leftover(group: GroupSnapshot) -> Iterator[Finding]:
    """Find offsets of a group, a topic or queues that no longer exist."""
    if dumps.is_system_group(group.consumer_group) or is_broadcasting(group):
        return
    offsets = Offsets(group)
    kept = {
        queue
        for queue in offsets.commits
        if not is_system_topic(queue[0]) and not _was_removed(group, queue, offsets)
    }
    stored_ms = _stored_ms(group)
    gone = {queue for queue in kept & stored_ms.keys() if is_gone(group, queue[1])}
    if gone and not group.members:
        yield _of_group(group, gone, offsets)
        kept -= gone
    config = {(row["topic"], row["broker_name"]): row for row in group.tables["topics"]}
    of_topic: dict[str, list[MessageQueue]] = {}
    outside: dict[str, list[MessageQueue]] = {}
    for queue in sorted(kept):
        row = config.get(queue[:2])
        if row is None or is_retry_topic(queue[0]):
            continue
        if is_deleted(row):
            if stored_ms.get(queue, 0) > row["event_ms"]:
                of_topic.setdefault(queue[0], []).append(queue)
        elif queue[2] >= max(row["read_queue_nums"] or 0, row["write_queue_nums"] or 0):
            outside.setdefault(queue[0], []).append(queue)
    for topic, queues in of_topic.items():
        yield _of_queues(topic, queues, "the topic was deleted there")
    shrunk = _logged_scale_in(group)
    for topic, queues in outside.items():
        logged = topic in shrunk
        why = "the topic has fewer queues there" + (" since a logged scale-in" if logged else "")
        yield _of_queues(topic, queues, why, INFO if logged else WARNING)


def _was_removed(group: GroupSnapshot, queue: MessageQueue, offsets: Offsets) -> bool:
    """Return True if the newest copy of the broker's store lacks an offset that an older copy
    has.
    """
    copies = group.run.coverage.offset_stores.get(queue.broker_name, ())
    seen_ms = offsets.committed_ms[queue]
    return seen_ms in copies and copies[-1] > seen_ms + STORES_APART_MS


def _stored_ms(group: GroupSnapshot) -> dict[MessageQueue, int]:
    """Return queue -> when its broker was last seen receiving or storing an offset for it.

    Clients keep committing their queues of a deleted topic. Brokers of 5.x refuse that
    (rocketmq.md §5.2), so there a client's own line proves nothing.
    """
    nearest = {name: nearest_version(text) for name, text in group.run.versions.items()}
    refusing = {name for name, version in nearest.items() if version and not version.is_v4}
    stored: dict[MessageQueue, int] = {}
    for row in group.tables["committed_offsets"]:
        if row["client_id"] is None or row["broker_name"] not in refusing:
            queue = dumps.queue_of(row)
            stored[queue] = max(row["observed_ms"], stored.get(queue, 0))
    return stored


def _logged_scale_in(group: GroupSnapshot) -> set[str]:
    """Return the topics that lost queues by a logged TOPIC_CONFIG."""
    epochs = {row["epoch"] for row in group.epochs if TOPIC_CONFIG in row["causes"]}
    return {row["topic"] for row in group.tables["ownership"] if row["to_epoch"] in epochs}


def is_gone(group: GroupSnapshot, broker_name: str) -> bool:
    """Return True if the broker's store lacks the group, and no other store has it."""
    return lacks_configuration(group, broker_name) and not configurations(group)


def _of_group(group: GroupSnapshot, queues: set[MessageQueue], offsets: Offsets) -> Finding:
    topics = sorted({queue[0] for queue in queues})
    brokers = sorted({queue[1] for queue in queues})
    deleted = [fact["last_ms"] for fact in group.facts["GROUP_DELETED"]]
    when = f" (deleted at {utc(max(deleted))})" if deleted else ""
    behind = offsets.behind(queues)
    return Finding(
        f"No broker has the group configured{when}, and {listed(brokers, 3)} "
        f"{'keeps' if len(brokers) == 1 else 'keep'} its offsets of "
        f"{plural(len(queues), 'queue')} of {listed(topics, 5)}: a new group with that name "
        f"resumes there ({messages(behind)} behind).",
        {"topics": listed(topics), "brokers": listed(brokers)},
        remedy=OFFSETS_MAY_GO if _has_no_client(group) else None,
        topic=topics[0] if len(topics) == 1 else None,
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=max(deleted, default=None),
    )


def _has_no_client(group: GroupSnapshot) -> bool:
    return outsiders.unlisted_readers(group) is None and _is_abandoned(group)


def _of_queues(
    topic: str, queues: list[MessageQueue], why: str, severity: Severity = WARNING
) -> Finding:
    brokers = sorted({queue[1] for queue in queues})
    names = queue_names((broker, number) for _, broker, number in queues)
    return Finding(
        f"Offsets of {plural(len(queues), 'queue')} of {topic} ({names}) remain: {why}. If it "
        "comes back, the group resumes there.",
        {"queues": names},
        severity=severity,
        topic=topic,
        broker_name=brokers[0] if len(brokers) == 1 else None,
    )


def find_offline(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for a group without members whose messages pile up, or did so until its
    members came back.
    """
    last = group.emptied
    if dumps.is_system_group(group.consumer_group) or is_broadcasting(group):
        return
    if group.members:
        yield from _last_absence(group)
        return
    if last is not None and not has_settled(group, last["epoch"]):
        return
    if is_configured_nowhere(group):
        return  # LEFTOVER_OFFSETS
    since = last["from_ms"] if last is not None else group.run.start_ms
    if any(row["observed_ms"] > since for row in listings.listed_members(group)):
        return
    if last is None and any(
        dumps.holder_address(answer) and answer["first_ms"] >= since
        for answer in dumps.newest_answers(group).values()
    ):
        return  # members hold queues, though no list names them
    unseen = outsiders.unseen_reading(group)
    if unseen is not None and unseen.is_sure:
        return  # PROXY_GROUP_UNSEEN
    unlisted = outsiders.unlisted_readers(group)
    if unlisted is not None and unlisted.goes_on:
        return  # RUNNING_NOT_LISTED
    topics: dict[str, int] = {}
    behind = backlog(group)
    for queue, lag in behind.items():
        topics[queue.topic] = topics.get(queue.topic, 0) + lag
    if topics:
        ended = _how_it_ended(group, since, [queue for queue, lag in behind.items() if lag])
        unasked = last is None and not _is_sure(group)
        sure = _is_sure(group) and _committed_since(group, behind, since, expired="ended" in ended)
        parts = [f"{topic} {count}" for topic, count in sorted(topics.items())]
        # a client that pulls but is listed nowhere is refused, and brokers log this
        may_pull = logs_gap(group, end_of(group) - PERSISTENT_MS, None) is not None
        lost = sorted(_lost_at(group, since))
        near = servers_near(group, since) if lost else ""
        who = f"No member since {utc(since) if last is not None else 'before the logs begin'}"
        why = [f"brokers lost {listed(lost, 3)}"] * bool(lost)
        why += [f"within 30 s: {near}"] * bool(near)
        who += f" ({'; '.join(why)})" if why else ""
        no_client = _has_no_client(group)
        remedy = MAY_RUN if near or may_pull or unlisted else None
        finding = Finding(
            f"{'No broker lists a member' if may_pull and last is None else who}, and "
            f"{messages(sum(topics.values()))} unread: {listed(parts, 5)}.",
            {"behind": listed(parts)} | ended | ({"servers": near} if near else {}),
            severity=None if sure or unasked else INFO,
            first_ms=since,
            remedy=MAY_BE_DELETED if no_client else remedy,
            unknown=NOT_ASKED if unasked else None,
        )
        yield with_deleted(finding, progress_rows(group), deleted_unread(group))


def _is_abandoned(group: GroupSnapshot) -> bool:
    """Return whether complete logs show no member of the group for a day."""
    last = group.emptied
    if last is None or group.run.end_ms - last["from_ms"] < ABANDONED_MS:
        return False
    return logs_gap(group, last["from_ms"], None) is None


def _last_absence(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding, with its end, for the last time that the group had no member for longer than
    a restart takes, if messages waited for the members that came back.

    An audit during that time reported it as open.
    """
    back = next((at for at in reversed(range(1, len(group.epochs))) if _is_return(group, at)), None)
    if back is None:
        return
    first = back - 1
    while first > 0 and group.epochs[first - 1]["status"] == EMPTY:
        first -= 1
    since, until = group.epochs[first]["from_ms"], group.epochs[back]["from_ms"]
    if until - since < RESTART_MS or logs_gap(group, since, until) is not None:
        return
    if any(since < row["observed_ms"] < until for row in listings.listed_members(group)):
        return
    waited: dict[str, int] = {}
    for row in group.tables["pull_starts"]:
        stored, end = row["stored_offset"], row["max_offset"]
        if row["epoch"] != group.epochs[back]["epoch"] or stored is None or end is None:
            continue
        unread = end - max(stored, row["min_offset"] or 0)
        if unread > 0 and not is_system_topic(row["topic"]):
            waited[row["topic"]] = waited.get(row["topic"], 0) + unread
    if waited:
        parts = listed([f"{topic} {count}" for topic, count in sorted(waited.items())], 5)
        yield Finding(
            f"No member since {utc(since)}, and at least {messages(sum(waited.values()))} unread: "
            f"{parts}.",
            {"behind": parts},
            first_ms=since,
            last_ms=until,
            ended_by="members joined",
        )


def _is_return(group: GroupSnapshot, at: int) -> bool:
    """Return True if the epoch at this position has members, and the one before had none."""
    return group.epochs[at]["status"] != EMPTY and group.epochs[at - 1]["status"] == EMPTY


def _lost_at(group: GroupSnapshot, at_ms: int) -> set[str]:
    """Return the members that were lost at this time without leaving."""
    return {
        row["client_id"]
        for row in group.consumer_events
        if row["event_type"] == CONSUMER_LOST and row["event_ms"] == at_ms
    }


def _how_it_ended(
    group: GroupSnapshot, since: int, behind: Collection[MessageQueue]
) -> dict[str, str]:
    """Return the signs of known issues: the last member expired, which topics were popped, and
    that no message came to them since.
    """
    ends = {
        row["detail"]
        for row in group.consumer_events
        if row["event_type"] == CONSUMER_LOST and row["event_ms"] == since
    }
    signs = {"ended": EXPIRED} if EXPIRED in ends else {}
    popped = {row["topic"] for row in group.tables["pop_reach"]} & {queue.topic for queue in behind}
    if popped:
        signs["popped"] = listed(sorted(popped))
        if _ends_stand_still(group, since, behind):
            signs["ends"] = "STAND_STILL"
    return signs


def _ends_stand_still(group: GroupSnapshot, since: int, queues: Collection[MessageQueue]) -> bool:
    """Return True if each queue has the same end in two observations, the first from before."""
    ends_by_queue: dict[MessageQueue, list[tuple[int, int]]] = {}
    for row in group.tables["queue_offsets"]:
        ends_by_queue.setdefault(dumps.queue_of(row), []).append(
            (row["observed_ms"], row["max_offset"])
        )
    for queue in queues:
        seen = sorted(ends_by_queue.get(queue, ()))
        first = max(0, sum(at_ms <= since for at_ms, _ in seen) - 1)
        if len(seen) - first < 2 or seen[first][1] != seen[-1][1]:
            return False
    return True


def _committed_since(
    group: GroupSnapshot, queues: Iterable[MessageQueue], since: int, *, expired: bool
) -> bool:
    """Return True if a commit of the last departing members is known for one of these queues.

    Older commits do not show the remaining messages; an expired member had left that much earlier.
    """
    seen = Offsets(group).committed_ms
    for fact in group.facts["QUEUE_PROGRESS"]:
        seen[dumps.queue_of(fact)] = max(fact["first_ms"], seen.get(dumps.queue_of(fact), 0))
    last_ms = since - (PERSISTENT_MS if expired else 2 * OFFSET_PERSIST_MS)
    return any(seen.get(queue, 0) >= last_ms for queue in queues)


def _is_sure(group: GroupSnapshot) -> bool:
    """Return True if the log shows a long absence of the group, or brokers have it without members.

    A client whose log shows commits but whose joins and leaves are not logged may still run
    unlisted.
    """
    last = group.emptied
    if last is None and any(row["client_id"] for row in group.tables["committed_offsets"]):
        return False
    if last is not None:
        return bool(group.run.end_ms - last["from_ms"] >= RESTART_MS)
    answers = dumps.fresh(group, group.facts["GROUP_AT_BROKER"], dumps.last_stated)
    denied = dumps.fresh(group, group.facts["NOT_ONLINE"], dumps.last_stated)
    return bool(denied) or any(map(listings.is_empty, answers))


LEFTOVER = Rule(
    "LEFTOVER_OFFSETS",
    WARNING,
    "Brokers store offsets for a group, topic or queue that no longer exists. If it is created "
    "again, consumers start from these offsets and skip or replay messages.",
    "committed_offsets, GROUP_CONFIG, GROUP_DELETED, topics",
    "Before you reuse the name of the group or topic, reset the group's offsets "
    "(resetOffsetByTime). Until then they do no harm.",
    find_leftover,
    by_absence=True,
    files=("consumer_offset_json", "subscription_group_json"),
    reads=(TOPICS, MEMBERS),
)
OFFLINE = Rule(
    "OFFLINE_WITH_LAG",
    WARNING,
    "The group has offsets, messages arrive, and no member is online to read them. INFO if it "
    "lacked members for less than a minute (a restart), if no commit is known from when they left, "
    "or if they may run unlisted.",
    "epochs (EMPTY), committed_offsets, queue_offsets, queue_progress, QUEUE_PROGRESS",
    "Start its consumers; messages are lost when they expire (fileReservedTime). Before you "
    "delete the group, make sure that none of its clients is running: this collection does not "
    "show that.",
    find_offline,
    by_absence=True,
    files=("topicStatus", "consumerProgress"),
    reads=(MEMBERS_OR_DENIED,),
)
