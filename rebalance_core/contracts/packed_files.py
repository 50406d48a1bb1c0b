"""Compressed files, and messages about files that cannot be read to their end."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import unquote

CODECS = {
    ".gz": "gzip",
    ".bz2": "bzip2",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".snappy": "snappy",
    ".deflate": "deflate",
}
"""Hadoop's codecs, by the suffix that selects them."""


MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh"}
"""First bytes: RFC 1952; bzip2. Hadoop reads no rows from an empty .gz or an invalid .bz2."""


# Spark's error condition FAILED_READ_FILE, with any sub-condition; 3.5 has no name for it.
_FILE = re.compile(r"Encountered error while reading file (?P<uri>\S+?)\.(?:\s|$)")


_CAUSE = re.compile(
    r"^\s*Caused by: (?:[\w$]+\.)*(?P<kind>[\w$]+)(?:: (?P<said>.*))?$", re.MULTILINE
)


_END = re.compile(r"EOFException|unexpected end of", re.IGNORECASE)


def wrong_head(name: str, head: bytes) -> str | None:
    """Return the fault that a packed file's first bytes show, or None if they show none.

    >>> wrong_head("a.csv.gz", b""), wrong_head("a.csv.gz", b"cluster,"), wrong_head("a.csv", b"")
    ('truncated gzip', 'not a gzip', None)
    """
    suffix = _suffix(name)
    magic = MAGIC.get(suffix, b"")
    if head[: len(magic)] == magic:
        return None
    return f"{'truncated' if magic.startswith(head) else 'not a'} {CODECS[suffix]}"


def unreadable_file(text: str) -> str | None:
    """Return a line about the file that a Spark exception concerns, or None if it concerns none."""
    match = _FILE.search(text)
    if match is None:
        return None
    file = unquote(match["uri"]).removeprefix("file://")
    causes = list(_CAUSE.finditer(text))
    kind, said = (causes[-1]["kind"], causes[-1]["said"] or "") if causes else ("", "")
    cause = said or kind or "Spark gives no reason"
    codec = CODECS.get(_suffix(file))
    if _END.search(f"{kind} {said}"):
        return f"{file} cannot be read: truncated {codec or 'file'}"
    if codec is None:
        return f"{file} cannot be read: {cause}"
    if said == f"not a {codec} file":
        return f"{file} cannot be read: not a {codec}"
    return f"{file} cannot be read: damaged {codec} ({cause})"


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix
