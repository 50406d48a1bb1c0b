"""The pieces that one log was rotated into, in the order they were written."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rebalance_core.ingest.collection.collected_file import CollectedFile

_TIME = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[,.]\d{3})?", re.MULTILINE)
_INDEX = re.compile(r"[.-](\d{1,4})\.log(?:\.gz)?$|\.log\.(\d{1,4})(?:\.gz)?$")
_GZIP = 31  # zlib: a gzip header, 32 KB window
_UNPACKED = 64 * 1024


def first_time(file: CollectedFile, head: bytes) -> str:
    """The first time in a log, as it is written there; empty if its first bytes hold none.

    Args:
        file: the log.
        head: its first bytes, compressed if the file is.
    """
    if file.gzipped:
        try:
            head = zlib.decompressobj(wbits=_GZIP).decompress(head, _UNPACKED)
        except zlib.error:
            return ""
    found = _TIME.search(head)
    return found[0].decode() if found else ""


def with_turns(
    files: Iterable[CollectedFile], begins: Mapping[str, str]
) -> tuple[CollectedFile, ...]:
    """The files, each log with its turn among those of its kind and place, by their first times.

    Those that begin in one second are taken as RocketMQ numbers them: 1 is the last one rotated.

    Args:
        files: of a collection.
        begins: `first_time` of each log, by name.
    """
    files = tuple(files)
    turns: dict[str, int] = {}
    count: dict[tuple[str, str], int] = {}
    logs = [file for file in files if file.is_log]
    for file in sorted(logs, key=lambda f: (begins.get(f.name, ""), -_index(f.name), f.name)):
        of_place = (file.kind, file.place)
        turns[file.name] = count.get(of_place, 0)
        count[of_place] = turns[file.name] + 1
    return tuple(replace(file, turn=turns.get(file.name, 0)) for file in files)


def _index(name: str) -> int:
    """The number that a rotation gave the file; 0 of the one that is written to.

    >>> _index("broker.12.log.gz"), _index("rocketmq_client.log.3"), _index("broker.log")
    (12, 3, 0)
    """
    found = _INDEX.search(name)
    return int(found[1] or found[2]) if found else 0
