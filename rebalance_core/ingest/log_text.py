"""Lines of a compressed log, within limits: a gzip bomb ends as a message, not as a dead job."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from rebalance_core.ingest.unread import Unreadable

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


def gzip_lines(packed: bytes) -> Iterator[bytes]:
    """The lines of a gzip file of any number of members, without their line ends.

    Raises:
        Unreadable: broken or cut off (after the lines that could be read), a bomb, or a line above
            the limit.
    """
    rest, failure = b"", None
    blocks = _blocks(packed)
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


def _blocks(packed: bytes) -> Iterator[bytes]:
    at = unpacked = 0
    pending = b""
    member = zlib.decompressobj(wbits=_GZIP)
    while True:
        if not pending:
            pending = packed[at : at + _READ]
            at += len(pending)
        try:
            block = member.decompress(pending, _CHUNK)
        except zlib.error as error:
            raise Unreadable("BROKEN_GZIP", f"is broken: {error}") from None
        pending = member.unconsumed_tail
        unpacked += len(block)
        if unpacked > UNPACKED_LIMIT or (
            unpacked > _RATIO_FROM and unpacked > BOMB_RATIO * len(packed)
        ):
            raise Unreadable(
                "GZIP_BOMB", f"unpacks to more than {unpacked} bytes from {len(packed)}; left there"
            )
        yield block
        if member.eof:
            pending = (member.unused_data + packed[at : at + _READ]).lstrip(b"\x00")  # padding
            at += _READ
            if not pending:
                return
            member = zlib.decompressobj(wbits=_GZIP)
        elif not pending and at >= len(packed) and len(block) < _CHUNK:
            raise Unreadable("BROKEN_GZIP", "is cut off: its last member does not end")
