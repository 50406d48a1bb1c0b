"""The movement and balance of a step, per topic and for the whole group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypedDict

from rebalance_core.model.clients import member_profile
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import (
    BROADCASTING,
    CLIENT_REBALANCE,
    CLUSTERING,
    GroupSettings,
)
from rebalance_core.model.queue import MessageQueue, sort_client_ids
from rebalance_core.planning.strategies import Owners, by_topic
from rebalance_core.replay.changes import changes_of
from rebalance_core.replay.group_view import GroupView
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.replay.metrics import metric_rows

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupMetricsBegun


def owners_of(holdings: Mapping[ProcessKey, frozenset[MessageQueue]]) -> Owners:
    """Return the client ids that hold each queue, each once, in the order of the holdings."""
    owners: dict[MessageQueue, tuple[str, ...]] = {}
    for (client_id, _), queues in holdings.items():
        for queue in queues:
            others = owners.get(queue, ())
            if client_id not in others:
                owners[queue] = (*others, client_id)
    return owners


def previous_owner(
    before: Mapping[ProcessKey, frozenset[MessageQueue]], present: Collection[str]
) -> dict[MessageQueue, str]:
    """Return each queue's owner as strategies receive it: the first of several holders.

    Args:
        before: The holdings.
        present: The client ids of the current members; queues held by others have no owner.
    """
    owner: dict[MessageQueue, str] = {}
    for (client_id, _), queues in reversed(list(before.items())):
        if client_id in present:
            owner.update(dict.fromkeys(queues, client_id))
    return owner


# The figures are those of the ledger's `group_metrics`, computed by the replay's own code; this
# file only turns a step into an epoch, and decides where amplification is meaningless.
STEP_FIGURES = (
    "members", "queues", "moved", "voluntary_moves", "minimum_moves", "amplification", "stickiness",
    "max_queues", "min_queues", "peak_ratio", "idle_members",
)  # fmt: skip
"""The columns of ``group_metrics`` that ``plan_steps`` contains."""

Holders: TypeAlias = Mapping[MessageQueue, "str | tuple[str, ...] | None"]
"""The holders of each queue: a client id, several, or none (None, () or no key)."""


@dataclass(frozen=True, slots=True)
class Movement:
    """A row of `group_metrics` (see the contract for each figure), without its keys.

    ``caveat`` is None, or the reason why ``minimum_moves`` and ``amplification`` are not meaningful
    here even if they are numbers; show it wherever you show these figures.
    """

    topic: str | None
    queues: int
    members: int
    moved: int
    voluntary_moves: int
    minimum_moves: int | None
    amplification: float | None
    stickiness: float | None
    max_queues: int
    min_queues: int
    peak_ratio: float | None
    idle_members: int
    caveat: str | None = None


@dataclass(frozen=True, slots=True)
class StepMovement:
    """A step: one row per topic, in Java's order of the names, and one row for the group."""

    group: Movement
    topics: Mapping[str, Movement]


def movement(
    previous: Holders,
    members: Iterable[str] | Mapping[str, Iterable[str]],
    owners: Holders,
    *,
    queues: Iterable[MessageQueue] | None = None,
    message_model: str = CLUSTERING,
) -> StepMovement:
    """Count the moves of a step from ``previous`` to ``owners``, and measure how even its result
    is.

    Retry topics are left out, as in the ledger.

    Args:
        previous: The previous holders; those that are no longer members count as gone.
        members: Current client ids (repeats are processes with the same id: one member), or client
            id -> the topics to which it subscribes. Ids alone subscribe to every topic.
        owners: Current holders.
        queues: Current readable queues; by default the keys of ``owners``.
        message_model: CLUSTERING or BROADCASTING.

    Cost: linear in the queues and the members.

    Raises:
        UsageError: An owner is not a member.

    >>> queues = [MessageQueue("T", "a", i) for i in range(8)]
    >>> before = dict(zip(queues, "aaaabbbb"))
    >>> step = movement(before, "abc", dict(zip(queues, "aaabbbcc"))).group  # AVG, c joins
    >>> step.moved, step.minimum_moves, step.amplification, step.max_queues
    (3, 2, 1.5, 3)
    """
    readable = by_topic(owners if queues is None else queues)
    if not isinstance(members, Mapping):
        topics = readable.keys() | {queue.topic for queue in previous}
        members = dict.fromkeys(members, topics)
    if unknown := {client_id for client_id, _ in _holdings(owners, {})} - set(members):
        raise UsageError(f"owners that are not members: {', '.join(sort_client_ids(unknown))}")
    keys: dict[ProcessKey, Member] = {
        (client_id, None): member_of(client_id, None, topics, message_model)
        for client_id, topics in members.items()
    }
    return movement_of_epoch(
        Epoch(
            number=1,
            from_ms=0,
            latest_ms=0,
            retry_latest_ms=0,
            seen_late=False,
            causes=(),
            initial=False,
            lost=frozenset(),
            frozen_topics=frozenset(),
            view=GroupView(GroupSettings(message_model=message_model), keys, readable),
            before=_holdings(previous, {}),
            holdings=_holdings(owners, keys),
        )
    )


def movement_of_epoch(epoch: Epoch) -> StepMovement:
    """Return `movement` for a step that is an epoch of the replay."""
    rows, owners = figures_of_epoch(epoch), owners_of(epoch.holdings)
    figures: list[Movement] = []
    for row in rows:
        topics = epoch.readable if row["topic"] is None else (row["topic"],)
        values: dict[str, Any] = {**row}
        named = {name: values[name] for name in Movement.__slots__ if name in values}
        figures.append(Movement(**named, caveat=_caveat(epoch, topics, owners)))
    return StepMovement(figures[-1], MappingProxyType({str(m.topic): m for m in figures[:-1]}))


def figures_of_epoch(epoch: Epoch) -> list[GroupMetricsBegun]:
    """Return an epoch's rows of `group_metrics` without keys: one per topic, then one for the
    group.
    """
    return metric_rows(epoch, changes_of(epoch, ordered=False))


def member_of(
    client_id: str,
    channel_id: str | None,
    topics: Iterable[str],
    message_model: str,
    rebalance_mode: str = CLIENT_REBALANCE,
    language: str | None = None,
) -> Member:
    """Return a member reduced to what movement depends on, with the newest client version."""
    version = GroupSettings().client_version
    topics = frozenset(topics)
    return Member(
        client_id=client_id,
        channel_id=channel_id,
        subscriptions=topics,
        strategy="",
        version=version,
        message_model=message_model,
        consume_from_where="",
        rebalance_mode=rebalance_mode,
        language=language,
        profile=member_profile(language, version, rebalance_mode),
    )


def _holdings(
    holders: Holders, members: Mapping[ProcessKey, Member]
) -> dict[ProcessKey, frozenset[MessageQueue]]:
    held: dict[ProcessKey, set[MessageQueue]] = {key: set() for key in members}
    for queue, holder in holders.items():
        for client_id in (holder,) if isinstance(holder, str) else holder or ():
            held.setdefault((client_id, None), set()).add(queue)
    return {key: frozenset(queues) for key, queues in held.items()}


def _caveat(epoch: Epoch, topics: Iterable[str], owners: Owners) -> str | None:
    """Return why the minimum of a balanced result is no yardstick for this result, or None."""
    members = epoch.members.values()
    if not members:
        return "no member"
    if any(member.message_model == BROADCASTING for member in members):
        return "BROADCASTING: every member owns every queue"
    topics = list(topics)
    if not topics and epoch.shared:
        return (
            f"members share the queues of {', '.join(epoch.shared)}: no client owns them "
            "exclusively"
        )
    frozen = [topic for topic in topics if topic in epoch.frozen_topics]
    if frozen:
        return f"frozen topics: members keep their queues of {', '.join(frozen)}"
    if len({member.subscriptions for member in members}) > 1:
        return (
            "members subscribe differently: for each topic, the shares of members that do not "
            "read it are lost"
        )
    if not epoch.all_known:
        return "the queues that some member takes are unknown"
    holders = Counter(len(owners.get(q, ())) for topic in topics for q in epoch.readable[topic])
    if holders[0]:
        return f"queues without an owner: {holders[0]}"
    shared = holders.total() - holders[1]
    return f"queues that several members hold: {shared}" if shared else None


EVEN_ENOUGH = 0.05  # a mean peak ratio this much above the lowest counts as equal; our choice


class MovementFigures(TypedDict):
    """The figures of a strategy over all groups.

    ``moved`` is None where members share all queues, ``mean_peak_ratio`` without a member or queue;
    ``frozen`` counts groups; ``shared``: groups pop.
    """

    strategy: str
    of_rocketmq: bool
    moved: int | None
    orphaned: int
    idle: int
    frozen: int
    mean_peak_ratio: float | None
    shared: NotRequired[bool]


_LEAST: tuple[tuple[Literal["frozen", "orphaned", "idle"], str], ...] = (
    ("frozen", "{:,} groups frozen"),
    ("orphaned", "{:,} queues without an owner"),
    ("idle", "{:,} members without a queue"),
)
"""Figures that a strategy should minimise, most important first."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best of RocketMQ's strategies, and why."""

    strategy: str
    reason: str


def best_of(rows: Sequence[MovementFigures]) -> Best | None:
    """Return the best of RocketMQ's strategies, the runner-up in brackets; None without rows.

    The criteria are, in this order: the fewest frozen groups, the fewest queues without an owner,
    the fewest members without a queue, a mean peak ratio at most `EVEN_ENOUGH` above the lowest of
    the remaining ones, the fewest moves; then the order of the rows. Hypothetical strategies cannot
    be configured, so they only show what would be possible. Where members share queues, nothing
    moves, but at a different price: such rows are not ranked.

    >>> rows = [dict(strategy=s, of_rocketmq=True, moved=m, orphaned=0, idle=0, frozen=0,
    ...              mean_peak_ratio=p) for s, m, p in (("AVG", 9, 1.0), ("CONSISTENT_HASH", 2, 2))]
    >>> best_of(rows).reason
    'as even as any other, with a mean peak ratio of 1.00 (CONSISTENT_HASH: 2.00)'
    """
    left = [row for row in rows if row["of_rocketmq"] and _divides(row)]
    if not left:
        return None
    reasons: list[str] = []

    def keep(
        good: list[MovementFigures],
        name: Literal["frozen", "orphaned", "idle", "mean_peak_ratio", "moved"],
        words: str,
        form: str = "{:,}",
    ) -> None:
        nonlocal left
        worse = [row for row in left if row not in good]
        left = good
        if worse:
            nearest = min(worse, key=lambda row: row[name] or 0)
            value = form.format(nearest[name])
            reasons.append(f"{words} ({nearest['strategy']}: {value})")

    for name, words in _LEAST:
        least = min(row[name] for row in left)
        keep([row for row in left if row[name] == least], name, words.format(least))
    peaks = [row["mean_peak_ratio"] for row in left if row["mean_peak_ratio"] is not None]
    if peaks:
        limit = min(peaks) + EVEN_ENOUGH
        even = [row for row in left if (row["mean_peak_ratio"] or 0) <= limit]
        ratio = even[0]["mean_peak_ratio"] or 0
        words = f"as even as any other, with a mean peak ratio of {ratio:.2f}"
        keep(even, "mean_peak_ratio", words, "{:.2f}")
    least = min(row["moved"] or 0 for row in left)
    fewest = [row for row in left if row["moved"] == least]
    keep(fewest, "moved", f"moves the fewest of these, {least:,} queues")
    if not reasons:
        reasons.append("no other strategy does better or worse")
    return Best(left[0]["strategy"], "; ".join(reasons))


def _divides(row: MovementFigures) -> bool:
    return row["moved"] is not None and not row.get("shared")


def possible(rows: Sequence[MovementFigures], best: Best) -> str | None:
    """Return what a hypothetical strategy would save compared with the best, or None.

    A strategy counts only if it is at least as even and leaves at most as many queues ownerless.
    """
    chosen = next(row for row in rows if row["strategy"] == best.strategy)
    moved = chosen["moved"] or 0
    peak = (chosen["mean_peak_ratio"] or 0) + EVEN_ENOUGH
    better = [
        row
        for row in rows
        if not row["of_rocketmq"]
        and _divides(row)
        and (row["moved"] or 0) < moved
        and row["orphaned"] <= chosen["orphaned"]
        and (row["mean_peak_ratio"] or 0) <= peak
    ]
    if not better:
        return None
    least = min(better, key=lambda row: row["moved"] or 0)
    moves = least["moved"] or 0
    return (
        f"{least['strategy']}, which RocketMQ lacks, would move {moves:,}: {moved - moves:,} fewer"
    )
