"""What an earlier night, but no file since, showed about a group's clients, from the opening
state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.parse.java_text import MS_MAX
from rebalance_core.ingest.parse.wire_versions import plain_version
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import EvidenceFilesRow, EvidenceRow
    from rebalance_core.ingest.opening_evidence import FileFields

STRATEGY, VERSION, SUBSCRIPTIONS = "strategy", "version", "subscriptions"
KINDS = ("allocated", "broker_allocated", "client", "client_subscription", "member")
"""Statements of `evidence` that are read."""
_LINE = re.compile(r"[:@]\d+$")
LISTED = 3
"""Maximum number of clients that texts name."""


@dataclass(frozen=True, slots=True)
class ShownEarlier:
    """A fact about a client that no file of the last night shows.

    Attributes:
        fact: `STRATEGY`, `VERSION` or `SUBSCRIPTIONS`.
        client_id: the client.
        value: the last value, as text.
        at_ms: the time of its last statement, epoch milliseconds.
        source: the file of that statement, as the earlier night had it.
    """

    fact: str
    client_id: str
    value: str
    at_ms: int
    source: str


def earlier_until(
    own: Collection[str], files: Iterable[EvidenceFilesRow], before: Iterable[EvidenceFilesRow]
) -> dict[str, int]:
    """Return the time up to which an earlier night had read each file, in epoch milliseconds, by
    the file's current name.

    Args:
        own: the names of the files in this night's collection.
        files: rows of `evidence_files` of this night; a log is known by its first bytes.
        before: rows of `evidence_files` of the night that it continues.
    """
    read = {(log["head"], log["head_bytes"]): log["last_ms"] for _, log in _logs(before)}
    until = {row["name"]: MS_MAX for row in files if row["name"] not in own}
    for name, log in _logs(files):
        last_ms = read.get((log["head"], log["head_bytes"]))
        if name in own and last_ms is not None:
            until[name] = last_ms
    return until


def _logs(files: Iterable[EvidenceFilesRow]) -> Iterator[tuple[str, FileFields]]:
    for row in files:
        fields: FileFields = json.loads(row["fields"])
        if fields.get("head_bytes"):
            yield row["name"], fields


def shown_earlier(
    rows: Iterable[EvidenceRow], clients: Collection[str], until: Mapping[str, int]
) -> list[ShownEarlier]:
    """Return the facts about these clients whose last statement an earlier night read.

    Args:
        rows: rows of `evidence` about a group, in any order; other kinds than `KINDS` and undated
            rows are ignored.
        clients: client ids.
        until: the result of `earlier_until`.
    """
    last: dict[tuple[str, str], ShownEarlier] = {}
    topics: dict[tuple[str, int], set[str]] = {}
    for row in rows:
        at_ms, file = row["at_ms"], _LINE.sub("", row["source"])
        for client_id, fact, value in _stated(row):
            if client_id not in clients or at_ms is None:
                continue
            if fact == SUBSCRIPTIONS:
                listed = topics.setdefault((client_id, at_ms), set())
                listed.add(value)
                value = ", ".join(sorted(listed))
            known = last.get((client_id, fact))
            if known is None or known.at_ms <= at_ms:
                last[client_id, fact] = ShownEarlier(fact, client_id, value, at_ms, file)
    return [one for _, one in sorted(last.items()) if one.at_ms <= until.get(one.source, 0)]


def earlier_texts(found: Iterable[ShownEarlier], night_ms: int) -> list[str]:
    """Return a sentence for each client and file among the first clients, then the number of
    others.
    """
    by_file: dict[str, dict[str, list[ShownEarlier]]] = {}
    for one in found:
        by_file.setdefault(one.client_id, {}).setdefault(one.source, []).append(one)
    texts = [
        f"{', '.join(f'{one.fact} {one.value}' for one in facts)} of {client_id}: shown by the "
        f"night of {utc(max(one.at_ms for one in facts))} ({source}), and by no file since this "
        f"one began ({utc(night_ms)})"
        for client_id, files in list(by_file.items())[:LISTED]
        for source, facts in files.items()
    ]
    if len(by_file) > LISTED:
        texts.append(f"earlier nights alone show so of {len(by_file) - LISTED:,} more clients")
    return texts


def _stated(row: EvidenceRow) -> Iterator[tuple[str, str, str]]:
    """Yield (client id, fact, value) of a statement."""
    kind = row["kind"]
    if kind not in KINDS:
        return
    fields: dict[str, object] = json.loads(row["fields"])
    texts = {name: value for name, value in fields.items() if isinstance(value, str) and value}
    client_id = texts.get("client_file") or texts.get("client_id")
    if client_id is None:
        return
    if "strategy" in texts:
        yield client_id, STRATEGY, texts["strategy"]
    version = texts.get("version")
    if version is not None and not row["place"].startswith(PROXIES):
        yield client_id, VERSION, plain_version(version) or version
    topic = texts.get("topic") if kind == "client_subscription" else None
    if topic is not None and not is_retry_topic(topic):
        yield client_id, SUBSCRIPTIONS, topic
