"""A recording as two nights: what was there at the end of the first, and all of it."""

import gzip
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from rebalance_core.ingest.collection import PROXY_LOG, CollectedFile, open_collection
from rebalance_core.ingest.collection_settings import SETTINGS_NAME

WHOLE, ROTATED, PACKED, GONE = "whole", "rotated", "packed", "gone"
"""What became of a log by the second night."""


@dataclass(frozen=True)
class TwoNights:
    """Three collections.

    Attributes:
        first: logs cut off anywhere, and some of the dated stores and dumps.
        second: the logs as they are later, and the other stores and dumps.
        both: all that either has.
        gone: a log of the first night was removed by rotation, as soon as it was collected.
    """

    first: Path
    second: Path
    both: Path
    gone: bool


def two_nights(collection: Path, folder: Path, seed: int, *, rotates: bool = True) -> TwoNights:
    """Divide a collection at random; ``rotates``: logs may be rotated in between."""
    chance = random.Random(seed)
    first, second, both = (folder / name for name in ("first", "second", "both"))
    for target in (first, second, both):
        target.mkdir(parents=True)
        shutil.copy(collection / SETTINGS_NAME, target)
    gone = False
    files = open_collection(collection).files
    last_ms = max(file.written_ms or 0 for file in files)
    for file in files:
        content = (collection / file.name).read_bytes()
        if not file.is_log or file.gzipped:
            early = 0 < (file.written_ms or 0) < last_ms and chance.random() < 0.5
            for target in (first if early else second, both):
                put(target / file.name, content)
            continue
        cut = chance.randint(0, len(content))
        if chance.random() < 0.8:  # else in the middle of a line
            cut = _line_end(content, cut)
        if cut:
            put(first / file.name, content[:cut])
        rotation = _rotation(file, chance) if rotates else WHOLE
        at = cut if rotation == GONE else _line_end(content, chance.randint(cut, len(content)))
        if rotation == WHOLE or not cut <= at < len(content) or at != _line_end(content, at):
            rotation, at = WHOLE, 0
        rotated = f"{file.name.removesuffix('.log')}.1.log"
        older = content[:at]
        if rotation == PACKED:
            rotated, older = f"{rotated}.gz", gzip.compress(older)
        for target in (second, both):
            put(target / file.name, content[at:])
            if older and not (rotation == GONE and target == second):
                put(target / rotated, older)
        gone |= rotation == GONE and at > 0
    return TwoNights(first, second, both, gone)


def _rotation(file: CollectedFile, chance: random.Random) -> str:
    rotates = file.name.endswith(".log") and "." not in Path(file.name).stem
    if not rotates or file.wrapping or file.kind == PROXY_LOG:
        return WHOLE
    return chance.choice((WHOLE, ROTATED, PACKED, GONE))


def _line_end(content: bytes, at: int) -> int:
    """Return the end of the last line that ends there or before."""
    return content.rfind(b"\n", 0, at) + 1


def put(file: Path, content: bytes) -> None:
    """Write a file and its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
