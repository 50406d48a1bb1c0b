"""COMMIT_STANDS_STILL, FALLS_BEHIND, NEVER_COMMITTED: queues that are held and not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit.dumps import held_over_time, number, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.progress import falls_behind, is_idle, progress_rows, stands_still
from rebalance_core.audit.rules.group_settings import CONSUME_ENABLE, setting_at_end
from rebalance_core.audit.subjects import COMMITTED, MEMBERS
from rebalance_core.audit.subscriptions import is_broadcasting, suspended_clients
from rebalance_core.model.flow_control import COUNT, SIZE, SPAN
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import MINUTE_MS, STANDSTILL_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupQueueProgressRow

Rows = Sequence["GroupQueueProgressRow"]


class Cause(NamedTuple):
    """Why queues are not read, as far as files show it.

    Attributes:
        text: A clause that ends the summary.
        reason: A word for it, by which the finding of the cause is known (`causes.LINKS`).
        remedy: What to do; None: what the rule says.
    """

    text: str
    reason: str
    remedy: str | None = None


def find_standing_still(group: GroupSnapshot) -> Iterator[Finding]:
    """One finding a group and cause: a member holds the queues, and their commits do not move."""
    if is_broadcasting(group):
        return
    held = _held(group)
    still = [row for row in held if stands_still(row)]
    if not still:
        return
    main = [row for row in held if not is_retry_topic(row["topic"])]
    whole = all(stands_still(row) or is_idle(row) for row in main) and any(map(stands_still, main))
    by_cause = grouped(still, lambda row: _cause(group, row))
    for cause, rows in by_cause.items():
        yield _stands_still(rows, cause, whole=whole)


def _stands_still(rows: Rows, cause: Cause | None, *, whole: bool) -> Finding:
    since_ms = min(row["still_since_ms"] or 0 for row in rows)
    seen_ms = max(row["committed_ms"] or 0 for row in rows)
    unread = sum(row["unread"] or 0 for row in rows)
    holders = sorted({row["client_id"] for row in rows if row["client_id"]})
    who = f" ({listed(holders, 3)})" if holders else ""
    one = len(rows) == 1
    which = "every queue of the group that gets messages" if whole else plural(len(rows), "queue")
    why = f": {cause.text}" if cause else "; no file shows why"
    return Finding(
        f"The commit of {which} has not moved since {utc(since_ms)}, for "
        f"{lasting(seen_ms - since_ms)}, while messages come and a member holds "
        f"{'it' if one else 'them'}{who}: "
        f"{messages(unread)} unread in {listed(_names(rows), 5)}{why}.",
        {
            "queues": listed(_names(rows)),
            "unread": unread,
            "holders": listed(holders),
            "reason": cause.reason if cause else "unknown",
        },
        severity=ERROR if whole else WARNING,
        client_id=holders[0] if len(holders) == 1 else None,
        first_ms=since_ms,
        shown_ms=seen_ms,
        remedy=cause.remedy if cause else None,
    )


def find_falling_behind(group: GroupSnapshot) -> Iterator[Finding]:
    """One finding a group: commits move slower than ends, for longer than a burst."""
    if is_broadcasting(group):
        return
    rows = [row for row in _held(group) if falls_behind(row) and not stands_still(row)]
    if not rows:
        return
    arrive = sum(row["end_rate"] or 0 for row in rows)
    leave = sum(row["commit_rate"] or 0 for row in rows)
    unread = sum(row["unread"] or 0 for row in rows)
    before = sum(row["unread_before"] or 0 for row in rows)
    since_ms = min(row["unread_before_ms"] or 0 for row in rows)
    cause = next(filter(None, (_cause(group, row) for row in rows)), None)
    why = f" {cause.text[0].upper()}{cause.text[1:]}." if cause else ""
    yield Finding(
        f"{plural(len(rows), 'queue')} get {arrive:.3g} messages a second and the group reads "
        f"{leave:.3g}: {messages(unread)} unread, {messages(before)} at most at {utc(since_ms)} "
        f"({listed(_names(rows), 5)}).{why}",
        {
            "queues": listed(_names(rows)),
            "unread": unread,
            "arrive_per_second": f"{arrive:.3g}",
            "read_per_second": f"{leave:.3g}",
            "reason": cause.reason if cause else "unknown",
        },
        severity=WARNING if cause else None,
        first_ms=since_ms,
        shown_ms=max(row["committed_ms"] or 0 for row in rows),
        remedy=cause.remedy if cause else None,
    )


def find_never_committed(group: GroupSnapshot) -> Iterator[Finding]:
    """One finding a group: a member holds queues, messages came, and no store has a commit."""
    if is_broadcasting(group):
        return
    offsets, since = Offsets(group), _held_since(group)
    rows = []
    for row in _held(group):
        queue = queue_of(row)
        came = _came_since(group, queue, since.get(queue))
        none = offsets.committed([queue]) == "none" and _looked_for(group, queue, since.get(queue))
        if row["committed"] is None and came and none:
            rows.append(row)
    if not rows:
        return
    since_ms = min(since[queue_of(row)] for row in rows)
    holders = sorted({row["client_id"] for row in rows if row["client_id"]})
    yield Finding(
        f"Members hold {plural(len(rows), 'queue')} since {utc(since_ms)}, messages came, and no "
        f"store or dump has a commit of the group on them: {listed(_names(rows), 5)}. After a "
        "restart they begin where ConsumeFromWhere says, not where they were.",
        {"queues": listed(_names(rows)), "holders": listed(holders)},
        first_ms=since_ms,
        shown_ms=max(row["end_ms"] or 0 for row in rows),
    )


def _held(group: GroupSnapshot) -> list[GroupQueueProgressRow]:
    """The rows of queues that a member holds at the end, by the ledger or by a dump."""
    held = {queue_of(row) for row in group.owned if row["client_id"] is not None}
    listed_clients = {row["client_id"] for row in group.members}
    for one in group.tables["observed_ownership"]:
        if one["client_id"] in listed_clients:
            held.add(queue_of(one))
    return [row for row in progress_rows(group) if queue_of(row) in held]


def _held_since(group: GroupSnapshot) -> dict[MessageQueue, int]:
    """Since when the queue's holders at the end hold it."""
    since: dict[MessageQueue, int] = {}
    for row in group.owned:
        if row["client_id"] is not None:
            queue = queue_of(row)
            since[queue] = max(row["from_ms"], since.get(queue, 0))
    return since


def _came_since(group: GroupSnapshot, queue: MessageQueue, since_ms: int | None) -> bool:
    """Return whether the end grew for longer than clients take to commit, while it was held."""
    if since_ms is None:
        return False
    ends = sorted(
        group.ends.get((queue.topic, queue.broker_name, queue.queue_id), ()),
        key=lambda row: row["observed_ms"],
    )
    seen = [row for row in ends if row["observed_ms"] >= since_ms + STANDSTILL_MS]
    before = [row for row in ends if row["observed_ms"] < since_ms + STANDSTILL_MS]
    return bool(seen and before) and seen[-1]["max_offset"] > before[-1]["max_offset"]


def _looked_for(group: GroupSnapshot, queue: MessageQueue, since_ms: int | None) -> bool:
    """Return whether a file shows commits of the broker from when the queue's holder had to."""
    if since_ms is None or group.run.offsets_ms is None:
        return since_ms is not None
    until_ms = since_ms + STANDSTILL_MS
    if group.run.offsets_until_ms.get(queue.broker_name, 0) >= until_ms:
        return True
    return any(
        queue_of(fact) == queue and fact["first_ms"] >= until_ms
        for fact in group.facts["QUEUE_PROGRESS"]
    )


def _cause(group: GroupSnapshot, row: GroupQueueProgressRow) -> Cause | None:
    """Return the cause that files show, the one that no member can mend first."""
    enabled = setting_at_end(group, CONSUME_ENABLE)
    refusing = sorted(broker for broker, (value, _) in enabled.items() if value == "false")
    if row["broker_name"] in refusing:
        return Cause(
            f"the group is disabled at {listed(refusing)} (consumeEnable=false), and pulls are "
            "refused",
            "disabled",
            "Enable the group again: mqadmin updateSubGroup -g <group> -s true.",
        )
    if row["client_id"] in suspended_clients(group):
        return Cause(
            f"{row['client_id']} is suspended",
            "suspended",
            "Resume the consumer, or find out who suspended it.",
        )
    if _is_unfinished(group, row):
        return Cause(
            f"the client has messages from offset {row['committed']} on in its cache and does not "
            "finish the first of them",
            "unfinished message",
        )
    return _logged_cause(group, row)


def _is_unfinished(group: GroupSnapshot, row: GroupQueueProgressRow) -> bool:
    """Return whether the client's answer has messages after the commit, or mqadmin says so."""
    queue, since_ms = queue_of(row), row["still_since_ms"] or 0
    newest = held_over_time(group).get((row["client_id"] or "", queue), [])[-1:]
    return any(
        number(fact["details"].get("commit_offset")) == row["committed"]
        and number(fact["details"].get("cached_messages"), 0) > 0
        for fact in newest
    ) or any(
        queue_of(fact) == queue
        and fact["details"].get("trouble") == "consume"
        and fact["last_ms"] >= since_ms
        for fact in group.facts["STUCK_QUEUE"]
    )


_FLOW = {
    SPAN: (
        "a message is not finished, and the client stopped pulling: offsets in its cache are "
        "consumeConcurrentlyMaxSpan apart",
        "one message is not finished",
    ),
    COUNT: ("the client's cache is full: its listener is too slow", "slow listener"),
    SIZE: ("the client's cache is full by size: its listener is too slow", "slow listener"),
}
_REFUSED = {
    "LOCK_FAILED": "a pass could not lock the queue at its broker",
    "NO_OFFSET": "a pass got no offset to begin at",
    "OFFSET_FAILED": "a pass failed to ask for the offset to begin at",
}


def _logged_cause(group: GroupSnapshot, row: GroupQueueProgressRow) -> Cause | None:
    """Return what clients logged of the queue since it stands still, or lately."""
    queue = queue_of(row)
    since_ms = row["still_since_ms"] or row["unread_before_ms"] or 0
    for fact in reversed(group.facts["START_REFUSED"]):
        if queue_of(fact) == queue and fact["last_ms"] >= since_ms:
            reason = fact["details"]["reason"]
            return Cause(f"{_REFUSED[reason]} (client's log)", f"start refused: {reason}")
    for flow in reversed(group.facts["FLOW_CONTROLLED"]):
        if queue_of(flow) == queue and flow["last_ms"] >= since_ms:
            text, word = _FLOW[flow["details"]["reason"]]
            return Cause(f"{text} (client's log)", word)
    return None


def _names(rows: Iterable[GroupQueueProgressRow]) -> list[str]:
    ordered = sorted(map(queue_of, rows))
    return [f"{topic} {broker}:{number_}" for topic, broker, number_ in ordered]


STANDS_STILL = Rule(
    "COMMIT_STANDS_STILL",
    WARNING,
    f"For {STANDSTILL_MS // MINUTE_MS} minutes or more the commit of a queue has not moved while "
    "its end grew, and a member holds the queue. ERROR if every queue of the group that gets "
    "messages stands still.",
    "queue_progress; ownership, observed_ownership, GROUP_CONFIG, HELD_QUEUE, STUCK_QUEUE, "
    "FLOW_CONTROLLED, START_REFUSED",
    "Look at the message at that offset and at the client's threads (jstack): one message that is "
    "never finished holds back the commit of its queue. Restart the client; what came since is "
    "read again.",
    find_standing_still,
    reads=(MEMBERS,),
    state=True,
    files=("consumer_offset_json", "consumerProgress", "client_log"),
)
FALLS = Rule(
    "FALLS_BEHIND",
    INFO,
    "Commits move slower than ends, for ten minutes or more: the group will not reach what is "
    "unread at these rates. WARNING where files show why.",
    "queue_progress; ownership, FLOW_CONTROLLED",
    "Add consumers up to the number of queues, or threads, or make the listener faster.",
    find_falling_behind,
    reads=(MEMBERS,),
    state=True,
    files=("consumer_offset_json", "consumerProgress", "client_log"),
)
NEVER_COMMITTED = Rule(
    "NEVER_COMMITTED",
    WARNING,
    "A member has held a queue for longer than clients take to commit, messages came, and no store "
    "has a commit of the group on it.",
    "queue_progress, queue_offsets, ownership; consumerOffset.json",
    "See whether the application commits (lite pull with auto commit off does not by itself) and "
    "whether its listener is called at all.",
    find_never_committed,
    state=True,
    files=("consumer_offset_json",),
    reads=(MEMBERS, COMMITTED),
)
