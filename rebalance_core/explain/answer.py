"""The answer from `explain`: plain values for the text and the JSON object, and each reason in
words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rebalance_core.explain import settlement
from rebalance_core.explain.settlement import Settlement
from rebalance_core.explain.view import queue_of, subscribes
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.languages import JAVA
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol import pop_start, start_offset
from rebalance_core.protocol.receive_waits import GroupWait
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.pop import WHOLE_BROKER, pop_formula, pops_whole_brokers
from rebalance_core.strategies.registry import NAME_IT

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
        PopStartsRow,
        PullStartsRow,
        QueueProgressRow,
    )

EMPTY, DUPLICATE, LEFT_OUT, MIXED = "EMPTY", "DUPLICATE_ID", "LEFT_OUT", "MIXED_STRATEGIES"
UNKNOWN, NO_MASTER = "UNKNOWN", "NO_MASTER"

NOT_LISTED = (
    "unknown: no file shows who holds some queues of the topic, so mqAll is incomplete here"
)
PULLED_TOO = (
    "it pulls queues that others pop: both commit to the same offset, so messages are consumed "
    "twice"
)
_BEHIND_PROXIES = {
    settlement.PROXY: (
        "behind a proxy: every client takes from every readable broker, regardless of the other "
        "members"
    ),
    settlement.PROXY_FIFO: (
        "behind a proxy, in order: every client takes from every queue, whatever the other "
        "members; a queue gives nothing more until what it gave is acknowledged or its invisible "
        "time ends (the group's consumeMessageOrderly does that; a topic's message.type=FIFO "
        "orders sending alone)"
    ),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """A code, a sentence, and the formula, if one determined the result.

    ``client_id`` is the client that the sentence is about.
    """

    code: str
    text: str
    formula: Formula | None = None
    client_id: str | None = None


def owner_reason(settled: Settlement, queue: MessageQueue, client_id: str) -> Reason:
    """Explain why this client holds the queue."""
    processes = [member for member in settled.view.members if member["client_id"] == client_id]
    if not processes:
        return Reason(UNKNOWN, "it is not a member: the ledger contradicts itself", None, client_id)
    if not settled.known:
        return Reason(UNKNOWN, NOT_LISTED, None, client_id)
    taking = [member for member in processes if settled.takes(member, queue)]
    if taking:
        code, text, formula = _taken(settled, queue, taking[0])
    else:
        keeping = [
            m for m in processes if settled.outcome(m) in (*settlement.KEEPING, settlement.OTHER)
        ]
        member = (keeping or processes)[0]
        code, text, formula = _kept(settled, member)
    if len(processes) > 1:
        count = len(processes)
        text += f"; {count} processes have this id, and each uses its first place in cidAll"
    return Reason(code, text, formula, client_id)


def _taken(
    settled: Settlement, queue: MessageQueue, member: MembershipsRow
) -> tuple[str, str, Formula | None]:
    outcome = settled.outcome(member)
    if outcome == settlement.BROADCAST:
        return outcome, "BROADCASTING: every member reads every queue of its topics", None
    formula = _formula(settled, member, queue)
    assert formula is not None
    if outcome == settlement.MAX_LISTED:
        return outcome, f"{formula.strategy}: the queue is in the member's own list", formula
    return outcome, f"{formula.strategy} assigns it to this client", formula


def _kept(settled: Settlement, member: MembershipsRow) -> tuple[str, str, Formula | None]:
    """Return the reason for a client whose pass does not take the queue."""
    outcome, topic = settled.outcome(member), settled.topic
    texts = {
        settlement.SUSPENDED: (
            "the member is suspended: it runs no pass and keeps the queues it held; a member "
            "that computes the queue as its own also reads it"
        ),
        settlement.NO_QUEUE: f"FROZEN: {topic} has no readable queue, so every member keeps the "
        "queues it held",
        settlement.THROWS: f"FROZEN: {member['strategy']} throws ({settled.thrown(member)}), so "
        "the member keeps the queues it held",
        settlement.BROKER_MODE: "FROZEN: the brokers allocate but do not know "
        f"{member['strategy']}, so the member keeps the queues it held",
        settlement.OTHER: (
            f"{member['strategy']} is not a RocketMQ strategy, so explain cannot recompute it; "
            f"{NAME_IT}"
        ),
    }
    if outcome in texts:
        return outcome, texts[outcome], None
    return UNKNOWN, "no rule assigns it to this client", None


def no_owner_reason(settled: Settlement, queue: MessageQueue) -> Reason:
    """Explain why no client holds the queue."""
    members = settled.view.members
    if not members:
        return Reason(EMPTY, "the group has no member")
    if not settled.known:
        return Reason(UNKNOWN, NOT_LISTED)
    if queue.broker_name in settled.group.lockless:
        return Reason(
            NO_MASTER,
            f"{queue.broker_name} has no master to grant the order lock, so no client can take "
            "the queue",
        )
    passing = [
        member
        for member in members
        if settled.outcome(member) in (settlement.COMPUTED, settlement.MAX_LISTED)
    ]
    for member in members:
        if member["message_model"] == BROADCASTING:
            continue  # the others count it in their lists, but it takes no share
        reason = _misses(settled, queue, member)
        if reason is not None:
            return reason
    for member in members:
        if settled.outcome(member) == settlement.OTHER and subscribes(member, settled.topic):
            return Reason(settlement.OTHER, _kept(settled, member)[1])
    frozen = [member for member in members if settled.outcome(member) in settlement.KEEPING]
    if frozen and not passing:
        _, text, _ = _kept(settled, frozen[0])
        return Reason(settled.outcome(frozen[0]), f"{text}; no remaining member held this queue")
    if not any(subscribes(member, settled.topic) for member in members):
        return Reason(settlement.NOT_SUBSCRIBED, f"no member subscribes to {settled.topic}")
    if not passing:
        return Reason(UNKNOWN, "no member allocates the topic")
    return _left_out(settled, queue, passing)


def _misses(settled: Settlement, queue: MessageQueue, member: MembershipsRow) -> Reason | None:
    """Return why a member does not hold a queue that its own strategy assigns to it."""
    formula = _formula(settled, member, queue)
    if formula is None or formula.owner != member["client_id"]:
        return None
    client_id, outcome = member["client_id"], settled.outcome(member)
    if outcome == settlement.NOT_SUBSCRIBED:
        text = _unsubscribed_text(settled, client_id)
    elif outcome == settlement.SUSPENDED:
        text = f"the queue falls to {client_id}, which is suspended and did not hold it before"
    elif outcome == settlement.BROKER_MODE:
        text = _kept(settled, member)[1] + "; no remaining member held this queue"
    else:
        return None
    return Reason(outcome, text, formula, client_id)


def _left_out(settled: Settlement, queue: MessageQueue, passing: list[MembershipsRow]) -> Reason:
    """Return why no running member's strategy assigns the queue to that member itself."""
    # One text may denote two strategies: CONSISTENT_HASH depends on a charset only before 5.0.
    formulas: dict[str, Formula] = {}
    for member in passing:
        formula = _formula(settled, member, queue)
        if formula is not None:
            name = formula.strategy
            if formulas.get(name, formula).owner != formula.owner:  # it sorts differently
                name = f"{name} of {member.get('language') or JAVA}"
            formulas.setdefault(name, formula)
    texts = sorted({member["strategy"] for member in passing})
    if all(settled.outcome(member) == settlement.MAX_LISTED for member in passing):
        only = next(iter(formulas.values())) if len(texts) == 1 else None
        return Reason(LEFT_OUT, "CONFIG: no member has the queue in its list", only)
    if len(texts) > 1 or len(formulas) > 1:
        claims = "; ".join(
            f"{name} assigns it to {formula.owner or 'no client'}"
            for name, formula in formulas.items()
        )
        names = texts if len(texts) > len(formulas) else formulas
        return Reason(
            MIXED,
            f"members use different strategies ({', '.join(names)}): {claims}, and no member "
            "takes it under its own strategy",
            next(iter(formulas.values()), None),
        )
    formula = next(iter(formulas.values()))
    ids = settled.view.client_ids
    if formula.entry is not None and formula.owner is None:
        duplicate = ids[formula.entry]
        return Reason(
            DUPLICATE,
            f"the queue falls to place {formula.entry} of cidAll, where {duplicate} appears "
            f"again: all {ids.count(duplicate)} processes of that id take the share of its first "
            f"place, {ids.index(duplicate)}",
            formula,
            duplicate,
        )
    if formula.owner is not None:
        return _not_taken(settled, formula)
    return Reason(LEFT_OUT, f"{formula.strategy} assigns it to no client", formula)


def _not_taken(settled: Settlement, formula: Formula) -> Reason:
    """Return the reason why the queue falls to a client that allocates by another formula."""
    owner = formula.owner or ""
    owners = [m for m in settled.view.members if m["client_id"] == owner]
    keeping = [member for member in owners if settled.outcome(member) in settlement.KEEPING]
    if not keeping:
        if any(settled.outcome(member) == settlement.NOT_SUBSCRIBED for member in owners):
            return Reason(
                settlement.NOT_SUBSCRIBED, _unsubscribed_text(settled, owner), formula, owner
            )
        return Reason(UNKNOWN, "no rule explains why it has no owner", formula)
    code, text, _ = _kept(settled, keeping[0])
    text = f"the queue falls to {owner}, which did not hold it before. {text}"
    return Reason(code, text, formula, owner)


def _unsubscribed_text(settled: Settlement, client_id: str) -> str:
    return (
        f"the queue falls to {client_id}, which does not subscribe to {settled.topic}: membership "
        "is per group, so it still counts and its share has no owner"
    )


def _formula(settled: Settlement, member: MembershipsRow, queue: MessageQueue) -> Formula | None:
    """Return the formula of a member's strategy for the queue, or None if there is no strategy."""
    strategy = settlement.strategy_of(member)
    if strategy is None:
        return None
    listed = isinstance(strategy, Config)
    if not listed and not settled.can_read(queue):
        return None
    taker = member["client_id"] if listed or settled.takes(member, queue) else None
    return settled.formula(member, strategy, queue, taker)


def taker_reason(settled: Settlement, queue: MessageQueue, client_id: str) -> Reason:
    """Explain why this client, which a row names, may take from the queue or, for -1, from any
    queue of the broker.
    """
    processes = settled.view.processes_of.get(client_id)
    if not processes:
        return Reason(UNKNOWN, "it is not a member: the ledger contradicts itself", None, client_id)
    taking = [member for member in processes if settled.takes(member, queue)]
    if not taking:
        keeping = [
            m for m in processes if settled.outcome(m) in (*settlement.KEEPING, settlement.OTHER)
        ]
        code, text, _ = _kept(settled, (keeping or processes)[0])
        text = text if keeping else "no rule lets this client take from it"
        return Reason(code, text, None, client_id)
    member, outcome = taking[0], settled.outcome(taking[0])
    if outcome in _BEHIND_PROXIES:
        return Reason(outcome, _BEHIND_PROXIES[outcome], None, client_id)
    if outcome == settlement.POP:
        return _popped(settled, queue, member)
    if queue.queue_id == WHOLE_BROKER:
        return Reason(outcome, f"{member['strategy']} assigns it; {PULLED_TOO}", None, client_id)
    reason = owner_reason(settled, queue, client_id)
    return Reason(outcome, f"{reason.text}; {PULLED_TOO}", reason.formula, client_id)


def pulls(settled: Settlement, queue: MessageQueue, client_id: str) -> bool:
    """Return True if a process of the client pulls the queue while others pop the topic."""
    return any(
        settled.outcome(member)
        in (settlement.COMPUTED, settlement.MAX_LISTED, settlement.BROADCAST)
        and settled.takes(member, queue)
        for member in settled.view.processes_of.get(client_id, ())
    )


def unreached_reason(settled: Settlement, queue: MessageQueue) -> Reason:
    """Explain why no client may take from a queue that can be read."""
    assert settled.shared is not None
    members = [m for m in settled.view.members if settled.outcome(m) == settlement.POP]
    share = settled.shared.share_queue_num
    if not members or share is None or queue not in settled.queues:
        return Reason(LEFT_OUT, "no pass of a member takes it")
    strategy = settlement.strategy_of(members[0])
    assert strategy is not None
    ids = settled.view.client_ids
    if len(ids) > len(settled.queues):
        place = settled.queues.index(queue)
        owners = [ids[i] for i in range(place, len(ids), len(settled.queues))]
        text = f"index % mqAll assigns it to {', '.join(owners)}, and no client takes it"
        return Reason(settlement.NOT_SUBSCRIBED, text)
    formula = strategy.formula(Question(queue, settled.queues, ids))
    assert formula.entry is not None
    who = ids[formula.entry]
    if formula.owner is None:
        text = (
            f"it is in the share of place {formula.entry} of cidAll, where {who} appears again: "
            f"all its processes take the share of its first place, {ids.index(who)}"
        )
        return Reason(DUPLICATE, text, formula, who)
    text = (
        f"it is in the share of {who}, which does not take it; neither do the {share} clients "
        "before it in cidAll: membership is per group, so members that do not subscribe to "
        f"{settled.topic} still count"
    )
    return Reason(settlement.NOT_SUBSCRIBED, text, formula, who)


def _popped(settled: Settlement, queue: MessageQueue, member: MembershipsRow) -> Reason:
    client_id, ids = member["client_id"], settled.view.client_ids
    strategy = settlement.strategy_of(member)
    assert settled.shared is not None
    share = settled.shared.share_queue_num
    assert share is not None
    everything = pops_whole_brokers(share, len(ids))
    if everything:
        text = "POP: every client pops every queue"
    elif len(ids) > len(settled.queues):
        text = "POP: there are more members than queues, so it pops a single queue"
    else:
        assert strategy is not None
        text = f"POP: it pops its own share under {strategy.name} and those of the next {share}"
    if strategy is None or (queue.queue_id == WHOLE_BROKER and not everything):
        return Reason(settlement.POP, text, None, client_id)
    formula = pop_formula(strategy, queue, settled.queues, ids, client_id, share)
    return Reason(settlement.POP, text, formula, client_id)


RULE_TEXTS = {
    start_offset.STORED: (
        "the group has committed on this queue, or a client held it: it continues from the "
        "stored offset"
    ),
    start_offset.BROKER_ZERO: (
        "nothing is committed and the broker answers 0: the queue's minimum is 0 and its first "
        "message is still in memory"
    ),
    start_offset.MAX_OFFSET: "nothing is committed: CONSUME_FROM_LAST_OFFSET starts at the end",
    start_offset.FIRST_ZERO: "nothing is committed: CONSUME_FROM_FIRST_OFFSET starts at 0",
    start_offset.TIMESTAMP_SEARCH: "nothing is committed: CONSUME_FROM_TIMESTAMP starts at the "
    "first message not older than the timestamp",
    start_offset.RETRY_ZERO: "nothing is committed: a retry topic starts at 0",
    start_offset.RETRY_MAX: "nothing is committed: a retry topic starts at its end under "
    "CONSUME_FROM_TIMESTAMP",
    start_offset.LOCAL_STORE: "BROADCASTING: it starts at the offset in the client's own file",
    start_offset.PULL_ALWAYS_ZERO: "a PULL consumer starts at 0: the application keeps the offsets",
    start_offset.QUERY_FAILED: "the start fails: the queue does not exist, or the client rejects "
    "the mode",
    None: "no observation shows where it starts",
}


POP_RULE_TEXTS = {
    start_offset.STORED: (
        "the group has committed on this queue, or could read it before: the first pop continues "
        "from the stored offset, and repeats what pulling owners had not committed yet"
    ),
    pop_start.POP_MIN: "nothing is committed: CONSUME_FROM_FIRST_OFFSET pops from the minimum",
    pop_start.POP_ZERO: (
        "nothing is committed: the queue's minimum is 0 and its first message is still in memory, "
        "so that brokers from 5.1.4 on pop from 0"
    ),
    pop_start.POP_LAST: (
        "nothing is committed: the first pop takes the last message and skips those before it"
    ),
    None: "no observation shows where it starts",
}


@dataclass(frozen=True, slots=True)
class PullStart:
    """Where a reader began; numbers are message offsets, or None if unknown."""

    rule: str | None
    status: str
    text: str
    start_offset: int | None
    start_offset_low: int | None
    start_offset_high: int | None
    stored_offset: int | None
    min_offset: int | None
    max_offset: int | None
    corrected_offset: int | None
    skipped: int | None


def start_of(
    pull_starts: Sequence[PullStartsRow], queue: MessageQueue, client_id: str, epoch: int
) -> PullStart | None:
    """Return the start of a client that added the queue in that epoch, or None at the beginning of
    the log.
    """
    for row in pull_starts:
        if row["epoch"] == epoch and row["client_id"] == client_id and queue_of(row) == queue:
            return _start(row, RULE_TEXTS[row["rule"]], row["corrected_offset"])
    return None


def _start(
    row: PullStartsRow | PopStartsRow, text: str, corrected_offset: int | None = None
) -> PullStart:
    return PullStart(
        rule=row["rule"],
        status=row["status"],
        text=text,
        start_offset=row["start_offset"],
        start_offset_low=row["start_offset_low"],
        start_offset_high=row["start_offset_high"],
        stored_offset=row["stored_offset"],
        min_offset=row["min_offset"],
        max_offset=row["max_offset"],
        corrected_offset=corrected_offset,
        skipped=row["skipped"],
    )


@dataclass(frozen=True, slots=True)
class FirstPop:
    """The start of the first pop since members began to share the queue."""

    epoch: int
    change_ms: int
    start: PullStart


def first_pop_of(
    pop_starts: Sequence[PopStartsRow], queue: MessageQueue, epoch: int
) -> FirstPop | None:
    """Return the last start of the queue's pops up to an epoch, or None at the beginning of the
    log.
    """
    of_queue = (row for row in pop_starts if queue_of(row) == queue and row["epoch"] <= epoch)
    row = max(of_queue, key=lambda row: row["epoch"], default=None)
    if row is None:
        return None
    start = _start(row, POP_RULE_TEXTS[row["rule"]])
    return FirstPop(row["epoch"], row["change_ms"], start)


@dataclass(frozen=True, slots=True)
class EpochCause:
    """The epoch at the requested time, and the events that began it."""

    epoch: int
    from_ms: int
    to_ms: int | None
    causes: tuple[str, ...]
    status: str
    transient: bool
    members: int
    distinct_members: int
    latest_ms: int | None
    """The time by which all its queue changes have happened; None if it changed none."""
    untold_ms: int | None = None
    """How long it takes members to see the epoch without a notice; None if they are notified or the
    ledger does not show it.
    """


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists that an epoch's clients sort before they allocate."""

    epoch: int
    mq_all: tuple[str, ...]
    cid_all: tuple[str, ...]
    queue_index: int | None
    client_indexes: tuple[int, ...]
    """The indexes in cidAll of the holders, now and before; without a holder, that of the member
    that should hold the queue.
    """
    mq_all_known: bool = True
    """Whether mq_all is known; if not, rows of queues are missing, and mq_all contains those that
    may exist.
    """


@dataclass(frozen=True, slots=True)
class Acquisition:
    """How the holder acquired the queue: its last ADD."""

    epoch: int
    change_ms: int
    earliest_ms: int
    latest_ms: int
    kind: str
    cause: str
    from_client: str | None


@dataclass(frozen=True, slots=True)
class Holder:
    """A client that holds the queue, and the reason."""

    client_id: str
    processes: int
    index: int | None
    """Its first index in cidAll."""
    reason: Reason
    taken: Acquisition | None
    start: PullStart | None


@dataclass(frozen=True, slots=True)
class Taker:
    """A client that may take messages from the queue, and the reason."""

    client_id: str
    processes: int
    index: int | None
    """Its first index in cidAll."""
    entries: tuple[str, ...]
    """The rows of pop_reach that show this: the queue, its whole broker (-1), or some of its
    queues."""
    reason: Reason
    pulls: bool
    """Whether it pulls from queues that others pop."""
    from_epoch: int
    from_ms: int
    """The time since which it has reached the queue; of several rows, the oldest."""


@dataclass(frozen=True, slots=True)
class Sharers:
    """How members share a topic, and which clients may take from one of its queues."""

    since_epoch: int
    since_ms: int
    """The time since which members have continuously shared the topic."""
    pops: bool
    """Whether members query a broker whose mode for the topic is POP."""
    behind_proxy: bool
    """Whether members behind a proxy reach it."""
    share_queue_num: int | None
    """The share queue number of request mode POP; None if no member pops."""
    share_queue_nums: str | None
    """The same, as text."""
    strategies: tuple[str, ...]
    """The strategies of the members."""
    figures: Mapping[str, int]
    """The row of pop_metrics, without its keys."""
    receive: GroupWait | None
    """How long messages of the queue's broker wait for SimpleConsumers behind proxies; None if no
    member is behind a proxy.
    """
    takers_before: tuple[str, ...] | None
    """The clients that reached or held the queue in the previous epoch; None for the first
    epoch.
    """
    takers: tuple[Taker, ...]
    differs: tuple[str, ...]
    """The clients whose rows differ from the recomputed ones."""
    first_pop: FirstPop | None = None
    """None if members shared the queue when the log began, or the ledger has no pop_starts."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to `explain`."""

    cluster: str
    consumer_group: str
    queue: MessageQueue
    at_ms: int
    event: EpochCause
    before: Lists | None
    after: Lists
    holders_before: tuple[str, ...] | None
    """None for the first epoch."""
    holders: tuple[Holder, ...]
    no_owner: Reason | None
    """Why no client holds it; None if a client does."""
    agrees: bool | None
    """Whether the recomputed owner equals the ledger's; a difference is a bug in one of the two.
    None if it is not recomputed because rows of queues are missing.
    """
    expected: Mapping[str, tuple[int, int]]
    """Client id -> minimum and maximum number of its processes that hold the queue, recomputed."""
    notes: tuple[str, ...] = field(default=())
    sharing: Sharers | None = None
    """How members share the queue; if they do, it has no holder, and ``agrees`` refers to its
    topic.
    """
    progress: QueueProgressRow | None = None
    """How far the group had read it at the end of an audit; None without an audit."""
