"""Lines of a compressed log, within limits: a gzip bomb ends as a message, not as a dead job."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from rebalance_core.ingest.refusal import Unreadable

UNPACKED_LIMIT = 8 * 1024**3
"""Bytes of one unpacked log; RocketMQ rotates at 1 GB at most."""
BOMB_RATIO = 200
"""Real logs shrink 5 to 50 times; deflate can do 1032."""
LINE_LIMIT = 64 * 1024**2
"""Bytes of one line; an allocation of 100,000 queues prints some 8 MB."""
_CHUNK = 1024**2
_READ = 64 * 1024
_GZIP = 31  # zlib: a gzip header, 32 KB window
_RATIO_FROM = 64 * 1024**2  # short files may shrink a lot: repeated lines


def gzip_lines(packed: BinaryIO, size: int) -> Iterator[bytes]:
    """The lines of a gzip file of any number of members, without their line ends.

    Args:
        packed: the file; it is read piece by piece.
        size: its bytes.

    Raises:
        Unreadable: broken or cut off (after the lines that could be read), a bomb, or a line above
            the limit.
    """
    rest, failure = b"", None
    blocks = _blocks(packed, size)
    while True:
        try:
            block = next(blocks, None)
        except Unreadable as error:
            block, failure = None, error
        if block is None:
            break
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > LINE_LIMIT:
            raise Unreadable("TOO_LARGE", f"has a line above {LINE_LIMIT} bytes")
        yield from lines
    if rest:
        yield rest
    if failure is not None:
        raise failure


def _blocks(packed: BinaryIO, size: int) -> Iterator[bytes]:
    unpacked, pending, ended = 0, b"", False
    member = zlib.decompressobj(wbits=_GZIP)
    while True:
        if not pending:
            pending = packed.read(_READ)
            ended = not pending
        try:
            block = member.decompress(pending, _CHUNK)
        except zlib.error as error:
            raise Unreadable("BROKEN_GZIP", f"is broken: {error}") from None
        pending = member.unconsumed_tail
        unpacked += len(block)
        if unpacked > UNPACKED_LIMIT or (unpacked > _RATIO_FROM and unpacked > BOMB_RATIO * size):
            raise Unreadable(
                "GZIP_BOMB", f"unpacks to more than {unpacked} bytes from {size}; left there"
            )
        yield block
        if member.eof:
            pending = (member.unused_data + packed.read(_READ)).lstrip(b"\x00")  # padding
            if not pending:
                return
            member = zlib.decompressobj(wbits=_GZIP)
        elif ended and len(block) < _CHUNK:
            raise Unreadable("BROKEN_GZIP", "is cut off: its last member does not end")
