"""Groups that share client instances: a notice to one runs passes of all (rocketmq.md §3.1).

An MQClientInstance has one RebalanceService and one scheduler for all groups of its client id. What
another group's brokers and ``start()`` tell it does not depend on any pass, as long as its brokers
stay: so it is known before the group is played.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.draws import (
    DRAW_BITS,
    NOTICE,
    Operation,
    Timer,
    operation_id,
    uniforms,
)
from rebalance_core.clockwork.loop.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.clockwork.script import Life
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, Ticks, Times
from rebalance_core.model.group_settings import BROADCASTING, PUSH
from rebalance_core.model.versions import parse_version
from rebalance_core.replay.shared_topics import ProcessKey


@dataclass(frozen=True, eq=False)
class _Sent:
    """What one broker sends the members of another group after one operation.

    Attributes:
        broker: number of the broker in that group's script.
        at_us: (S,) when; `NEVER`: not at all.
        newer_us: (S,) when it sends the next, which may keep this one back.
        tick: of its draws.
    """

    broker: int
    at_us: Times
    newer_us: Times
    tick: int


class MateWakes:
    """When other groups of their client instances wake the processes of a group.

    Args:
        ticks: of the group.
    """

    def __init__(self, ticks: Ticks) -> None:
        self._ticks, self._lives = ticks, dict[ProcessKey, list[int]]()
        for life in ticks.script.lives:
            if not life.ghost:
                self._lives.setdefault(_instance(life), []).append(life.index)
        observed = np.array([life.observed for life in ticks.script.lives], bool)
        comes = np.minimum(ticks.created, ticks.registered.min(axis=1, initial=NEVER))
        comes[observed] = BEFORE_ALL
        self._comes = comes
        self._sent = [notices_of(mate) for mate in ticks.mates]

    def between(self, since_us: int, until_us: int) -> Iterator[tuple[int, Times]]:
        """(life, (S,) when it is woken) of what happens from a time on, and before another."""
        for mate, sent in zip(self._ticks.mates, self._sent, strict=True):
            script = mate.script
            its = (life for life in script.lives if not life.ghost)
            targets = [life for life in its if _instance(life) in self._lives]
            told = [life for life in targets if life.is_notified]
            push = script.settings.consumer_type == PUSH
            for life in targets if push else ():
                starts = mate.joined[life.index]
                if not life.observed and _any_between(starts, since_us, until_us):
                    yield from self._woken(life, starts)
            for notice in sent:
                if _any_between(notice.at_us, since_us, until_us):
                    for life in told:
                        yield from self._woken(life, _delivered(mate, life, notice))

    def _woken(self, life: Life, at_us: Times) -> Iterator[tuple[int, Times]]:
        for own in self._lives[_instance(life)]:
            there = (self._comes[own] <= at_us) & (at_us < NEVER)
            if there.any():
                yield own, np.where(there, at_us, NEVER)


def _instance(life: Life) -> ProcessKey:
    return life.client_id, life.channel_id


def notices_of(ticks: Ticks) -> list[_Sent]:
    """What brokers send a group's members as others join and go, by broker."""
    script, found = ticks.script, list[_Sent]()
    version = parse_version(script.settings.broker_version)
    for broker, name in enumerate(script.brokers):
        rows: list[tuple[Times, int]] = []
        for life in script.lives:
            silent = life.states[0][1].message_model == BROADCASTING
            if life.ghost or (silent and version >= BROADCASTING_IS_SILENT):
                continue
            for operation, at_us in _operations(ticks, life, broker):
                for number, (up, down) in enumerate(ticks.broker_lives_us):
                    there = (up <= at_us) & (at_us < down) & (at_us < NEVER)
                    there &= ticks.tells(broker, slice(None), at_us)
                    if script.broker_lives[number].broker == broker and there.any():
                        tick = operation_id(life.entity, name, number, operation)
                        rows.append((np.where(there, at_us, NEVER), tick))
        if rows:
            times = np.stack([at_us for at_us, _ in rows])
            newer = _following(times) if version >= NEWEST_NOTICE_WINS else None
            for number, (at_us, tick) in enumerate(rows):
                newer_us = np.full_like(at_us, NEVER) if newer is None else newer[number]
                found.append(_Sent(broker, at_us, newer_us, tick))
    return found


def _operations(ticks: Ticks, life: Life, broker: int) -> Iterator[tuple[Operation, Times]]:
    since, until = ticks.registered[life.index, broker], ticks.unregistered[life.index, broker]
    notified = ticks.script.settings.notified  # the group's switch; a closed channel ignores it
    if notified and not life.observed and broker in life.first_brokers:
        yield Operation.JOINS, since
    if life.ending is not None and life.ending.told:
        yield Operation.GOES, np.where(since < until, until, NEVER)


def _delivered(ticks: Ticks, life: Life, notice: _Sent) -> Times:
    """(S,) when a notice wakes a member; `NEVER` where it does not get it."""
    at_us, seeds = notice.at_us, ticks.seeds
    listed = ticks.registered[life.index, notice.broker] <= at_us
    listed &= at_us < ticks.unregistered[life.index, notice.broker]
    lost = np.uint64(round(ticks.options.lost_notices * (1 << DRAW_BITS)))
    if lost:
        listed &= uniforms(seeds, life.entity, Timer.NOTICE_LOST, notice.tick) >= lost
    woken = at_us + NOTICE.many(uniforms(seeds, life.entity, Timer.NOTICE, notice.tick))
    late = ticks.notice_late[life.index]
    woken = np.where(woken < ticks.ended[life.index], woken, np.minimum(woken, NEVER) + late)
    return np.where(listed & (woken < notice.newer_us), woken, NEVER)


def _following(times: Times) -> Times:
    """(K, S) for each time the next later one of its column."""
    order = np.argsort(times, axis=0, kind="stable")
    rising = np.take_along_axis(times, order, axis=0)
    following = np.full_like(rising, NEVER)
    for row in range(len(rising) - 2, -1, -1):
        later = rising[row + 1] > rising[row]
        following[row] = np.where(later, rising[row + 1], following[row + 1])
    found = np.empty_like(following)
    np.put_along_axis(found, order, following, axis=0)
    return found


def _any_between(at_us: Times, since_us: int, until_us: int) -> bool:
    inside: NDArray[np.bool_] = (since_us <= at_us) & (at_us < until_us)
    return bool(inside.any())
