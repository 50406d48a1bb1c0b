"""The processes of each group over time: which are live after each event, and with which settings.

A process is a (client id, channel id) of a group; its state is the number of its settings
(`group_rows`), or `GONE`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import CONSUMER_TYPES, Events, type_code
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_true, pair
from rebalance_core.kernels.topic_sets import TopicSets
from rebalance_core.model import events

GONE = -1
JOIN, LEAVE, LOST, SUBSCRIBES, UNSUBSCRIBES, SUSPENDS, RESUMES = map(
    type_code, events.CONSUMER_EVENTS
)

_WORDS = ("strategy", "version", "message_model", "rebalance_mode", "rules", "language")


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes, with one value per process, sorted by group, client and channel."""

    group: Ints
    client: Ints
    channel: Ints


@dataclass(frozen=True, slots=True)
class MemberStates:
    """The distinct settings of members, with one value per number."""

    subscriptions: Ints
    strategy: Ints
    version: Ints
    message_model: Ints
    rebalance_mode: Ints
    rules: Ints
    """The dictionary code of the version whose rules they follow."""
    language: Ints
    """The dictionary code of the language; -1: unknown."""
    suspended: Bools


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """Consumer events that have an effect, sorted by process, then chronologically."""

    ordinal: Ints
    process: Ints
    before: Ints
    """The state, as an index into `MemberStates`, or `GONE`."""
    after: Ints
    start_mode: Ints
    """The dictionary code of the member's ConsumeFromWhere after the event; -1 after a
    departure.
    """


@dataclass(frozen=True, slots=True)
class Membership:
    """The membership that the events describe."""

    processes: Processes
    states: MemberStates
    changes: MemberChanges
    unknown: Ints
    """The ordinals of events about a process that is not in the group."""
    suspended: Ints
    """The groups in which a live member is ever suspended."""


def follow_members(events: Events, sets: TopicSets) -> Membership:
    """Apply every consumer event to its process.

    Args:
        events: all events, in order.
        sets: receives the sets that result from SUBSCRIBE and UNSUBSCRIBE.
    """
    ordinals = np.flatnonzero(events.type < CONSUMER_TYPES)
    order = np.lexsort(
        (ordinals, events.channel[ordinals], events.client[ordinals], events.group[ordinals])
    )
    ordinals = ordinals[order]
    group, client, channel = (a[ordinals] for a in (events.group, events.client, events.channel))
    first = first_of_run(group, client, channel)
    kind = events.type[ordinals]
    live_before = _live_before(kind, first)
    applies = (kind == JOIN) | live_before
    suspended = segments.distinct(group[(kind == SUSPENDS) & live_before])
    processes = Processes(group[first], client[first], channel[first])
    process = (np.cumsum(first) - 1)[applies]
    kept, kind = ordinals[applies], kind[applies]
    states, after = _states(events, sets, kept, process, kind)
    begins = first_of_run(process)
    before = np.where(begins, GONE, np.roll(after, 1))
    return Membership(
        processes,
        states,
        MemberChanges(kept, process, before, after, _start_modes(events, kept, begins, after)),
        unknown=np.sort(ordinals[~applies]),
        suspended=suspended,
    )


def _live_before(kind: Ints, first: Bools) -> Bools:
    """Return whether the process was live before each of its events, judging by its last join or
    departure.
    """
    decides = (kind == JOIN) | (kind == LEAVE) | (kind == LOST)
    decisive = last_true(decides, first)
    live_after = (decisive >= 0) & (kind[decisive] == JOIN)
    return np.where(first, False, np.roll(live_after, 1))


def _states(
    events: Events, sets: TopicSets, ordinals: Ints, process: Ints, kind: Ints
) -> tuple[MemberStates, Ints]:
    """Return the distinct settings, and the state of the process after each event."""
    begins = first_of_run(process)
    joined = last_true(kind == JOIN, begins)  # known events follow a join of their process
    join_ordinals = ordinals[joined]
    subscriptions = _subscriptions(events, sets, ordinals, process, kind, joined)
    words = [events.words[name][join_ordinals] for name in _WORDS]
    turned = np.isin(
        kind, (SUSPENDS, RESUMES, LEAVE, LOST)
    )  # a join in place leaves the process suspended
    turn = last_true(turned, begins)
    suspended = (turn >= 0) & (kind[turn] == SUSPENDS)
    key = subscriptions
    for word in (*words, suspended.astype(np.int64)):
        key = np.unique(pair(key, word + 1), return_inverse=True)[1]
    _, first, numbers = np.unique(key, return_index=True, return_inverse=True)
    after = np.where((kind == LEAVE) | (kind == LOST), GONE, numbers)
    settings = (subscriptions, *words, suspended)
    return MemberStates(*(column[first] for column in settings)), after


def _subscriptions(
    events: Events, sets: TopicSets, ordinals: Ints, process: Ints, kind: Ints, joined: Ints
) -> Ints:
    """Return the topic set of each process after each event.

    SUBSCRIBE and UNSUBSCRIBE apply in turn.
    """
    current = events.subscriptions[ordinals[joined]].copy()
    if not ((kind == SUBSCRIBES) | (kind == UNSUBSCRIBES)).any():
        return current
    edited = np.isin(process, process[(kind == SUBSCRIBES) | (kind == UNSUBSCRIBES)])
    for row in np.flatnonzero(edited).tolist():
        if kind[row] == JOIN:
            continue
        held = set(
            sets.topics(int(current[row - 1]))
        )  # the previous row belongs to the same process
        topic = int(events.topic[ordinals[row]])
        if kind[row] == SUBSCRIBES:
            held.add(topic)
        elif kind[row] == UNSUBSCRIBES:
            held.discard(topic)
        current[row] = sets.number(held)
    return current


def _start_modes(events: Events, ordinals: Ints, begins: Bools, after: Ints) -> Ints:
    mode = events.words["consume_from_where"][ordinals]
    joined = last_true(events.type[ordinals] == JOIN, begins)
    return np.where(after == GONE, -1, mode[joined])
