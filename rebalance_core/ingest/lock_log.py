"""Order-lock lines: lock.log, in 5.3 filter.log (SEM §10.3, §13.1). They tell who is orderly."""

from __future__ import annotations

from rebalance_core.ingest.clock import Clock
from rebalance_core.ingest.cut import cut
from rebalance_core.ingest.facts import Fact, Unread
from rebalance_core.ingest.log_line import server_line
from rebalance_core.ingest.templates import Fields, Template, headless, read_message

KINDS = {"queue_locked": "group: a member asked this broker for an order lock"}


def _group_5(message: str) -> Fields:
    pieces = cut(message[message.find("group=") :], "group=", ", ")
    return {"group": pieces[0]} if pieces and pieces[0] else None


def _group_4_9(message: str) -> Fields:
    pieces = cut(message[message.find("Group: ") :], "Group: ", " ")
    return {"group": pieces[0]} if pieces and pieces[0] else None


TEMPLATES: tuple[Template, ...] = (
    ("queue_locked", "RebalanceLockManager#tryLockBatch: ", _group_5),
    ("queue_locked", "tryLockBatch, message queue ", _group_4_9),
)
WORDS = tuple(words for _, words, _ in TEMPLATES)


def parse_lock_line(text: str, source: str, clock: Clock) -> tuple[Fact | Unread, ...]:
    """What one line of lock.log or filter.log states; unlocks add nothing to the locks."""
    line = server_line(text, clock)
    if line is None:
        return headless(WORDS, text, source)
    return read_message(TEMPLATES, line, text, source)
