"""xxHash64 of many values at once, each with a seed of its own, as Spark's ``xxhash64``.

Source: org.apache.spark.sql.catalyst.expressions.XXH64; arithmetic is modulo 2**64. Functions take
arrays of uint64 seeds and return new ones.
"""

from __future__ import annotations

import numpy as np

SEED = 42
"""Spark's first seed."""

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_STRIPE = 32
_ALL_BITS = 2**64 - 1
_FEW = 4
"""Texts that are hashed one by one: with so few, numpy's calls cost more than plain integers."""

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]


def hash_ints(values: np.ndarray, seeds: Hashes) -> Hashes:
    """Of 32-bit integers; booleans are 0 and 1."""
    hashes = seeds + np.uint64(int(_P5) + 4)
    _mix_int(hashes, values.astype(np.int32, copy=False).view(np.uint32).astype(np.uint64))
    return _finished(hashes)


def hash_zeros(seeds: Hashes) -> Hashes:
    """`hash_ints` of zeros, or of false."""
    hashes = seeds + np.uint64(int(_P5) + 4)
    _stir(hashes)
    return _finished(hashes)


def hash_longs(values: np.ndarray, seeds: Hashes) -> Hashes:
    """Of 64-bit integers, or the bits of doubles."""
    hashes = seeds + np.uint64(int(_P5) + 8)
    _mix_long(hashes, values.view(np.uint64).copy())
    return _finished(hashes)


def hash_doubles(values: np.ndarray, seeds: Hashes) -> Hashes:
    """Of doubles; every NaN is the same, and so are both zeros."""
    plain = np.where(np.isnan(values), np.nan, values) + 0.0
    return hash_longs(plain.view(np.int64), seeds)


def hash_texts(
    octets: np.ndarray, starts: np.ndarray, lengths: np.ndarray, seeds: Hashes
) -> Hashes:
    """Of texts as UTF-8.

    Args:
        octets: uint8, the bytes of all texts.
        starts: int64, where each text begins.
        lengths: int64, its bytes.
        seeds: one a text.
    """
    padded = np.concatenate([octets, np.zeros(8, np.uint8)])
    long_words = np.ndarray(len(octets) + 1, "<u8", padded, strides=(1,))
    hashes = seeds + _P5
    at = starts.copy()
    long = np.flatnonzero(lengths >= _STRIPE)
    if len(long):
        ends = starts[long] + lengths[long] // _STRIPE * _STRIPE
        hashes[long] = _stripes(long_words, starts[long], ends, seeds[long])
        at[long] = ends
    hashes += lengths.view(np.uint64)
    ends = starts + lengths
    _each_word(hashes, long_words, at, ends)
    four = np.flatnonzero(at + 4 <= ends)
    if len(four):
        part = hashes[four]
        _mix_int(part, long_words[at[four]] & np.uint64(0xFFFFFFFF))
        hashes[four] = part
        at[four] += 4
    _each_byte(hashes, padded, at, ends)
    return _finished(hashes)


def _stripes(words: np.ndarray, at: np.ndarray, ends: np.ndarray, seeds: Hashes) -> Hashes:
    """The state after all stripes of 32 bytes of texts that have one."""
    lanes = [
        seeds + np.uint64((int(_P1) + int(_P2)) % 2**64),
        seeds + _P2,
        seeds.copy(),
        seeds - _P1,
    ]
    at = at.copy()
    rows = np.arange(len(at))
    while len(rows) > _FEW:
        for number, lane in enumerate(lanes):
            part = lane[rows] + words[at[rows] + 8 * number] * _P2
            lane[rows] = _turned(part, 31) * _P1
        at[rows] += _STRIPE
        rows = rows[at[rows] < ends[rows]]
    for row in rows:
        for number, lane in enumerate(lanes):
            of_lane = words[at[row] + 8 * number : ends[row] : _STRIPE]
            lane[row] = _one_lane(int(lane[row]), of_lane.tolist())
    hashes: Hashes = sum(
        (_turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)),
        np.zeros(len(seeds), np.uint64),
    )
    for lane in lanes:
        hashes ^= _turned(lane * _P2, 31) * _P1
        hashes = hashes * _P1 + _P4
    return hashes


def _one_lane(lane: int, words: list[int]) -> int:
    first, second = int(_P1), int(_P2)
    for word in words:
        mixed = (lane + word * second) & _ALL_BITS
        lane = (mixed << 31 | mixed >> 33) * first & _ALL_BITS
    return lane


def _each_word(hashes: Hashes, words: np.ndarray, at: np.ndarray, ends: np.ndarray) -> None:
    """Mix in what is left of each text in whole words of 8 bytes, moving ``at`` behind them."""
    rows = np.flatnonzero(at + 8 <= ends)
    while len(rows):
        every = len(rows) == len(hashes)
        part = hashes if every else hashes[rows]
        _mix_long(part, words[at if every else at[rows]])
        if every:
            at += 8
        else:
            hashes[rows] = part
            at[rows] += 8
        rows = rows[at[rows] + 8 <= ends[rows]]


def _each_byte(hashes: Hashes, octets: np.ndarray, at: np.ndarray, ends: np.ndarray) -> None:
    rows = np.flatnonzero(at < ends)
    while len(rows):
        part = hashes[rows] ^ (octets[at[rows]].astype(np.uint64) * _P5)
        hashes[rows] = _turned(part, 11) * _P1
        at[rows] += 1
        rows = rows[at[rows] < ends[rows]]


def _mix_int(hashes: Hashes, values: Hashes) -> None:
    """In place; the values are overwritten."""
    values *= _P1
    hashes ^= values
    _stir(hashes)


def _stir(hashes: Hashes) -> None:
    """In place, what follows the values of 32 bits."""
    hashes[:] = _turned(hashes, 23)
    hashes *= _P2
    hashes += _P3


def _mix_long(hashes: Hashes, values: Hashes) -> None:
    """In place; the values are overwritten."""
    values *= _P2
    turned = _turned(values, 31)
    turned *= _P1
    hashes ^= turned
    hashes[:] = _turned(hashes, 27)
    hashes *= _P1
    hashes += _P4


def _turned(values: Hashes, by: int) -> Hashes:
    turned = values << np.uint64(by)
    turned |= values >> np.uint64(64 - by)
    return turned


def _finished(hashes: Hashes) -> Hashes:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
    return hashes
