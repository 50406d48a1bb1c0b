"""Stateless random numbers: each draw is a hash of seed, entity, timer and tick.

The hash is the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014), once per part.
"""

import hashlib
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAW_BITS = 32
"""A draw is a whole number below 2 ** 32."""

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GOLDEN_WORD, _HALF = np.uint64(_GOLDEN), np.uint64(DRAW_BITS)
_MIX = tuple(map(np.uint64, (30, 27, 31, _FIRST, _SECOND)))


class Timer(IntEnum):
    """What a draw is for."""

    START_UP = 1
    PHASE = 2
    PASS_PHASE = 3
    EVENT_CLOCK = 4
    REGISTRATION_LEAD = 5
    BROKER_STEP = 6
    LEAVE_BEGIN = 7
    NOTICE = 8
    NOTICE_LOST = 9
    CHANNEL_CLOSE = 10
    SCAN_PHASE = 11
    ROUTE_VISIBLE = 12
    ROUTE_ANSWER = 13
    PASS_LENGTH = 14
    DROP_AFTER = 15
    ADD_AFTER = 16
    BACKLOG = 17
    LISTENER = 18
    COMMIT_AGE = 19
    NAME_SERVER = 20
    TIMERS_AFTER = 21
    CLOSE_STEP = 22
    PASS_TAIL = 23
    OUT_OF_STEP = 24
    SILENCE = 25
    BROKER_POLL = 26
    START_TOGETHER = 27
    STOP_AFTER = 28
    UNLOCK = 29
    IN_WORK = 30
    ONE_MORE = 31
    SLOW_NOTICE = 32
    NOTICE_BATCH = 33
    CLOSE_TURN = 34
    NEXT_MESSAGE = 35
    QUEUE_NEXT = 36
    HEARTBEAT_ROUND = 37
    SAMPLE = 1 << 16
    """The broker that a pass asks for the members; add the topic's number."""


def entity_of(*names: str | None) -> int:
    """Return 64 bits that identify the owner of a draw and depend only on the given names."""
    text = "\0".join("\1" if name is None else name for name in names)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def uniform(seed: int, entity: int, timer: int, tick: int = 0) -> int:
    """Return a draw, uniform in [0, 2 ** 32).

    Args:
        seed: the seed of the future.
        entity: from `entity_of`.
        timer: a `Timer`, or ``Timer.SAMPLE`` plus a topic's number.
        tick: the number of that timer's draw.
    """
    word = _mixed((seed * _GOLDEN) & _WORD)
    for part in (entity, timer, tick):
        word = _mixed(((word ^ part) + _GOLDEN) & _WORD)
    return word >> DRAW_BITS


def uniforms(
    seeds: ArrayLike, entities: ArrayLike, timers: ArrayLike, ticks: ArrayLike = 0
) -> NDArray[np.uint64]:
    """Return `uniform` for arrays of arguments, which broadcast."""
    with np.errstate(over="ignore"):  # for scalars, which overflow with a warning
        return draws_of(words_of(seeds, entities), timers, ticks)


def words_of(seeds: ArrayLike, entities: ArrayLike) -> NDArray[np.uint64]:
    """Hash seeds and entities into the words from which `draws_of` continues."""
    return hashed_with(_mixed_all(_words(seeds) * _GOLDEN_WORD), entities)


def draws_of(
    words: NDArray[np.uint64], timers: ArrayLike, ticks: ArrayLike = 0
) -> NDArray[np.uint64]:
    """Return the draws of `uniforms` for the seeds and entities that ``words`` hash."""
    return ticked(hashed_with(words, timers), ticks)


def ticked(words: NDArray[np.uint64], ticks: ArrayLike) -> NDArray[np.uint64]:
    """Return `draws_of` for words that already hash their timers (`hashed_with`)."""
    return hashed_with(words, ticks) >> _HALF


def hashed_with(words: NDArray[np.uint64], part: ArrayLike) -> NDArray[np.uint64]:
    """Return the words with another part hashed into them."""
    return _mixed_all((words ^ _words(part)) + _GOLDEN_WORD)


def below(draw: int, limit: int) -> int:
    """Return a draw scaled to a whole number in [0, limit)."""
    return (draw * limit) >> DRAW_BITS


def all_below(draws: NDArray[np.uint64], limits: ArrayLike) -> NDArray[np.int64]:
    """Return `below` for every draw; limits may be up to 2 ** 31."""
    scaled = (draws * _words(limits)) >> _HALF
    return scaled.astype(np.int64)


def _mixed(word: int) -> int:
    word = ((word ^ (word >> 30)) * _FIRST) & _WORD
    word = ((word ^ (word >> 27)) * _SECOND) & _WORD
    return word ^ (word >> 31)


def _mixed_all(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    first, second, third, by, and_by = _MIX
    word = (word ^ (word >> first)) * by
    word = (word ^ (word >> second)) * and_by
    return word ^ (word >> third)


def _words(values: ArrayLike) -> NDArray[np.uint64]:
    """Return whole numbers as unsigned 64-bit words, including those from 2 ** 63 on."""
    return np.asarray(values).astype(np.uint64, copy=False)
