"""One finding, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.audit.case import GroupCase
from rebalance_core.contracts.ledger import BROKER, QUEUE

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
