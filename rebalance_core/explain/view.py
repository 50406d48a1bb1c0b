"""An epoch of a group as its ledger shows it: members, holders, and the queues that members could
read.

``queue_states`` shows which queues can be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.model.client_profile import ClientProfile
from rebalance_core.model.clients import profile_of_row
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE
from rebalance_core.model.queue import (
    MessageQueue,
    is_retry_topic,
    retry_topic,
    sort_client_ids,
    sort_queues,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import Covers, NamesQueue
    from rebalance_core.contracts.rows import (
        DiffsRow,
        EpochsRow,
        GroupMetricsRow,
        MembershipsRow,
        OwnershipRow,
        PopMetricsRow,
        PopReachRow,
        PopStartsRow,
        PullStartsRow,
        QueueStatesRow,
    )

OfStretch = TypeVar("OfStretch", bound="Covers")
ProcessKey = tuple[str, str | None]
Entries = frozenset[MessageQueue]
"""Queues as named in rows of pop_reach: the id -1 means any readable queue of the broker."""


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The ledger rows of one group; epochs other than the explained one do no harm."""

    epochs: Sequence[EpochsRow]
    ownership: Sequence[OwnershipRow]
    memberships: Sequence[MembershipsRow]
    diffs: Sequence[DiffsRow]
    pull_starts: Sequence[PullStartsRow]
    pop_reach: Sequence[PopReachRow] = ()
    pop_metrics: Sequence[PopMetricsRow] = ()
    group_metrics: Sequence[GroupMetricsRow] = ()
    queue_states: Sequence[QueueStatesRow] = ()
    pop_starts: Sequence[PopStartsRow] = ()

    def epoch_at(self, at_ms: int) -> EpochsRow | None:
        """Return the epoch at that instant, or None outside the ledger."""
        for row in self.epochs:
            if row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"]):
                return row
        return None


@dataclass(frozen=True)
class View:
    """The state of one group in one epoch."""

    row: EpochsRow
    members: tuple[MembershipsRow, ...]
    """The rows of memberships, one per process; no two have the same `key_of`."""
    holders: Mapping[MessageQueue, Counter[str]]
    """For each queue with a row, the number of processes of each id that hold it; empty without a
    holder.
    """
    shared: Mapping[str, PopMetricsRow] = field(default_factory=dict)
    """The topics whose queues members share, each with its row of pop_metrics."""
    reach: Mapping[str, Mapping[str, Entries]] = field(default_factory=dict)
    """For each shared topic, the clients that reach its queues, and the queues as named in the
    rows.
    """
    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of readable queues of the topics in group_metrics: all but shared and retry
    topics.
    """
    states: Mapping[MessageQueue, QueueStatesRow] = field(default_factory=dict)
    """The rows of queue_states."""

    @property
    def epoch(self) -> int:
        """The epoch's number."""
        return self.row["epoch"]

    @cached_property
    def client_ids(self) -> list[str]:
        """cidAll: one entry per process."""
        return sort_client_ids(member["client_id"] for member in self.members)

    @cached_property
    def keys(self) -> list[ProcessKey]:
        """Return the key of each process, by member."""
        return [key_of(member) for member in self.members]

    @cached_property
    def processes_of(self) -> dict[str, list[MembershipsRow]]:
        """The members of each client id."""
        processes: dict[str, list[MembershipsRow]] = {}
        for member in self.members:
            processes.setdefault(member["client_id"], []).append(member)
        return processes

    @cached_property
    def queues(self) -> dict[str, list[MessageQueue]]:
        """The sorted queues of each topic that have a row because they are readable, held or
        both.
        """
        topics: dict[str, list[MessageQueue]] = {}
        for queue in sort_queues(self.holders):
            topics.setdefault(queue.topic, []).append(queue)
        return topics

    @property
    def unreadable(self) -> int:
        """Count the queues that have a holder but cannot be read."""
        return len(self.holders) - self.row["queues"]

    def readable(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """Return a topic's mqAll, or None if the ledger counts more queues than it has rows for."""
        if topic in self.shared:
            return tuple(sort_queues(q for q in self.states if q.topic == topic))
        listed = self.queues.get(topic, ())
        queues = tuple(q for q in listed if q not in self.states or self.states[q]["readable"])
        return queues if len(queues) >= self._count_of(topic) else None

    def _count_of(self, topic: str) -> int:
        """Return the number of readable queues of an unshared topic; the retry topic has the
        rest.
        """
        rest = self.row["queues"] - sum(self.counts.values())
        return self.counts.get(topic, rest if is_retry_topic(topic) else 0)

    def held_by(self, queue: MessageQueue) -> Counter[str]:
        """Return the holders of a queue; empty if it has no row."""
        return self.holders.get(queue, Counter())


def view_of(rows: GroupRows, epoch: EpochsRow) -> View:
    """Return the view of one of the group's epochs."""
    number = epoch["epoch"]
    holders: dict[MessageQueue, Counter[str]] = {}
    for row in covering(rows.ownership, number):
        held = holders.setdefault(queue_of(row), Counter())
        if row["client_id"] is not None:
            held[row["client_id"]] += row["holders"]
    members = _distinct_members(covering(rows.memberships, number))
    shared = {row["topic"]: row for row in rows.pop_metrics if row["epoch"] == number}
    counts = {
        row["topic"]: int(row["queues"])
        for row in rows.group_metrics
        if row["epoch"] == number and row["topic"] is not None
    }
    reach = _reach(covering(rows.pop_reach, number))
    states = {queue_of(row): row for row in covering(rows.queue_states, number)}
    return View(
        row=epoch,
        members=members,
        holders=holders,
        shared=shared,
        reach=reach,
        counts=counts,
        states=states,
    )


def key_of(member: MembershipsRow) -> ProcessKey:
    """Return the key that distinguishes a process in a view from the others."""
    return member["client_id"], member["channel_id"]


def _distinct_members(members: Iterable[MembershipsRow]) -> tuple[MembershipsRow, ...]:
    """Return the rows, each with a distinct channel; a redacted ledger has no channels."""
    by_key: dict[ProcessKey, MembershipsRow] = {}
    for member in members:
        if key_of(member) in by_key:
            member = {**member, "channel_id": f"{member['channel_id']}#{len(by_key)}"}
        by_key[key_of(member)] = member
    return tuple(by_key.values())


def subscribes(member: MembershipsRow, topic: str) -> bool:
    """Return True if a process allocates the topic.

    It allocates subscribed topics, and the retry topic of push CLUSTERING consumers without a
    proxy. A ledger has rows about a group's own retry topic only for a group of push consumers.
    """
    if topic == retry_topic(member["consumer_group"]):
        behind_proxy = member["rebalance_mode"] == PROXY_REBALANCE
        has_it = profile_of_row(member).retry and not behind_proxy
        return has_it and bool(member["message_model"] != BROADCASTING)
    return topic in (member["subscriptions"] or ())


_UNPROVEN: tuple[tuple[Callable[[ClientProfile, str], bool], str], ...] = (
    (
        ClientProfile.share_known,
        "the queues that {} takes are unknown: its order depends on its host, or it is untested "
        "with the strategy, so it may own this queue, or the queue may have no owner",
    ),
    (
        lambda profile, _: not profile.may_be_doubtful,
        "whether {} has this queue is unknown: only source code shows which queues its client "
        "keeps of a topic without a readable queue",
    ),
)
"""Tests that a member with this profile and strategy certainly has no queue without a row, each
with the reason if it may have one.
"""


def refuse_unknown(
    members: Iterable[MembershipsRow],
    queue: MessageQueue | None = None,
    may_own: Iterable[MembershipsRow] = (),
) -> None:
    """Raise `UsageError` if ownership in an epoch is unknown.

    Args:
        members: the members in this epoch and the previous one; their subscriptions may be unknown.
        queue: the queue in question; None: all queues.
        may_own: the members in the epoch if no row has the queue, because a member's client may
            take or hold unknown queues; empty if a row has it.
    """
    for rule_known, words in _UNPROVEN:
        foreign = sorted(
            f"{row['client_id']} ({row['language']})"
            for row in may_own
            if queue is not None
            and not rule_known(profile_of_row(row), row["strategy"])
            and subscribes(row, queue.topic)
        )
        if foreign:
            raise UsageError(words.format(", ".join(foreign[:3])))
    unknown = sorted({row["client_id"] for row in members if row["subscriptions"] is None})
    if unknown:
        raise UsageError(
            f"the subscriptions of {', '.join(unknown[:3])} are unknown, so explain cannot derive "
            "the owners; state the subscriptions in its CONSUMER_JOIN or in consumer_groups"
        )


def _reach(rows: Iterable[PopReachRow]) -> dict[str, dict[str, frozenset[MessageQueue]]]:
    entries: dict[str, dict[str, set[MessageQueue]]] = {}
    for row in rows:
        queue = queue_of(row)
        entries.setdefault(queue.topic, {}).setdefault(row["client_id"], set()).add(queue)
    return {
        topic: {client_id: frozenset(entries) for client_id, entries in clients.items()}
        for topic, clients in entries.items()
    }


def queue_of(row: NamesQueue) -> MessageQueue:
    """Return the queue that a row names."""
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def covering(rows: Iterable[OfStretch], epoch: int) -> list[OfStretch]:
    """Select the rows whose range of epochs contains an epoch."""
    return [
        row
        for row in rows
        if row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"])
    ]
