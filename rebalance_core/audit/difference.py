"""Explains queues whose observed owners differ from the prediction."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, listings
from rebalance_core.audit.duplicate_ids import duplicate_ids_at
from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    GroupSnapshot,
    grouped,
    listed,
    plural,
)
from rebalance_core.audit.known_shares import stated_strategies
from rebalance_core.audit.observations import ClientObservation, Observation, address_of
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.refused_starts import RefusedStarts
from rebalance_core.model.clients import is_java
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.events import BROKER_UP
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.refused_starts import LOCK_FAILED
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.protocol.mixed_group import MixedGroup
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS
from rebalance_core.protocol.shares import MemberStrategy
from rebalance_core.strategies import allocate_group, custom, parse_strategy
from rebalance_core.strategies.registry import CANDIDATES, DEFAULT_VERSION

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        EpochsRow,
        MembershipsRow,
        PropagationRow,
    )


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Queues that differ from the prediction at a time when a change may not yet have reached all
    members.

    Attributes:
        change_ms: the change, epoch ms.
        seen_ms: the last observation that differed, epoch ms.
        queues: the number of queues that differed then.
    """

    change_ms: int
    seen_ms: int
    queues: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """The simulated latencies' judgement of queues that have not settled.

    Attributes:
        words: text for the summary, beginning with a space.
        evidence: the values that were compared.
        late: whether the queues are later than in any simulated future.
    """

    words: str
    evidence: dict[str, str]
    late: bool


def lateness(group: GroupSnapshot, unsettled: Unsettled) -> Lateness | None:
    """Return how late the queues are, or None if ``propagation`` has no row for the change.

    The ledger's windows cover every future without lost notifications. The simulation shows how
    common such a delay is: within its range, it is an effect of the change; beyond it, few futures
    or none are this late.
    """
    row = next(
        (row for row in group.tables["propagation"] if row["change_ms"] == unsettled.change_ms),
        None,
    )
    if row is None:
        return None
    age_ms = unsettled.seen_ms - unsettled.change_ms
    what, late = _how_late(row, age_ms)
    queues = plural(unsettled.queues, "queue")
    words = f" {queues} differed {_seconds(age_ms)} after the change, {what}."
    evidence = {
        "differed_after_s": _seconds(age_ms).removesuffix(" s"),
        "simulated_p99_s": _seconds(row["convergence_ms_p99"]).removesuffix(" s"),
        "simulated_max_s": _seconds(row["convergence_ms_max"]).removesuffix(" s"),
    }
    return Lateness(words, evidence, late)


def _how_late(row: PropagationRow, age_ms: int) -> tuple[str, bool]:
    longest = _seconds(row["convergence_ms_max"])
    slowest = f"its slowest simulated future settles within {longest}"
    for settled_ms, words in (
        (row["convergence_ms_p50"], "as in more than half of its simulated futures"),
        (row["convergence_ms_p95"], "as in 1 of 20 of its simulated futures or more"),
        (row["convergence_ms_p99"], "as in 1 of 100 of its simulated futures or more"),
    ):
        if age_ms <= settled_ms:
            return words, False
    if age_ms <= row["convergence_ms_max"]:
        return f"which fewer than 1 of 100 of its simulated futures are; {slowest}", False
    return f"later than all of its simulated futures: {slowest}", True


def _seconds(span_ms: int) -> str:
    return f"{span_ms / SECOND_MS:.1f} s"


FOREIGN_CLIENTS = 2
"""A single holder would fit many strategies."""
NEAR_MS = ORDER_LOCK_MS
"""Observations and log entries this close together count as simultaneous."""

Owners = Mapping[MessageQueue, tuple[str, ...]]


class Allocations:
    """Allocations of one epoch's queues to clients, each computed once."""

    def __init__(self, group: GroupSnapshot, prediction: Prediction, at_ms: int) -> None:
        self.prediction = prediction
        self._at_ms = at_ms
        self._languages = dumps.languages(group)
        self._versions = {
            row["client_id"]: str(row["version"])
            for row in group.tables["memberships"]
            if holds(row, at_ms)
        }
        self.members = tuple(
            # cidAll includes members that do not subscribe to the topic
            row["client_id"]
            for row in group.tables["memberships"]
            if holds(row, at_ms)
        )
        self.owners = cache(self._owners)

    def _owners(self, strategy: str, topic: str, clients: tuple[str, ...]) -> Owners:
        """Return the owners of the topic's queues; empty if the strategy cannot allocate them."""
        return self.divided(strategy, self.prediction.queues(topic, self._at_ms), clients)

    def divided(
        self, strategy: str, queues: Sequence[MessageQueue], clients: Sequence[str]
    ) -> Owners:
        """Return the owners of these queues when allocated among these clients by each language's
        rules.

        Empty if the strategy cannot allocate them, or if a client's rules are unknown.
        """
        if not queues or not clients:
            return {}
        if not all(is_java(self._languages.get(client_id)) for client_id in clients):
            return self._divided_by_each(strategy, queues, clients)
        try:
            return allocate_group(parse_strategy(strategy), queues, clients)
        except AllocationError:
            return {}

    def _divided_by_each(
        self, strategy: str, queues: Sequence[MessageQueue], clients: Sequence[str]
    ) -> Owners:
        members = [
            MemberStrategy(
                client_id,
                strategy,
                self._languages.get(client_id),
                self._versions.get(client_id, DEFAULT_VERSION),
            )
            for client_id in dict.fromkeys(clients)
        ]
        group = MixedGroup(dict.fromkeys(members), clients, queues)
        return {} if group.unsure or group.keeping else group.owners


class Explanations:
    """Explains the observations made at one time, caching answers for whole topics.

    Args:
        group: its snapshot.
        observed: all its observations, in chronological order.
        allocations: the allocations of the epoch at that time.
        at_ms: the time.
    """

    def __init__(
        self,
        group: GroupSnapshot,
        observed: Sequence[Observation],
        allocations: Allocations,
        at_ms: int,
    ) -> None:
        self._case = group
        self._observed = observed
        self._allocations = allocations
        self._prediction = allocations.prediction
        self._at_ms = at_ms
        self.other_strategy = cache(self._other_strategy)
        self.older_view = cache(self._older_view)
        self.shorter_list = cache(self._shorter_list)
        self._by_lists = cache(self._allocated_by_lists)

    @cached_property
    def duplicate_ids(self) -> set[str]:
        """Client ids shared by two processes, now or within the lifetime of a lost connection."""
        return duplicate_ids_at(self._case, self._at_ms, NEAR_MS)

    @cached_property
    def broker_returned(self) -> str:
        """The return of a broker, after which its member lists are wrong for a while
        (rocketmq.md §13 no. 5).
        """
        for epoch in reversed(self._case.epochs):
            age_ms = self._at_ms - epoch["from_ms"]
            if 0 <= age_ms <= PERSISTENT_MS and BROKER_UP in epoch["causes"]:
                return f"{BROKER_UP} {age_ms // 1000} s before"
        return ""

    def never_taken(self, difference: Difference) -> str:
        """Return the expected owner of an unowned queue if it was suspended before it took the
        queue.

        This is also possible with a retry topic, about which members learn up to a minute after
        joining. The result is empty if there is no such member.
        """
        if difference.live is not None:
            return ""
        for row in self._case.tables["memberships"]:
            client_id = row["client_id"]
            if client_id not in difference.predicted or not row["suspended"]:
                continue
            taken = self._prediction.taken(difference.queue, client_id, self._at_ms)
            if not holds(row, self._at_ms) or taken is None:
                continue
            since_ms = self._suspended_since(row)
            off_ms = self._case.run.coverage.clock_error_ms(taken["change_ms"], since_ms)
            if taken["change_ms"] <= since_ms <= taken["latest_ms"] + off_ms:
                return f"{client_id} has been suspended since {utc(since_ms)} and never took it"
        return ""

    def _suspended_since(self, row: MembershipsRow) -> int:
        """Return when the suspension that covers a membership began."""
        process = row["client_id"], row["channel_id"]
        since_ms = row["from_ms"]
        before = {
            member["to_ms"]: member["from_ms"]
            for member in self._case.tables["memberships"]
            if (member["client_id"], member["channel_id"]) == process and member["suspended"]
        }
        while since_ms in before:
            since_ms = before[since_ms]
        return since_ms

    def not_yet_taken(self, difference: Difference) -> bool:
        """Return True if a broker returned and a client lacks a queue that this return gave it.

        A client's answer does not show the topic's other holders, which `older_view` needs.
        """
        if difference.live is not None or difference.asked is None or not self.broker_returned:
            return False
        up_ms = max(
            epoch["from_ms"]
            for epoch in self._case.epochs
            if epoch["from_ms"] <= self._at_ms and BROKER_UP in epoch["causes"]
        )
        return difference.asked not in self._prediction.owners(difference.queue, up_ms - 1)

    def other_list(self, queue: MessageQueue, holder: str | None) -> str:
        """Return the broker whose member list explains this holder; None for a queue without an
        owner.
        """
        for note, owners in self._by_lists(queue.topic):
            if fits(holder, owners.get(queue, ())):
                return note
        return ""

    def _older_view(self, topic: str) -> EpochsRow | None:
        """Return the latest earlier epoch whose ownership of a topic equals the live ownership, if
        any.

        Unheld queues must have had no owner in the epoch or not have existed: each queue shows on
        its own whether a member still holds what it held before.
        """
        live = self._live.get(topic, {})
        now = self._case.epoch_at(self._at_ms)
        if now is None or "" not in live.values() or not any(live.values()):
            return None
        for epoch in reversed(self._case.epochs):
            if epoch["epoch"] >= now["epoch"]:
                continue
            owners = {
                queue: tuple(self._prediction.owners(queue, epoch["from_ms"])) for queue in live
            }
            if all(fits(live[queue] or None, owners[queue]) for queue in live):
                return epoch
        return None

    def _other_strategy(self, topic: str) -> str:
        """Return the strategy that, unlike the group's own, explains every live holder of a
        topic.
        """
        live = self._live.get(topic, {})
        if len(set(live.values()) - {""}) < FOREIGN_CLIENTS:
            return ""
        used = self._stated(self._case.tables["memberships"])
        held = {queue: holder for queue, holder in live.items() if holder}
        if any(self._allocates(name, topic, held) for name in used):
            return ""  # each holder uses the group's own strategy
        for name in (*CANDIDATES, *custom.names(custom.STRATEGIES)):
            if name in used:
                continue
            if self._allocates(name, topic, live):
                return name
        return ""

    def _shorter_list(self, topic: str) -> str:
        """Describe the queues or members to leave out so that the group's own strategy gives every
        held queue to its holder, and no other queue to any client; empty if no such list explains
        the holders.

        The candidates are a broker, a member, the queues that no dump lists, and added queues.
        """
        live = self._live.get(topic, {})
        held = {queue: holder for queue, holder in live.items() if holder}
        used = self._stated(self._case.tables["memberships"])
        if len(set(held.values())) < FOREIGN_CLIENTS or len(used) != 1:
            return ""
        strategy, members = min(used), self._allocations.members
        if self._allocates(strategy, topic, held):
            return ""
        queues = self._prediction.queues(topic, self._at_ms)
        highest = max(queue.queue_id for queue in held)
        shorter = {
            f"{name}'s queues": [queue for queue in queues if queue.broker_name != name]
            for name in sorted({queue.broker_name for queue in queues})
        } | {
            "the queues that no dump lists": [queue for queue in queues if queue in live],
            f"queues above {highest}": [queue for queue in queues if queue.queue_id <= highest],
        }
        lists = [(left_out, queues_left, members) for left_out, queues_left in shorter.items()]
        for left_out in sorted(set(members)):
            lists.append(
                (left_out, queues, tuple(member for member in members if member != left_out))
            )
        for left_out, queues_left, clients in lists:
            owners = self._allocations.divided(strategy, queues_left, clients)
            if owners and all(fits(live[q] or None, owners.get(q, ())) for q in live):
                return f"matches {strategy} of the topic without {left_out}"
        return ""

    def _allocates(self, strategy: str, topic: str, live: Mapping[MessageQueue, str]) -> bool:
        """Return True if the strategy assigns these queues to their holders and unheld queues to no
        client.
        """
        owners = self._allocations.owners(strategy, topic, self._allocations.members)
        return bool(owners) and all(fits(live[q] or None, owners.get(q, ())) for q in live)

    def _stated(self, members: Iterable[MembershipsRow]) -> set[str]:
        """Return the members' configured strategies, each in the form that the member's client
        applies.
        """
        return set(map(stated_strategies(self._case), members))

    @cached_property
    def _live(self) -> Mapping[str, Mapping[MessageQueue, str]]:
        """Return, by topic, the holder of each queue observed around that time; empty for no
        owner.
        """
        live: dict[str, dict[MessageQueue, str]] = {}
        begin = bisect_left(
            self._observed, self._at_ms - NEAR_MS, key=lambda observation: observation.at_ms
        )
        end = bisect_right(
            self._observed, self._at_ms + NEAR_MS, key=lambda observation: observation.at_ms
        )
        for observation in self._observed[begin:end]:
            if isinstance(observation, ClientObservation):
                for queue in observation.held:
                    live.setdefault(queue.topic, {})[queue] = observation.client_id
            else:
                live.setdefault(observation.queue.topic, {})[observation.queue] = (
                    observation.address
                )
        return live

    @cached_property
    def _lists(self) -> Mapping[str, tuple[str, ...]]:
        """Return the members that a broker or proxy lists now, if they differ from the ledger's."""
        rows = (*listings.broker_answers(self._case), *listings.proxy_answers(self._case))
        lists = {
            broker: [row["client_id"] for row in answer if row["client_id"]]
            for broker, answer in listings.answers_at(rows, self._at_ms, NEAR_MS).items()
        }
        members = sorted(self._allocations.members)
        return {
            broker: tuple(sorted(clients))
            for broker, clients in sorted(lists.items())
            if clients and sorted(clients) != members
        }

    def _allocated_by_lists(self, topic: str) -> list[tuple[str, Owners]]:
        """Return a topic's allocation under each of the other lists, with the list's
        description.
        """
        strategies = self._stated(self._case.members)
        if len(strategies) != 1:
            return []
        return [
            (
                f"{broker} lists other members: {listed(clients, 5)}",
                self._allocations.owners(min(strategies), topic, clients),
            )
            for broker, clients in self._lists.items()
        ]


def fits(holder: str | None, owners: Sequence[str]) -> bool:
    """Return True if the holder, given as client id or address, is an owner; None matches an
    unowned queue.
    """
    if holder is None:
        return not owners
    return any(holder in (owner, address_of(owner)) for owner in owners)


DUPLICATE_ID, SUSPENDED, LOCK, NOT_STARTED, FOREIGN, STALE, UNEXPLAINED = (
    "TWIN_CLIENT_ID",
    "SUSPENDED",
    "LOCK_HELD",
    "NOT_STARTED",
    "FOREIGN_STRATEGY",
    "STALE_VIEW",
    "UNEXPLAINED",
)
CLASSES = {
    DUPLICATE_ID: (
        "two processes share one client id and answer in turn, or one of them was lost a moment ago"
    ),
    SUSPENDED: (
        "the member that should hold the queue was suspended before it could have taken it, and "
        "runs no pass until it resumes"
    ),
    LOCK: "another client still has the queue's order lock, or the lock is not granted yet",
    NOT_STARTED: (
        "the client's passes did not take over the queue: they received no start offset, or "
        "found no route for the topic"
    ),
    FOREIGN: "the live owners match a different strategy from the group's",
    STALE: "the client still holds its queues from before a change, follows another broker's "
    "member list, or follows a list that lacks a broker or a member",
    UNEXPLAINED: "no known cause",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A queue's expected and observed holders at one time.

    Attributes:
        predicted: client ids in the ledger; empty if there is no owner.
        live: the holder, a client id or the part before its ``@``; None if there is no owner, or
            not `asked`.
        asked: the client that answered, or the first that should hold the queue.
        unheld: whether the dump shows it without a holder.
        why: one of `CLASSES`; note: a short remark on it.
        view: the causes of the earlier epoch whose ownership is live, if any.
        cause: the logged event that temporarily explains it, if any.
    """

    queue: MessageQueue
    predicted: frozenset[str]
    live: str | None
    asked: str | None
    at_ms: int
    source: str
    unheld: bool = False
    why: str = UNEXPLAINED
    note: str = ""
    view: tuple[str, ...] = ()
    cause: str = ""


class Refusals:
    """Reasons that kept members from taking over their queues.

    Args:
        group: its snapshot.
    """

    def __init__(self, group: GroupSnapshot) -> None:
        self._locks = grouped(group.facts["LOCK_REFUSED"], dumps.queue_of)
        self._starts = RefusedStarts(group)

    def reasons(self, difference: Difference) -> Iterator[tuple[str, str]]:
        """Yield the classes that the broker's and client's logs suggest for a queue, with
        descriptions.
        """
        from_ms, to_ms = difference.at_ms - NEAR_MS, difference.at_ms + NEAR_MS
        for row in self._locks.get(difference.queue, ()):
            if row["first_ms"] <= to_ms and row["last_ms"] >= from_ms:
                yield LOCK, f"{row['details'].get('owner', '')} has its order lock"
        refused = self._starts.newest(difference.queue, from_ms, to_ms, difference.predicted)
        if difference.live is None and refused is not None:
            yield LOCK if refused.reason == LOCK_FAILED else NOT_STARTED, refused.words


def classified(
    differences: Iterable[Difference],
    observed: list[Observation],
    group: GroupSnapshot,
    prediction: Prediction,
) -> Iterator[Difference]:
    """Yield the differences, each with its class and a short note.

    Args:
        differences: the differences among the group's observations, in chronological order.
        observed: all observations, in chronological order.
        group: its snapshot.
        prediction: its ledger.
    """
    refusals = Refusals(group)
    for explanations, same_time in _by_time(differences, observed, group, prediction):
        for difference in same_time:
            reasons = _reasons(difference, explanations, prediction, refusals)
            why, note = next(reasons, (UNEXPLAINED, difference.note))
            cause = explanations.broker_returned if why == STALE else ""
            epoch = explanations.older_view(difference.queue.topic) if why == STALE else None
            view = () if epoch is None else tuple(epoch["causes"])
            yield replace(difference, why=why, note=note, cause=cause, view=view)


def _by_time(
    differences: Iterable[Difference],
    observed: list[Observation],
    group: GroupSnapshot,
    prediction: Prediction,
) -> Iterator[tuple[Explanations, Iterator[Difference]]]:
    """Yield the differences at each time; allocations are computed once per epoch."""
    epoch, allocations = None, None
    for at_ms, same_time in groupby(differences, key=lambda difference: difference.at_ms):
        if allocations is None or group.epoch_at(at_ms) is not epoch:
            epoch, allocations = group.epoch_at(at_ms), Allocations(group, prediction, at_ms)
        yield Explanations(group, observed, allocations, at_ms), same_time


def _reasons(
    difference: Difference,
    explanations: Explanations,
    prediction: Prediction,
    refusals: Refusals,
) -> Iterator[tuple[str, str]]:
    if explanations.duplicate_ids:  # repeated ids change every share
        yield DUPLICATE_ID, f"{min(explanations.duplicate_ids)} is used by two processes"
    if note := explanations.never_taken(difference):
        yield SUSPENDED, note
    yield from refusals.reasons(difference)
    epoch = explanations.older_view(difference.queue.topic)
    if epoch is not None and epoch["to_ms"] is not None:
        span = f"{utc(epoch['from_ms'])} to {utc(epoch['to_ms'])}"
        yield STALE, f"as in the epoch of {listed(epoch['causes'])}, {span}"
    if difference.live is not None:
        before = prediction.earlier(difference.queue, difference.live, difference.at_ms)
        if before is not None and before["to_ms"] is not None:
            yield STALE, f"{difference.live} should have released it at {utc(before['to_ms'])}"
    if explanations.not_yet_taken(difference):
        yield STALE, "as before the broker came back"
    note = explanations.other_list(difference.queue, difference.live)
    if note:
        yield STALE, note
    note = explanations.shorter_list(difference.queue.topic)
    if note:
        yield STALE, note
    name = explanations.other_strategy(difference.queue.topic)
    if name:
        yield FOREIGN, f"the live owners of {difference.queue.topic} match {name}"
