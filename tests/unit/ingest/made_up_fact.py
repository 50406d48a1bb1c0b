"""A log fact that RocketMQ does not have: one template and one declaration."""

from pathlib import Path

import pytest

from rebalance_core.contracts.fact_declaration import (
    BROKER,
    EPISODES,
    GROUP,
    ONE_A_SECOND,
    FactKind,
    LogFact,
    fact_kinds,
    fields,
    log_facts,
)
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.ingest.collection import BROKER_LOG
from rebalance_core.ingest.log_block import WORDS
from rebalance_core.ingest.parse import broker_log
from rebalance_core.ingest.parse.java_text import between
from rebalance_core.ingest.parse.log_lines import LineFields, Templates, named

_WORDS = "pull held back, group: "


def _held_back(message: str) -> LineFields:
    return named(
        ("group", "topic", "reason"), between(message, _WORDS, ", topic: ", ", reason: ", "")
    )


DECLARATION = LogFact(
    "pull_held_back",
    BROKER,
    GROUP,
    "the broker held back a pull",
    fields("group, topic, reason"),
    thinning=ONE_A_SECOND,
    facts_only=True,
    rows=(
        FactKind(
            "PULL_HELD_BACK", "the broker held back a pull", EPISODES, details=fields("reason")
        ),
    ),
)
TEMPLATE = (DECLARATION.kind, _WORDS, _held_back)

LINES = [
    f"2026-11-21 11:{minute}:{second:02} WARN t - {_WORDS}g, topic: T, reason: {reason}\n"
    for minute, second, reason in (
        (39, 1, "disk"),
        (39, 1, "disk"),
        (39, 1, "memory"),
        (39, 2, "disk"),
        (49, 3, "disk"),
    )
]
"""Two in one second, one of another reason, two of one episode, and one of a later one."""
BEGIN_MS, LATER_MS = 1795232341000, 1795232943000
ROWS = {
    ("disk", BEGIN_MS, BEGIN_MS + 1_000, 2),
    ("memory", BEGIN_MS, BEGIN_MS, 1),
    ("disk", LATER_MS, LATER_MS, 1),
}
"""Reason, first_ms, last_ms and times of the rows that come of it."""


def declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the template and the declaration to the others."""
    facts = log_facts((*LOG_FACTS.values(), DECLARATION))
    for kind, fact in facts.items():
        monkeypatch.setitem(LOG_FACTS, kind, fact)
    for name, kind_of_fact in fact_kinds((), facts.values()).items():
        monkeypatch.setitem(FACT_KINDS, name, kind_of_fact)
    templates = Templates((*broker_log.TEMPLATES, TEMPLATE))
    monkeypatch.setattr(broker_log, "TEMPLATES", templates)
    monkeypatch.setitem(WORDS, BROKER_LOG, (*broker_log.WORDS, TEMPLATE[1]))


def write_collection(folder: Path) -> Path:
    """A collection whose one log states the fact."""
    log = folder / "brokers" / "b" / "broker.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(LINES))
    (folder / "collection.toml").write_text('cluster = "c"\n')
    return folder
