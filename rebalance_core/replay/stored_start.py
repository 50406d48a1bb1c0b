"""The start in a queue that was held or committed before: the group's commit and its bounds."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import OK, UNKNOWN
from rebalance_core.protocol.commits import (
    COMMIT_TRANSIT_MS,
    FINAL_COMMIT_STORED_MS,
    OWN_COMMIT_STORED_MS,
)
from rebalance_core.protocol.settling_windows import ROUTE_MS
from rebalance_core.protocol.start_offset import STORED
from rebalance_core.replay.changes import ADD, NEW, OwnerChange
from rebalance_core.replay.history import CommittedOffset
from rebalance_core.replay.offset_observations import CommittedOffsets, QueueOffsets, newer
from rebalance_core.replay.role_switches import RoleSwitch, RoleSwitches
from rebalance_core.replay.start_rule import StartOffset
from rebalance_core.replay.topic_deletions import BEFORE_ALL_MS, DeletionsByQueue


@dataclass(slots=True)
class Past:
    """A queue's previous holders, and where its owner started."""

    clients: set[str] = field(default_factory=set)
    last_holders: set[str] = field(default_factory=set)
    held: bool = False
    """Whether a client still holds it."""
    since_ms: int = BEFORE_ALL_MS
    """When the queue was assigned to the last holder."""
    taken_ms: int = BEFORE_ALL_MS
    """The latest moment by which the last holder had taken it; `BEFORE_ALL_MS` if before the log
    began.
    """
    alone_ms: int | None = None
    """The moment by which all earlier holders had released it; None if others also hold it."""
    dropped_ms: int = BEFORE_ALL_MS
    """When the last holder was notified to release it."""
    gone_ms: int = BEFORE_ALL_MS
    """The moment by which all clients that ever released it had done so."""
    low: int | None = None
    """The lowest offset at which the last holder can have started."""
    switches: tuple[RoleSwitch, ...] = ()
    """The losses and returns of masters that have affected the queue so far."""
    switched_low: int = 0
    """The lowest offset that any client can have committed, or kept, in any of these."""


@dataclass(frozen=True, slots=True)
class Handover:
    """An ADD of a queue, and the other clients that may write its commit until the new owner has
    read it.
    """

    change: OwnerChange
    past: Past
    gone_ms: int
    """As `Past.gone_ms`, including the drops in this epoch."""
    stays: bool
    """Whether another client keeps the queue."""
    others_start: bool
    """Whether another client may be assigned the queue, and commit, before the new owner reads."""
    persists: Set[str]
    """The clients that persist the queue's offset when they leave."""

    @property
    def queue(self) -> MessageQueue:
        """The queue that is handed over."""
        return self.change.queue

    @property
    def shared(self) -> bool:
        """Return True if another client may read and commit until the end of the window."""
        return self.stays or self.others_start


class StoredStarts:
    """Starts derived from a group's observations.

    Args:
        offsets: the offsets of its queues.
        commits: the group's commits.
        deletions: the deletions of its queues.
        switches: the switches of its masters.
    """

    def __init__(
        self,
        offsets: QueueOffsets,
        commits: CommittedOffsets,
        deletions: DeletionsByQueue,
        switches: RoleSwitches,
    ) -> None:
        self._offsets, self._commits, self._deletions = offsets, commits, deletions
        self._switches = switches

    def newest(self, queue: MessageQueue, at_ms: int) -> CommittedOffset | None:
        """Return the newest commit that the broker still knows, whichever replica answers."""
        after_ms, until_ms = self._deletions.forgotten(queue, at_ms), at_ms
        while row := self._commits.newest(queue, until_ms, after_ms=after_ms):
            if not self._switches.went_to_slaves(queue.broker_name, row.observed_ms, at_ms):
                return row
            until_ms = row.observed_ms - 1
        return None

    def may_be_unknown(self, queue: MessageQueue, past: Past, at_ms: int) -> bool:
        """Return whether there is no evidence that a commit had arrived and survived all losses of
        masters.
        """
        after_ms = self._deletions.forgotten(queue, at_ms)
        arrived = self._commits.newest_arrived(queue, at_ms, after_ms)
        if not past.switches or arrived is None:
            return arrived is None
        kept_ms = min(switch.kept_ms for switch in past.switches)
        kept = self._commits.newest_arrived(queue, kept_ms, after_ms)
        settled_ms = _settled_ms(past)
        if settled_ms is not None:
            later_ms = max(after_ms, settled_ms)
            kept = kept or self._commits.newest_arrived(queue, at_ms, later_ms)
        return kept is None or self.newest(queue, at_ms) is None

    def follow_masters(self, past: Past, change: OwnerChange) -> None:
        """Record every loss of the queue's master until the end of a change's window.

        Must be called for every change of the queue, in order, before the change is counted.
        """
        queue = change.queue
        switches = self._switches.until(queue.broker_name, change.latest_ms)
        for switch in switches[len(past.switches) :]:
            low = self._lowest(queue, past, min(switch.kept_ms, change.earliest_ms))
            past.switched_low = min(low, past.switched_low) if past.switches else low
            past.switches += (switch,)

    def _lowest(self, queue: MessageQueue, past: Past, at_ms: int) -> int:
        """Return the lowest offset that the master can have had at a given moment."""
        placeholder = OwnerChange(
            queue=queue,
            action=ADD,
            client_id="",
            other_client_id=None,
            kind=NEW,
            earliest_ms=at_ms,
            latest_ms=at_ms,
        )
        asked = Handover(
            placeholder, past, past.gone_ms, stays=False, others_start=False, persists=frozenset()
        )
        return self._floor(asked, self._base(asked))

    def start(self, handover: Handover, uncommitted: StartOffset | None) -> StartOffset:
        """Return the start of the new owner.

        Args:
            handover: the previous holders of the queue.
            uncommitted: where it starts if the broker knows no commit; None if it knows a commit.
        """
        handover = self._settled(handover)
        change, past, queue = handover.change, handover.past, handover.queue
        stored = self.newest(queue, change.earliest_ms)
        inside = self._commits.within(queue, change.earliest_ms, change.latest_ms, past.clients)
        values = [row.committed_offset for row in inside]
        if stored is not None:
            values.append(stored.committed_offset)
            if not past.switches and not handover.shared and self._is_final(handover, stored):
                return StartOffset(STORED, stored.committed_offset, min(values), max(values))
        values += [row.committed_offset for row in self._of_last_holders(handover)]
        estimate = self._estimate(handover, stored, inside)
        base = self._base(handover)
        low = min([self._floor(handover, base), *values])
        high = None if self._may_be_old(handover, base) else self._high(handover, inside, values)
        if past.switches:
            low = min(low, past.switched_low)
        if uncommitted is not None:
            low = min(low, uncommitted.low or 0)
            high = highest(high, uncommitted.high)
        return StartOffset(STORED, estimate, low, high, UNKNOWN if estimate is None else OK)

    def _estimate(
        self, handover: Handover, stored: CommittedOffset | None, inside: list[CommittedOffset]
    ) -> int | None:
        # Only the most recent holder persists the offset when it leaves; a client that lost the
        # queue earlier, was lost, or takes it back commits its later progress.
        past = handover.past
        handed_over = [row for row in inside if past.held and row.client_id in handover.persists]
        if handed_over:
            return handed_over[-1].committed_offset
        if stored is not None:
            return stored.committed_offset
        return 0 if self._outlived(handover) else past.low

    def _of_last_holders(self, handover: Handover) -> list[CommittedOffset]:
        queue, at_ms = handover.queue, handover.change.earliest_ms
        after_ms = self._deletions.forgotten(queue, at_ms)
        commits = (
            self._commits.newest(queue, at_ms, client_id, after_ms=after_ms)
            for client_id in handover.past.last_holders
        )
        return [row for row in commits if row is not None]

    def _outlived(self, handover: Handover) -> bool:
        """Return whether the queue was deleted while or after the last holder had it."""
        past = handover.past
        born_ms = self._deletions.last(handover.queue, handover.change.earliest_ms)
        return bool(past.last_holders) and past.since_ms < born_ms

    def _is_final(self, handover: Handover, row: CommittedOffset) -> bool:
        """Return whether, by the time of the event, no client could still write when the commit
        arrived.
        """
        past, earliest_ms = handover.past, handover.change.earliest_ms
        if past.held or not past.last_holders:
            return False
        if row.client_id is None:
            return row.observed_ms >= handover.gone_ms + FINAL_COMMIT_STORED_MS
        in_time = handover.gone_ms <= row.observed_ms <= earliest_ms - COMMIT_TRANSIT_MS
        return in_time and self._commits.is_kept(row)

    def _may_be_old(self, handover: Handover, base: CommittedOffset | None) -> bool:
        """Return True if the broker may answer with a commit on a deleted queue of the same name.
        4.9 keeps those commits; later brokers may receive them again from a client that has not yet
        released the queue.
        """
        queue, earliest_ms = handover.queue, handover.change.earliest_ms
        born_ms = self._deletions.last(queue, earliest_ms)
        if born_ms == BEFORE_ALL_MS or (base is not None and base.observed_ms > born_ms):
            return False
        kept = self._deletions.forgotten(queue, earliest_ms) < born_ms
        recent = earliest_ms <= born_ms + ROUTE_MS + COMMIT_TRANSIT_MS
        return kept or recent or self._outlived(handover)

    def _floor(self, handover: Handover, base: CommittedOffset | None) -> int:
        """Return the lowest offset of the last owner, and so of every later reader."""
        if base is not None:
            return base.committed_offset
        return 0 if self._outlived(handover) else handover.past.low or 0

    def _settled(self, handover: Handover) -> Handover:
        """Return the hand-over without the role switches that a later commit makes irrelevant."""
        past, settled_ms = handover.past, _settled_ms(handover.past)
        if settled_ms is None:
            return handover
        alone_ms = None if past.alone_ms is None else max(past.alone_ms, settled_ms)
        since = replace(
            past,
            switches=(),
            alone_ms=alone_ms,
            taken_ms=max(past.taken_ms, settled_ms),
            gone_ms=max(past.gone_ms, settled_ms),
        )
        later = replace(handover, past=since, gone_ms=max(handover.gone_ms, settled_ms))
        base = self._base(later)
        newer_ms = settled_ms + FINAL_COMMIT_STORED_MS
        return later if base is not None and base.observed_ms >= newer_ms else handover

    def _base(self, handover: Handover) -> CommittedOffset | None:
        """Return the newest commit after which no client wrote a lower one."""
        past, queue, at_ms = handover.past, handover.queue, handover.change.earliest_ms
        after_ms = self._deletions.forgotten(queue, at_ms)
        arrived = self._commits.newest_arrived(queue, at_ms, after_ms)
        if arrived is None or not past.last_holders or self._is_final(handover, arrived):
            return arrived
        if past.alone_ms is None or self._outlived(handover):
            return None
        if past.taken_ms == BEFORE_ALL_MS:
            return arrived
        (holder,) = past.last_holders
        sent = self._commits.newest(
            queue,
            at_ms - COMMIT_TRANSIT_MS,
            holder,
            after_ms=max(after_ms, past.alone_ms + COMMIT_TRANSIT_MS - 1),
            kept=True,
        )
        settled_ms = max(past.taken_ms, past.alone_ms) + OWN_COMMIT_STORED_MS
        seen = self._commits.newest(queue, at_ms, None, after_ms=max(after_ms, settled_ms - 1))
        return newer(sent, seen)

    def _high(
        self, handover: Handover, inside: Iterable[CommittedOffset], values: list[int]
    ) -> int | None:
        """Return the queue's end when the last owner that may have written released the queue."""
        change, past = handover.change, handover.past
        end_ms = min(handover.gone_ms, change.latest_ms)
        back = any(row.observed_ms > end_ms + COMMIT_TRANSIT_MS for row in inside)
        back = back or bool(past.switches)
        if back or handover.shared or not past.last_holders:
            end_ms = change.latest_ms
        top = self._offsets.max_by(handover.queue, end_ms, change.earliest_ms)
        if top is not None and past.switches:
            # a slave may know a commit for messages that it does not have yet
            life = self._offsets.life(handover.queue, change.earliest_ms)
            values = [*values, *(r.max_offset for r in life if r.observed_ms <= change.latest_ms)]
        return None if top is None else max([top, *values])


def _settled_ms(past: Past) -> int | None:
    """Return when all switches of a queue are over, or None if there are none or one is still in
    progress.
    """
    ends = [switch.settled_ms for switch in past.switches]
    return None if None in ends else max((end for end in ends if end is not None), default=None)


def highest(*bounds: int | None) -> int | None:
    """Return the highest of the upper bounds, or None if one is unbounded."""
    return None if None in bounds else max(bound for bound in bounds if bound is not None)
