"""Lines of a log, within limits: a gzip bomb or a hole in a file results in a message, not a dead
job.
"""

import zlib
from collections.abc import Iterator
from functools import partial
from typing import Protocol

from rebalance_core.contracts.unpacking import bomb
from rebalance_core.ingest.fact import Unreadable
from rebalance_core.ingest.parse.encodings import UTF_8, as_utf_8

LINE_LIMIT = 64 * 1024**2
"""Maximum number of bytes in a line; an allocation of 100,000 queues prints some 8 MB."""


_CHUNK = 1024**2


_READ = 16 * 1024
"""Number of bytes read at once; a file may have a gzip member every 20 bytes, each of which copies
the rest.
"""


_GZIP = 31  # zlib: a gzip header, 32 KB window


class Readable(Protocol):
    """Bytes that are read sequentially."""

    def read(self, size: int, /) -> bytes:
        """Return up to this number of bytes; none at the end."""


def blocks_of(
    file: Readable, size: int, *, gzipped: bool, encoding: str = UTF_8
) -> Iterator[bytes]:
    """Yield the lines of a log in UTF-8, many at once, each with its line end except the file's
    last; memory for one line and a block.

    Args:
        file: the file, which is read piece by piece.
        size: its size in bytes.
        gzipped: whether it is compressed, in any number of members.
        encoding: the encoding of its characters.

    Raises:
        Unreadable: raised after all lines that could be read: the file is broken, cut off or a
            bomb, or a line is above the limit; an empty line takes its place.
    """
    pieces = _unpacked(file, size) if gzipped else iter(partial(file.read, _CHUNK), b"")
    if encoding != UTF_8:
        pieces = as_utf_8(pieces, encoding)
    ended, ended_bytes = list[bytes](), 0
    begun, length = list[bytes](), 0  # parts of the unfinished line
    failure = None
    try:
        for piece in pieces:
            end = piece.find(b"\n")
            length += len(piece) if end < 0 else end
            if length > LINE_LIMIT:
                begun, failure = [], long_line()
            if end < 0:
                begun += [piece] if length <= LINE_LIMIT else []
                continue
            behind = piece.rfind(b"\n") + 1
            ended += [*begun, piece[end if length > LINE_LIMIT else 0 : behind]]
            ended_bytes += behind
            begun, length = [piece[behind:]], len(piece) - behind
            if ended_bytes >= _CHUNK:
                yield b"".join(ended)
                ended, ended_bytes = [], 0
    except Unreadable as error:
        failure = error
    if last := b"".join([*ended, *begun]):
        yield last
    if failure is not None:
        raise failure


def long_line() -> Unreadable:
    """Return the refusal of a line above `LINE_LIMIT`; reading continues after it."""
    return Unreadable("TOO_LARGE", f"has a line above {LINE_LIMIT} bytes, which is not read")


def _unpacked(packed: Readable, size: int) -> Iterator[bytes]:
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
        if why := bomb(unpacked, size):
            raise Unreadable("GZIP_BOMB", f"{why}; left there: unpack it first if it is a log")
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
