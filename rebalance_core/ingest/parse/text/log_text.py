"""Lines of a log, within limits: a gzip bomb or a hole in a file is a message, no dead job."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from rebalance_core.ingest.refusal import Unreadable

UNPACKED_LIMIT = 8 * 1024**3
"""Bytes of one unpacked log; RocketMQ rotates at 1 GB at most."""
BOMB_RATIO = 200
"""Real logs shrink 5 to 50 times; deflate can do 1032."""
LINE_LIMIT = 64 * 1024**2
"""Bytes of one line; an allocation of 100,000 queues prints some 8 MB."""
_CHUNK = 1024**2
_READ = 16 * 1024
"""Bytes read at once: a file may have a member in every 20 of them, and each copies the rest."""
_GZIP = 31  # zlib: a gzip header, 32 KB window
_RATIO_FROM = 64 * 1024**2  # short files may shrink a lot: repeated lines


def lines_of(file: BinaryIO, size: int, *, gzipped: bool) -> Iterator[bytes]:
    """The lines of a log without their line ends; memory for one line.

    Args:
        file: it is read piece by piece.
        size: its bytes.
        gzipped: it is packed, in any number of members.

    Raises:
        Unreadable: after all lines that could be read: it is broken, cut off or a bomb, or a line
            is above the limit; an empty one stands in its place.
    """
    blocks = _unpacked(file, size) if gzipped else iter(partial(file.read, _CHUNK), b"")
    begun, length = list[bytes](), 0
    failure = None
    try:
        for block in blocks:
            first, *others = block.split(b"\n")
            length += len(first)
            if length <= LINE_LIMIT:
                begun.append(first)
            else:
                begun, failure = [], long_line()
            if others:
                yield b"".join(begun)
                yield from others[:-1]
                begun, length = others[-1:], len(others[-1])
    except Unreadable as error:
        failure = error
    if last := b"".join(begun):
        yield last
    if failure is not None:
        raise failure


def long_line() -> Unreadable:
    """The refusal of a line above `LINE_LIMIT`; the file is read on behind it."""
    return Unreadable("TOO_LARGE", f"has a line above {LINE_LIMIT} bytes, which is not read")


def _unpacked(packed: BinaryIO, size: int) -> Iterator[bytes]:
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
        if block:
            yield block
        if member.eof:
            pending = member.unused_data.lstrip(b"\x00")  # padding
            while not pending and (more := packed.read(_READ)):
                pending = more.lstrip(b"\x00")
            if not pending:
                return
            member = zlib.decompressobj(wbits=_GZIP)
        elif ended and len(block) < _CHUNK:
            raise Unreadable("BROKEN_GZIP", "is cut off: its last member does not end")
