"""COMMIT_STANDS_STILL, FALLS_BEHIND, NEVER_COMMITTED: queues that are held and not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit.blocked_queues import blocked_queues
from rebalance_core.audit.dumps import (
    expired_messages,
    held_over_time,
    holder_address,
    holders_at_end,
    last_stated,
    newest_answers,
    newest_of_queues,
    number,
    queue_of,
)
from rebalance_core.audit.group_snapshot import (
    ExpiredMessages,
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.known_shares import strategy_is_known
from rebalance_core.audit.offsets import messages
from rebalance_core.audit.progress import (
    FALLING_MS,
    deleted_unread,
    falls_behind,
    first_loss_ms,
    has_stopped,
    held_rows,
    is_idle,
    is_unfinished,
    last_look_ms,
    may_stand_still,
    never_committed,
    progress_rows,
    stands_still,
    stuck_in_cache,
    uncommitted_since,
)
from rebalance_core.audit.refused_starts import RefusedStarts
from rebalance_core.audit.rewritten_ids import BY_ORDER
from rebalance_core.audit.rules.group_settings import CONSUME_ENABLE, setting_at_end
from rebalance_core.audit.subjects import COMMITTED, MEMBERS
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.contracts.progress import END_BELOW_COMMIT
from rebalance_core.model.failed_requests import PULL
from rebalance_core.model.flow_control import COUNT, SIZE, SPAN
from rebalance_core.model.group_settings import CLIENT_REBALANCE
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import DAY_MS, MINUTE_MS, STANDSTILL_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity
from rebalance_core.protocol.shares import busiest_rate

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        GroupQueueProgressRow,
        ObservedFactsRow,
        OffsetIllegalFact,
    )

Rows = Sequence["GroupQueueProgressRow"]

LOSS_NEAR_MS = DAY_MS
"""A group that will lose messages within a day loses them before the next night's audit."""


SLOW = "slow listener"
"""The reason that more members or threads may eliminate."""


class Cause(NamedTuple):
    """The reason why queues are not read, as far as files show it.

    Attributes:
        text: A clause that ends the summary.
        reason: A key that identifies the finding of the cause (`causes.LINKS`).
        remedy: What to do; None: the rule's remedy.
        certain: False if files show it for queues of the topic on the broker, possibly other ones.
    """

    text: str
    reason: str
    remedy: str | None = None
    certain: bool = True


NEW_OR_STILL = Cause(
    "it stands still, or these messages arrived just before the last look",
    "unknown",
    "Dump consumerProgress of the group twice, a few minutes apart.",
    certain=False,
)


def find_standing_still(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per cause: a member holds the queues, and their commits do not move."""
    if is_broadcasting(group):
        return
    held, cached = held_rows(group), stuck_in_cache(group)
    since = {queue: full.since_ms for queue, full in cached.items()}
    doubtful = {queue_of(row) for row in held if may_stand_still(row)} - since.keys()
    for row in held:
        if stands_still(row) or queue_of(row) in doubtful:
            since[queue_of(row)] = row["still_since_ms"] or row["waits_since_ms"] or 0
    rows = [row for row in progress_rows(group) if queue_of(row) in since]
    if not rows:
        return
    causes, deleted = _Causes(group), deleted_unread(group)
    recent_ms = last_look_ms(group) - FALLING_MS
    lasting_causes = _Causes(_with_lasting(group, recent_ms, STANDSTILL_MS))

    def cause_of(row: GroupQueueProgressRow) -> Cause | None:
        if queue_of(row) not in doubtful:
            return causes.cause_of(row, since[queue_of(row)])
        cause = lasting_causes.cause_of(row, since[queue_of(row)])
        return cause if cause is not None and cause.certain else NEW_OR_STILL

    by_cause = grouped(rows, cause_of)
    main = [row for row in held if not is_retry_topic(row["topic"]) and not is_idle(row)]
    receiving = {queue_of(row) for row in main}
    decided = since.keys() - set(map(queue_of, by_cause.get(NEW_OR_STILL, ())))
    whole = receiving <= decided.union(uncommitted_since(group)) and bool(receiving & decided)
    holders = {queue: holder_address(answer) for queue, answer in newest_answers(group).items()}
    holders |= {queue: full.client_id for queue, full in cached.items() if full.client_id}
    for cause, rows in by_cause.items():
        every = "every queue of the group that receives messages"
        named = receiving <= set(map(queue_of, rows))
        which = every if whole and named else plural(len(rows), "queue")
        names = {row["client_id"] or holders.get(queue_of(row), "") for row in rows}
        severity: Severity = ERROR if whole else WARNING
        severity = INFO if cause == NEW_OR_STILL else severity
        shown = (full.until_ms for row in rows if (full := cached.get(queue_of(row))))
        seen_ms = max((*shown, *(row["committed_ms"] or 0 for row in rows)))
        finding = _stands_still(rows, since, seen_ms, which, cause, sorted(names - {""}), severity)
        standing = [row for row in rows if queue_of(row) not in doubtful]
        yield with_deleted(finding, standing, deleted)  # FALLS_BEHIND has those of the others


def _with_lasting(group: GroupSnapshot, since_ms: int, gap_ms: int) -> GroupSnapshot:
    """Return the group with those log lines about troubles alone that span at least a standstill
    and go on to the last look: a burst, too, fills a cache for a moment.

    Args:
        group: the group.
        since_ms: what ended earlier does not count, epoch ms.
        gap_ms: how far apart the lines may be, and how long before the last look the last one.
    """
    look_ms = last_look_ms(group)

    def trouble(fact: ObservedFactsRow) -> tuple[object, ...]:
        return fact["kind"], fact["topic"], fact["broker_name"], fact["queue_id"], fact["client_id"]

    def last(facts: Sequence[ObservedFactsRow]) -> bool:
        last_ms = max(fact["last_ms"] for fact in facts)
        long_ms = last_ms - min(fact["first_ms"] for fact in facts)
        often = sum(fact["times"] for fact in facts) * gap_ms >= long_ms
        return often and long_ms >= STANDSTILL_MS and last_ms >= look_ms - gap_ms

    facts = group.tables["observed_facts"]
    others = [fact for fact in facts if fact["kind"] not in _MOMENTARY]
    lines = [f for f in facts if f["kind"] in _MOMENTARY and f["last_ms"] >= since_ms]
    kept = [fact for of in grouped(lines, trouble).values() if last(of) for fact in of]
    return replace(group, tables={**group.tables, "observed_facts": [*others, *kept]})


def _stands_still(
    rows: Rows,
    since: Mapping[MessageQueue, int],
    seen_ms: int,
    which: str,
    cause: Cause | None,
    holders: list[str],
    severity: Severity,
) -> Finding:
    since_ms = min(since[queue_of(row)] for row in rows)
    apart = _last_since(since[queue_of(row)] for row in rows)
    known = [  # none unread: the end is older than the messages that wait
        row["unread"] for row in rows if row["unread"] and row["reason"] != END_BELOW_COMMIT
    ]
    unread = messages(sum(known)) if known else "messages"
    if 0 < len(known) < len(rows):
        unread = f"at least {unread}"
    who = f" ({listed(holders, 3)})" if holders else ""
    single = len(rows) == 1
    come = "" if cause == NEW_OR_STILL else "while messages arrive "
    why = f"; {cause.text}" if cause else "; no file shows why"
    expiry_ms = min((ms for row in rows if (ms := row["expires_ms"]) is not None), default=None)
    deleted = f" Brokers may delete the oldest from {utc(expiry_ms)} on." if expiry_ms else ""
    return Finding(
        f"The commit of {which} has not moved since {utc(since_ms)}{apart}, for "
        f"{lasting(seen_ms - since_ms)}, {come}and a member holds "
        f"{'it' if single else 'them'}{who}: "
        f"{unread} unread in "
        f"{listed(_offsets(rows), 5)}{why}.{deleted}",
        {
            "queues": listed(_names(rows)),
            **({"unread": sum(known)} if len(known) == len(rows) else {}),
            "holders": listed(holders),
            "reason": cause.reason if cause else "unknown",
        },
        severity=severity,
        client_id=holders[0] if len(holders) == 1 and rows[0]["client_id"] else None,
        first_ms=since_ms,
        shown_ms=seen_ms,
        remedy=cause.remedy if cause else None,
    )


def find_falling_behind(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding if commits move slower than ends for longer than a burst, and others about
    messages that brokers deleted unread.

    COMMIT_STANDS_STILL has the queues whose commits do not move.
    """
    if is_broadcasting(group):
        return
    cached, deleted = stuck_in_cache(group), deleted_unread(group)
    rows = [row for row in held_rows(group) if not stands_still(row)]
    rows = [row for row in rows if queue_of(row) not in cached]
    falling = [row for row in rows if falls_behind(row)]
    if falling:
        finding = _falls_behind(group, falling)
        lost = any(queue_of(row) in deleted for row in falling)
        finding = replace(finding, severity=WARNING) if lost else finding
        yield with_deleted(finding, falling, deleted)
    others = [row for row in rows if queue_of(row) in deleted and not falls_behind(row)]
    if others:
        yield with_deleted(_lost(others), others, deleted)
    yield from _skipped(group, deleted)


def with_deleted(
    finding: Finding, rows: Iterable[GroupQueueProgressRow], deleted: Mapping[MessageQueue, int]
) -> Finding:
    """Return the finding with the messages of its queues that brokers deleted unread, if any."""
    lost = sorted((row for row in rows if queue_of(row) in deleted), key=queue_of)
    if not lost:
        return finding
    names = [
        f"{_name(queue_of(row))} {row['committed']} to "
        f"{(row['committed'] or 0) + deleted[queue_of(row)] - 1}"
        for row in lost
    ]
    total = sum(deleted[queue_of(row)] for row in lost)
    text = f"Brokers deleted {messages(total)} before the group committed them: {listed(names, 5)}."
    return replace(
        finding,
        summary=f"{finding.summary} {text}".lstrip(),
        evidence={**finding.evidence, "deleted_unread": total},
    )


def _lost(rows: Rows) -> Finding:
    """Return the finding about queues whose commits are below their first message."""
    return Finding(
        "",
        {"queues": listed(_names(rows))},
        severity=WARNING,
        shown_ms=max(row["committed_ms"] or 0 for row in rows),
        remedy=(
            "Find out whether the deleted messages matter. Make the listener faster or add "
            "consumers, and keep messages for longer (fileReservedTime)."
        ),
    )


def _skipped(group: GroupSnapshot, deleted: Mapping[MessageQueue, int]) -> Iterator[Finding]:
    """Yield a finding for each client that continued at a queue's first message because the broker
    had deleted those after the group's commit.

    The first pull of a queue without a commit, or of one that was reset, may skip messages that the
    group was never meant to read. The finding has no end, because it does not show whether the
    group falls behind.
    """
    commits = grouped(group.tables["committed_offsets"], queue_of)
    skipped: dict[str, list[OffsetIllegalFact]] = {}
    for fact in group.facts["OFFSET_ILLEGAL"]:
        asked, given = number(fact["details"]["asked"]), number(fact["details"]["given"])
        before = [
            row for row in commits.get(queue_of(fact), ()) if row["observed_ms"] < fact["first_ms"]
        ]
        highest = max((row["committed_offset"] for row in before), default=0)
        if 0 < highest <= asked < given and queue_of(fact) not in deleted:
            skipped.setdefault(fact["client_id"] or "A client", []).append(fact)
    for client_id, facts in sorted(skipped.items()):
        names = [
            f"{_name(queue_of(fact))} {fact['details']['asked']} to "
            f"{number(fact['details']['given']) - 1}"
            for fact in sorted(facts, key=queue_of)
        ]
        total = sum(
            number(fact["details"]["given"]) - number(fact["details"]["asked"]) for fact in facts
        )
        yield Finding(
            f"{client_id} skipped {messages(total)} that brokers had deleted before the group read "
            f"them, first at {utc(min(fact['first_ms'] for fact in facts))}: {listed(names, 5)} "
            "(client's log).",
            {
                "queues": listed(sorted(_name(queue_of(fact)) for fact in facts)),
                "deleted_unread": total,
            },
            severity=INFO,
            client_id=facts[0]["client_id"],
            shown_ms=max(fact["last_ms"] for fact in facts),
        )


def _falls_behind(group: GroupSnapshot, rows: Rows) -> Finding:
    arrive = sum(row["end_rate"] or 0 for row in rows)
    leave = sum(row["commit_rate"] or 0 for row in rows)
    unread = sum(row["unread"] or 0 for row in rows)
    before = sum(row["unread_before"] or 0 for row in rows)
    since_ms = min(row["unread_before_ms"] or 0 for row in rows)
    causes = _Causes(_with_lasting(group, since_ms, FALLING_MS))
    each = (causes.cause_of(row, row["unread_before_ms"] or 0) for row in rows)
    found = [cause for cause in each if cause is not None]
    cause = next((cause for cause in found if cause.certain), found[0] if found else None)
    why = f" {cause.text[0].upper()}{cause.text[1:]}." if cause else ""
    size = _Size.of_group(group, rows) if cause is None or cause.reason == SLOW else None
    why += size.sentence if size else ""
    losses_ms = [at_ms for row in rows if (at_ms := first_loss_ms(row)) is not None]
    lost_ms = min(losses_ms, default=None)
    receive = "receives" if len(rows) == 1 else "receive"
    soon = lost_ms is not None and lost_ms - group.run.end_ms <= LOSS_NEAR_MS
    if lost_ms is not None:
        why += f" At these rates brokers delete messages unread from {utc(lost_ms)} on."
    return Finding(
        f"{plural(len(rows), 'queue')} {receive} {arrive:.3g} messages a second and the group "
        f"reads {leave:.3g}: {messages(unread)} unread, up from "
        f"{f'at most {before:,}' if before else 'none'} at {utc(since_ms)} "
        f"({listed(_names(rows), 5)}).{why}",
        {
            "queues": listed(_names(rows)),
            "unread": unread,
            "arrive_per_second": f"{arrive:.3g}",
            "read_per_second": f"{leave:.3g}",
            "reason": cause.reason if cause else "unknown",
            **(size.evidence if size else {}),
            **({} if lost_ms is None else {"deleted_from": utc(lost_ms)}),
        },
        severity=WARNING if soon or (cause and cause.certain) else None,
        first_ms=since_ms,
        shown_ms=max(row["committed_ms"] or 0 for row in rows),
        remedy=(cause.remedy if cause else None) or (size.remedy if size else None),
    )


class _Size(NamedTuple):
    """The number of members that would read as fast as messages arrive at each member's present
    rate.

    It is known if members divide each topic evenly; then only the number of queues limits it.

    Attributes:
        members: The number that hold queues at the end.
        behind: The number of these that hold a queue that falls behind.
        each: The messages per second that a member reads; known if all of them fall behind.
        needed: The minimum number of members that keep up, without a spare; None if no number does.
        queues: The maximum number of members that get a queue.
    """

    members: int
    behind: int
    each: float
    needed: int | None
    queues: int

    @classmethod
    def of_group(cls, group: GroupSnapshot, falling: Rows) -> _Size | None:
        """Return the size; None if a rate, a holder or the division of queues is unknown."""
        holders = _holders(group)
        queues, rates = dict[str, int](), dict[str, float]()
        taken = fastest = 0.0
        members = set[str]()
        for row in held_rows(group):
            arrive, leave = row["end_rate"], row["commit_rate"]
            if is_retry_topic(row["topic"]) and not arrive:
                continue
            if arrive is None or leave is None or queue_of(row) not in holders:
                return None
            queues[row["topic"]] = queues.get(row["topic"], 0) + 1
            rates[row["topic"]] = rates.get(row["topic"], 0.0) + arrive
            taken, fastest = taken + leave, max(fastest, arrive)
            members.add(holders[queue_of(row)])
        if not taken:
            return None
        behind = {holders[queue_of(row)] for row in falling}
        if len(behind) == len(members) and not _divides_evenly(group):
            return None
        each, most = taken / len(members), max(queues.values())
        enough = (n for n in range(1, most + 1) if busiest_rate(queues, rates, n) <= each)
        needed = next(enough, None) if fastest <= each else None
        if needed is not None and needed <= len(members):
            return None  # together they read as fast as messages arrive
        return cls(len(members), len(behind), each, needed, most)

    @property
    def sentence(self) -> str:
        """Return what more members would change."""
        if self.behind < self.members:
            only = f"{self.behind} of {plural(self.members, 'member')}"
            return f" Only {only} {'falls' if self.behind == 1 else 'fall'} behind."
        reads = f"reads {self.each:.3g} a second"
        who = f" Its member {reads}" if self.members == 1 else f" Each of {self.members} {reads}"
        who += "; if each goes on like that, "
        if self.needed is None:
            return f"{who}not even a member for each of {plural(self.queues, 'queue')} keeps up."
        most = f"{plural(self.queues, 'queue')} allow{'s' if self.queues == 1 else ''} at most"
        return f"{who}{self.needed} members keep up, without a spare ({most} {self.queues})."

    @property
    def remedy(self) -> str | None:
        """Return what to do if no number of members keeps up; None for the rule's remedy."""
        if self.behind < self.members or self.needed is not None:
            return None
        return (
            "Make the listener faster or give it more threads, or create more queues and then add "
            "consumers: with the existing queues, no number of consumers keeps up."
        )

    @property
    def evidence(self) -> dict[str, object]:
        """Return the same as fields of the finding."""
        known: dict[str, object] = {"members": self.members, "members_behind": self.behind}
        if self.behind < self.members:
            return known
        needed = "more than queues" if self.needed is None else self.needed
        return {**known, "members_needed": needed}


def _divides_evenly(group: GroupSnapshot) -> bool:
    """Return whether each topic's queues are divided so that shares differ by at most one queue.

    A broker that assigns queues for POP gives the same queue to several members.
    """
    return (
        bool(group.members)
        and strategy_is_known(group)
        and all(
            row["rebalance_mode"] == CLIENT_REBALANCE and row["strategy"] in BY_ORDER
            for row in group.members
        )
    )


def find_never_committed(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding: a member holds queues, messages came, and no store has a
    commit.
    """
    if is_broadcasting(group):
        return
    since = never_committed(group)
    rows = [row for row in held_rows(group) if queue_of(row) in since]
    if not rows:
        return
    since_ms = min(since.values())
    holders = sorted({row["client_id"] for row in rows if row["client_id"]})
    yield Finding(
        f"Members have held {plural(len(rows), 'queue')} since {utc(since_ms)}"
        f"{_last_since(since.values())} and messages arrived, but no store or dump has a commit of "
        f"the group on them: {listed(_names(rows), 5)}. After a restart they start according to "
        "ConsumeFromWhere, not where they left off.",
        {"queues": listed(_names(rows)), "holders": listed(holders)},
        first_ms=since_ms,
        shown_ms=max(row["end_ms"] or 0 for row in rows),
    )


def _last_since(since: Iterable[int]) -> str:
    """Return since when the last of several queues; empty if all are of the same minute."""
    all_ms = sorted(since)
    apart = all_ms[-1] - all_ms[0] >= MINUTE_MS
    return f" (the last of them since {utc(all_ms[-1])})" if apart else ""


def _holders(group: GroupSnapshot) -> dict[MessageQueue, str]:
    """Return the only holder of each queue at the end: its id or, without a ledger, its address."""
    if group.members:
        held = holders_at_end(group)
        return {queue: next(iter(ids)) for queue, ids in held.items() if len(ids) == 1}
    answers = newest_answers(group)
    return {queue: who for queue, answer in answers.items() if (who := holder_address(answer))}


_UNFINISHED = "one message is not finished"
_FLOW = {
    SPAN: (
        "a message is not finished, and the client stopped pulling because the offsets in its "
        "cache are consumeConcurrentlyMaxSpan apart (client's log)",
        _UNFINISHED,
    ),
    COUNT: ("the client's cache is full: its listener is too slow (client's log)", SLOW),
    SIZE: (
        "the client's cache is full by size: its listener is too slow (client's log)",
        SLOW,
    ),
}

_FULL_BEHIND_ONE = Cause(
    "the message at the commit is not finished, and the client stopped pulling because its cache "
    "is full (client's log)",
    _UNFINISHED,
)


_MOMENTARY = {
    "FLOW_CONTROLLED",
    "OFFSET_ILLEGAL",
    "OFFSET_NOT_CORRECTED",
    "REQUEST_FAILED",
    "START_REFUSED",
    "TOPIC_MISSING",
}
"""Kinds of facts that `_Causes` reads and that may be over the moment after."""


class _Causes:
    """Reasons why queues of a group are not read, as far as files show."""

    def __init__(self, group: GroupSnapshot) -> None:
        enabled = setting_at_end(group, CONSUME_ENABLE)
        self._refusing = sorted(name for name, (value, _) in enabled.items() if value == "false")
        self._suspended = {row["client_id"] for row in group.members if row["suspended"]}
        self._held = {key: facts[-1] for key, facts in held_over_time(group).items()}
        blocked = sorted(blocked_queues(group), key=lambda each: each.fact["last_ms"])
        self._blocked = {queue_of(each.fact): each.fact for each in blocked}
        self._refused = RefusedStarts(group)
        flow = sorted(group.facts["FLOW_CONTROLLED"], key=last_stated, reverse=True)
        self._flow = grouped(flow, queue_of)
        self._illegal = newest_of_queues(group.facts["OFFSET_ILLEGAL"])
        self._lacking = sorted(group.facts["OFFSET_NOT_CORRECTED"], key=last_stated, reverse=True)
        of_group = map(expired_messages, group.facts["MESSAGES_EXPIRED"])
        self._expired_of = grouped(of_group, lambda each: each.queue), group.run.expired
        self._only_broker = _only_brokers(group) if any(self._expired_of) else {}
        self._retry_ids = _retry_ids(group)
        pulls = (f for f in group.facts["REQUEST_FAILED"] if f["details"]["request"] == PULL)
        self._failed = sorted(pulls, key=last_stated, reverse=True)
        self._addresses = group.run.addresses
        self._proxied = bool(group.run.proxies)

    def cause_of(self, row: GroupQueueProgressRow, since_ms: int) -> Cause | None:
        """Return the cause for one queue, preferring a cause that no client can fix.

        Args:
            row: the queue.
            since_ms: when reading stopped, epoch ms; causes that ended earlier do not count.
        """
        queue, client_id = queue_of(row), row["client_id"]
        if row["broker_name"] in self._refusing:
            return Cause(
                f"the group is disabled at {listed(self._refusing)} (consumeEnable=false), and "
                "pulls are refused",
                "disabled",
                "Enable the group again (updateSubGroup -c <cluster> -g <group> -s true).",
            )
        if client_id in self._suspended:
            return Cause(
                f"{client_id} is suspended",
                "suspended",
                "Resume the consumer, or find out who suspended it.",
            )
        if self._is_unfinished(row, since_ms):
            return Cause(
                "the client has messages from the commit on in its cache and does not finish "
                "the first",
                "unfinished message",
            )
        refused = self._refused.newest(queue, since_ms)
        if refused is not None:
            return Cause(refused.words, f"start refused: {refused.reason}", refused.remedy)
        failed = self._failed_pull(row, since_ms)
        if failed is not None:
            return failed
        illegal = self._illegal.get(queue)
        if illegal is not None and illegal["last_ms"] >= since_ms:
            asked, sent_to = illegal["details"]["asked"], illegal["details"]["given"]
            return Cause(
                f"the broker lacks offset {asked} and redirects the client to {sent_to} "
                f"({plural(illegal['times'], 'time')}, client's log)",
                "illegal offset",
                "Find out what happened to the broker's store (COMMITS_ABOVE_END), then reset the "
                "group's offsets there (resetOffsetByTime).",
            )
        lacking = self._lacking_on_slave(row, since_ms)
        if lacking is not None and lacking.certain:
            return lacking
        expired = self._expired_message(row, since_ms)
        if expired is not None:
            return expired
        for flow in self._flow.get(queue, ()):
            known = flow["client_id"] is not None and client_id is not None
            if flow["last_ms"] >= since_ms and not (known and flow["client_id"] != client_id):
                if flow["details"]["reason"] != SPAN and is_unfinished(row, flow):
                    return _FULL_BEHIND_ONE
                return Cause(*_FLOW[flow["details"]["reason"]])
        return lacking

    def _failed_pull(self, row: GroupQueueProgressRow, since_ms: int) -> Cause | None:
        """Return the error of the holder's pulls, if they may be pulls of the queue."""
        for fact in self._failed:
            address, reason = fact["details"]["address"], fact["details"]["reason"]
            known_address = address in self._addresses
            if (
                fact["last_ms"] < since_ms
                or fact["client_id"] not in (None, row["client_id"])
                or (known_address and self._addresses[address] != row["broker_name"])
            ):
                continue
            where = f"{address}: " if address and address not in reason else ""
            text = f"pulls of the client fail with {where}{reason} (client's log)"
            if not address or known_address or not self._addresses or self._proxied:
                return Cause(
                    text,
                    "pulls fail",
                    "Fix the cause that the server or the network reports, and check that pulls "
                    "succeed; the commit then moves again by itself.",
                )
            return Cause(
                f"{text}, and no broker has that address",
                "not the address of any broker",
                f"Restart the client: it keeps asking {address}. Give brokers addresses that "
                "survive a restart (a DNS name, or a Service per broker).",
            )
        return None

    def _lacking_on_slave(self, row: GroupQueueProgressRow, since_ms: int) -> Cause | None:
        """Return the cause that a slave lacks, or may lack, the offset at which the commit stands.

        The broker's lines name no queue, so that a fact has the offsets of all the topic's queues.
        """
        may_lack: Cause | None = None
        for fact in self._lacking:
            details, committed = fact["details"], row["committed"]
            lowest, highest = (number(details[name]) for name in ("lowest_asked", "highest_asked"))
            if (
                (fact["topic"], fact["broker_name"]) == (row["topic"], row["broker_name"])
                and fact["last_ms"] >= since_ms
                and committed is not None
                and lowest <= committed <= highest
            ):
                slave = f"a slave of {row['broker_name']}, which"
                sent = f"the replica with id {details['sent_to']} (broker's log)"
                remedy = (
                    "Bring the master back, or let the slave copy what it lacks: a slave without "
                    "offsetCheckInSlave never corrects an offset."
                )
                if lowest == highest:
                    return Cause(
                        f"the client asks {slave} lacks that offset and sends it to {sent}",
                        "slave lacks the offset",
                        remedy,
                    )
                may_lack = may_lack or Cause(
                    f"clients ask {slave} lacks offsets of the topic's queues from {lowest} to "
                    f"{highest}, maybe that offset, and sends them to {sent}",
                    "slave may lack the offset",
                    remedy,
                    certain=False,
                )
        return may_lack

    def _expired(self, queue: tuple[str, int]) -> Iterator[ExpiredMessages]:
        """Yield the expired messages of the group and of unknown groups."""
        return (each for expired in self._expired_of for each in expired.get(queue, ()))

    def _expired_message(self, row: GroupQueueProgressRow, since_ms: int) -> Cause | None:
        """Return the cause that the listener has kept messages after the commit for too long.

        The line about a retry has its original topic, but the id and offset of the retry queue.
        """
        newest = sorted(self._expired((row["topic"], row["queue_id"])), key=_newest_first)
        for expired in newest:
            broker = self._addresses.get(expired.address, self._only_broker.get(expired.queue))
            end, committed = row["end_offset"], row["committed"]
            if (
                expired.last_ms < since_ms
                or broker != row["broker_name"]
                or expired.client_id not in (None, row["client_id"])
                or not (committed or 0) <= expired.highest < (inf if end is None else end)
            ):
                continue
            log = "" if expired.of_group else f" clients/{expired.log}, whose line names no group"
            ids = [n for n in self._retry_ids if any(self._expired((row["topic"], n)))]
            retries = f" (those of queue {listed(ids)} may be retries)" if ids else ""
            return Cause(
                f"the listener had messages of the queue for longer than consumeTimeout{retries}, "
                f"and the client sent them back (client's log{log})",
                "consumeTimeout",
            )
        return None

    def _is_unfinished(self, row: GroupQueueProgressRow, since_ms: int) -> bool:
        """Return whether the client's answer, or mqadmin's, has messages after the commit.

        If the commit moves, the answer shows the moment before it moved on.
        """
        queue = queue_of(row)
        held, blocked = self._held.get((row["client_id"] or "", queue)), self._blocked.get(queue)
        waits = (
            held is not None
            and number(held["details"].get("commit_offset")) == row["committed"]
            and number(held["details"].get("cached_messages"), 0) > 0
            and (has_stopped(row) or not falls_behind(row))
        )
        return waits or (blocked is not None and blocked["last_ms"] >= since_ms)


def _newest_first(expired: ExpiredMessages) -> tuple[int, str]:
    return -expired.last_ms, expired.log


def _only_brokers(group: GroupSnapshot) -> dict[tuple[str, int], str]:
    """Return the broker of each topic and queue id that no second broker has."""
    brokers: dict[tuple[str, int], set[str]] = {}
    for row in progress_rows(group):
        brokers.setdefault((row["topic"], row["queue_id"]), set()).add(row["broker_name"])
    return {queue: next(iter(names)) for queue, names in brokers.items() if len(names) == 1}


def _retry_ids(group: GroupSnapshot) -> list[int]:
    """Return the ids of the retry topic's queues: 0, and those that rows show.

    ``SubscriptionGroupConfig.retryQueueNums`` is 1 unless it was changed.
    """
    rows = progress_rows(group)
    return sorted({0} | {row["queue_id"] for row in rows if is_retry_topic(row["topic"])})


def _offsets(rows: Iterable[GroupQueueProgressRow]) -> list[str]:
    """Return each queue with the offset at which its commit stands."""
    ordered = sorted(rows, key=queue_of)
    return [f"{_name(queue_of(row))} at {row['committed']}" for row in ordered]


def _names(rows: Iterable[GroupQueueProgressRow]) -> list[str]:
    return [_name(queue) for queue in sorted(map(queue_of, rows))]


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name}:{queue.queue_id}"


STANDS_STILL = Rule(
    "COMMIT_STANDS_STILL",
    WARNING,
    f"For {STANDSTILL_MS // MINUTE_MS} minutes or more the commit of a queue has not moved while "
    "its end grew or, where no file shows that, its holder's cache was full; a member holds the "
    "queue. ERROR if no queue of the group that receives messages makes progress; INFO if the "
    "messages may have arrived just before the last look.",
    "queue_progress; ownership, observed_ownership, GROUP_CONFIG, HELD_QUEUE, STUCK_QUEUE, "
    "FLOW_CONTROLLED, START_REFUSED, TOPIC_MISSING, "
    "REQUEST_FAILED, OFFSET_ILLEGAL, OFFSET_NOT_CORRECTED, MESSAGES_EXPIRED, "
    "MESSAGES_OF_ANY_EXPIRED",
    "Look at the message at that offset and at the client's threads (jstack): one message that "
    "is never finished holds back the commit of its queue. Restart the client; messages that "
    "arrived since then are read again.",
    find_standing_still,
    reads=(MEMBERS,),
    state=True,
    files=("consumer_offset_json", "consumerProgress", "client_log"),
)
FALLS = Rule(
    "FALLS_BEHIND",
    INFO,
    "Commits have advanced more slowly than the queues' ends for ten minutes or more: at these "
    "rates the group will not catch up. WARNING if the files show why, if brokers begin to "
    "delete unread messages within a day (fileReservedTime), or if they have deleted some.",
    "queue_progress, queue_offsets; ownership, FLOW_CONTROLLED, OFFSET_ILLEGAL, MESSAGE_RETENTION",
    "Add consumers (up to the number of queues) or threads, or make the listener faster.",
    find_falling_behind,
    reads=(MEMBERS,),
    state=True,
    files=("consumer_offset_json", "consumerProgress", "client_log"),
)
NEVER_COMMITTED = Rule(
    "NEVER_COMMITTED",
    WARNING,
    "A member has held a queue for longer than clients take to commit and messages arrived, but "
    "no store has a commit of the group on the queue.",
    "queue_progress, queue_offsets, ownership; consumerOffset.json",
    "Check whether the application commits (lite pull with auto-commit off does not commit by "
    "itself) and whether its listener is called at all.",
    find_never_committed,
    by_owners=True,
    state=True,
    files=("consumer_offset_json",),
    reads=(MEMBERS, COMMITTED),
)
