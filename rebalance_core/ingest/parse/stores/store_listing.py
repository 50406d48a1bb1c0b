"""A listing of a broker's store, and the files of a RocksDB in it: how it keeps its
configurations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from rebalance_core.ingest.fact import WRONG_FILE, Fact, Unread, Unreadable, unread
from rebalance_core.model.times import SECOND_MS

# How a broker keeps its topics, consumer groups and offsets (rocketmq.md §15).

JSON, ROCKSDB, SINGLE_ROCKSDB, ROCKSDB_V2 = "JSON", "ROCKSDB", "SINGLE_ROCKSDB", "ROCKSDB_V2"

STORE_FORMS = {
    JSON: "topics.json, subscriptionGroup.json and consumerOffset.json, always current",
    ROCKSDB: "three RocksDBs below config/ (storeType=defaultRocksDB)",
    SINGLE_ROCKSDB: "one RocksDB, config/metadata (useSingleRocksDBForAllConfigs=true)",
    ROCKSDB_V2: "config/rdb (configManagerVersion=v2), which no command exports",
}
"""What each form means."""

FORM_OF_FOLDER = {"topics": ROCKSDB, "metadata": SINGLE_ROCKSDB, "rdb": ROCKSDB_V2}
"""The form by the folder below ``config/`` whose file CURRENT is its sign."""


# A listing of a broker's store, and the files of a RocksDB in it: how it keeps its
# configurations.
#
# RocketMQ writes no such listing; ``find`` does, or collect.sh: a line for each file with its
# path, its size if known, and when it was written (epoch seconds) if known.

DIGITS = 20
"""A longer number is neither a size nor a time."""

KINDS = {
    "store_form": (
        "how the broker keeps its configurations: forms (JSON, or those of RocksDB whose sign is "
        "there), modified (pairs of a JSON store and when it was written, epoch ms: where the "
        "listing says so)"
    ),
}

_SIGN = re.compile(rf"(?:.*/)?config(?:-\d+)?/(?P<folder>{'|'.join(FORM_OF_FOLDER)})/CURRENT")
_STORE = re.compile(r"(?:.*/)?config/(?P<name>(?:topics|subscriptionGroup|consumerOffset)\.json)")


def parse_store_listing(text: str, source: str) -> list[Fact | Unread]:
    """The fact of `KINDS` from a listing.

    Paths may begin at the store or anywhere above it. Never raises; linear in the text.
    """
    paths = list(_paths(text))
    if not any("config/" in path for path, _ in paths):
        why = Unreadable(WRONG_FILE, "it lists no file below config/")
        return [unread(source, text, why)]
    signs = {match["folder"] for path, _ in paths if (match := _SIGN.fullmatch(path))}
    modified = {
        match["name"]: seconds * SECOND_MS
        for path, seconds in paths
        if (match := _STORE.fullmatch(path)) and seconds is not None
    }
    return [_form(signs, modified, source)]


def parse_rocksdb_sign(text: str, source: str) -> list[Fact | Unread]:
    """The fact of `KINDS` from a copied file CURRENT; its path tells the form, not its text."""
    return [_form({PurePosixPath(source).parts[-2]} & FORM_OF_FOLDER.keys(), {}, source)]


def _form(signs: set[str], modified: dict[str, int], source: str) -> Fact:
    forms = [form for folder, form in FORM_OF_FOLDER.items() if folder in signs]
    values = {"forms": forms or [JSON], "modified": sorted(map(list, modified.items()))}
    return Fact("store_form", None, values, source)


def _paths(text: str) -> Iterator[tuple[str, int | None]]:
    for line in text.splitlines():
        words = line.strip().rsplit(" ", 2)
        numbers = [word.isdecimal() and len(word) < DIGITS for word in words[1:]]
        if numbers == [True, True]:
            yield words[0], int(words[2])
        elif numbers[-1:] == [True]:
            yield " ".join(words[:-1]), None
        elif words[0]:
            yield " ".join(words), None
