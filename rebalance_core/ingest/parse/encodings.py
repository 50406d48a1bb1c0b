"""The encoding of a file: UTF-8, or UTF-16 as written by PowerShell and Windows editors."""

import codecs
from collections.abc import Iterable, Iterator

UTF_8 = "utf-8"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_LOOKED_AT = 1024
"""Number of bytes checked for zeros, which show text without a byte order mark to be UTF-16."""
_ZEROS = 0.4
"""Minimum share of zeros among every other byte of such text; RocketMQ prints Latin characters."""


def encoding_of(head: bytes) -> str:
    """Return the encoding of a text, judging by its first bytes.

    >>> encoding_of(b"#ClientId"), encoding_of("#ClientId".encode("utf-16-be"))
    ('utf-8', 'utf-16-be')
    """
    if head[:2] in _MARKS:
        return _MARKS[head[:2]]
    part = head[:_LOOKED_AT]
    first, second = part[::2], part[1::2]
    if not second:
        return UTF_8
    low, high = first.count(0) / len(first), second.count(0) / len(second)
    if high > _ZEROS and low < high / 10:
        return "utf-16-le"
    if low > _ZEROS and high < low / 10:
        return "utf-16-be"
    return UTF_8


def decoded(data: bytes) -> str:
    """Return the text of a whole file or of its beginning, with broken characters as U+FFFD."""
    return data.decode(encoding_of(data), "replace").removeprefix("\ufeff")


def as_utf_8(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the blocks of a file, converted to UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    first = True
    for block in blocks:
        text = decoder.decode(block)
        yield (text.removeprefix("\ufeff") if first else text).encode("utf-8", "replace")
        first = first and not text
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
