"""One finding, what a rule is, and how findings name durations, lists and queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from rebalance_core.audit.case import GroupCase
from rebalance_core.contracts.ledger import BROKER, QUEUE
from rebalance_core.model.times import HOUR_MS, MINUTE_MS, SECOND_MS
from rebalance_core.strategies.pop import WHOLE_BROKER

# One finding, and what a rule is.

__all__ = ["BROKER", "QUEUE", "Finding", "Rule"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found on one group, topic, queue or client; a row of ``findings``.

    Attributes:
        summary: one sentence with the names and numbers that matter.
        evidence: what it was seen by; values are shown as text.
        severity: None: the rule's default.
        first_ms: since when, epoch ms; last_ms: until when, None where it still holds.
    """

    summary: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    severity: str | None = None
    topic: str | None = None
    broker_name: str | None = None
    queue_id: int | None = None
    client_id: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One pathology: a stable id, a default severity, its meaning, what to do, and how to find it.

    Attributes:
        rule_id: never changes its meaning: accepted findings name it.
        severity: of its findings, where they name none.
        meaning: one or two sentences for docs/audit-rules.md.
        seen_by: the tables and kinds of facts it reads.
        remedy: what the operator does.
        find: the findings of one group; None: the comparison or the cluster's rules make it.
        by_owners: it asks who should own what: silent on groups whose strategy is not known.
        about: `BROKER` or `QUEUE` where each finding is about one, which then is part of its
            fingerprint; empty: one that names a broker or queue names the only one of several.
        files: kinds of files (as `_run.json` calls them; of mqadmin's output the command) that it
            reads beside broker.log: without one that was there before, nothing it found is gone.
    """

    rule_id: str
    severity: str
    meaning: str
    seen_by: str
    remedy: str
    find: Callable[[GroupCase], Iterable[Finding]] | None = None
    by_owners: bool = False
    about: str = ""
    files: tuple[str, ...] = ()


# How findings name durations, lists and queues.

LISTED = 20
"""As many items of a list are shown; the rest is counted."""


def listed(items: Iterable[Any], limit: int = LISTED, count: int | None = None) -> str:
    """The first items; ``count``: how many there are, where the items are only the first.

    >>> listed("abcd", 2), listed("ab", count=30)
    ('a, b and 2 more', 'a, b and 28 more')
    """
    texts = [str(item) for item in items]
    shown = texts[:limit]
    more = (len(texts) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def lasting(span_ms: int) -> str:
    """A duration in the unit that reads best.

    >>> lasting(87_400), lasting(600_000), lasting(7_200_000)
    ('87 s', '10 min', '2.0 h')
    """
    if span_ms < 3 * MINUTE_MS:
        return f"{span_ms // SECOND_MS} s"
    if span_ms < 2 * HOUR_MS:
        return f"{span_ms // MINUTE_MS} min"
    return f"{span_ms / HOUR_MS:.1f} h"


def plural(count: int, noun: str) -> str:
    """The count with its noun.

    >>> plural(1, "queue"), plural(3, "queue"), plural(2, "process")
    ('1 queue', '3 queues', '2 processes')
    """
    return f"{count} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def queue_names(queues: Iterable[tuple[str, int]]) -> str:
    """Queues of one topic as (broker name, queue id), runs of ids drawn together.

    >>> queue_names([("b", 1), ("a", 0), ("a", 2), ("a", 1)]), queue_names([("a", -1)])
    ('a:0-2, b:1', 'a:any')
    """
    texts = []
    for broker, of_broker in groupby(sorted(set(queues)), key=lambda queue: queue[0]):
        ids = [queue_id for _, queue_id in of_broker]
        runs = ["any"] if WHOLE_BROKER in ids else []
        ids = [queue_id for queue_id in ids if queue_id != WHOLE_BROKER]
        for _, run in groupby(enumerate(ids), key=lambda pair: pair[1] - pair[0]):
            members = [queue_id for _, queue_id in run]
            last = f"-{members[-1]}" if len(members) > 1 else ""
            runs.append(f"{members[0]}{last}")
        texts.append(f"{broker}:{','.join(runs)}")
    return listed(texts)
