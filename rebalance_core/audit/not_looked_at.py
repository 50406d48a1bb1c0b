"""States in one sentence what an audit did not examine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import listed, plural
from rebalance_core.ingest.fact import SET_APART, UNKNOWN_COMMAND
from rebalance_core.model.times import MINUTE_MS, utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import CoverageRow


LATE_MS = 5 * MINUTE_MS
"""Logs that begin this much later or end this much earlier than others are named."""


_CODE = re.compile(r"(?:^|; )[^;]*?: ([A-Z_]+)(?=: |;|$)")
"""The code after the name of each file in a note of ``coverage``."""
_LOGS = {"NAME_SERVER": "the logs of name servers", "CLIENT": "the logs of clients"}


def not_looked_at(rows: Iterable[CoverageRow]) -> str:
    """Return a sentence about what a cluster's files do not cover; empty if unknown.

    >>> row = {"host": "a", "role": "BROKER", "kind": "broker_log", "complete": True, "note": None}
    >>> row |= {"from_ms": 0, "to_ms": 60_000}
    >>> others = [row | {"role": role, "kind": "log"} for role in ("CLIENT", "NAME_SERVER")]
    >>> not_looked_at([row, *others])
    'Not examined: anything before 1970-01-01 00:00:00Z or after 1970-01-01 00:01:00Z.'
    """
    rows = list(rows)
    if not rows:
        return ""
    logs = [
        (row["host"], row["from_ms"], row["to_ms"])
        for row in rows
        if row["kind"] == "broker_log" and row["from_ms"] is not None and row["to_ms"] is not None
    ]
    parts = []
    if logs:
        begins: dict[str, int] = {}
        ends: dict[str, int] = {}
        for host, from_ms, to_ms in logs:
            begins[host] = min(from_ms, begins.get(host, from_ms))
            ends[host] = max(to_ms, ends.get(host, to_ms))
        dumped = max((r["from_ms"] or 0 for r in rows if r["role"] == "ADMIN"), default=0)
        last = max(dumped, *ends.values())
        parts.append(
            f"anything before {utc(min(begins.values()))} or after {utc(last)}"
            + _edges(begins, ends, last)
        )
        parts += [
            f"{host} from {utc(from_ms)} to {utc(to_ms)}" for host, from_ms, to_ms in _holes(logs)
        ]
    else:
        parts.append("the logs of brokers")
    parts += [what for role, what in _LOGS.items() if not any(r["role"] == role for r in rows)]
    parts += _files(row["note"] or "" for row in rows if not row["complete"])
    return f"Not examined: {'; '.join(parts)}."


def _files(notes: Iterable[str]) -> Iterator[str]:
    """Yield the numbers of files that were set aside, are answers to other commands, or are
    truncated.
    """
    codes = Counter(code for note in notes for code in _CODE.findall(note) or ("",))
    apart, of_others = sum(codes[code] for code in SET_APART), codes[UNKNOWN_COMMAND]
    if apart:
        yield f"{plural(apart, 'file')} set apart"
    if of_others:
        yield f"{plural(of_others, 'answer')} of commands that are not read"
    if broken := codes.total() - apart - of_others:
        yield f"the missing parts of {plural(broken, 'file')} that cannot be read to the end"


def _edges(begins: Mapping[str, int], ends: Mapping[str, int], last_ms: int) -> str:
    """Return the brokers whose logs begin later or end earlier than the others'."""
    first_ms = min(begins.values())
    late = [f"{h} before {utc(ms)}" for h, ms in sorted(begins.items()) if ms > first_ms + LATE_MS]
    early = [f"{h} after {utc(ms)}" for h, ms in sorted(ends.items()) if ms < last_ms - LATE_MS]
    return f" (of the broker.log of {listed([*late, *early], 5)})" if late or early else ""


def _holes(logs: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    ordered = sorted(logs, key=lambda log: log[:2])
    for (host, _, to_ms), (other, from_ms, _) in pairwise(ordered):
        if host == other and to_ms < from_ms:
            yield host, to_ms, from_ms
