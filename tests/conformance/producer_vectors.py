"""Compares the rules of producers with the vectors of the released client classes.

One fact: a list and a set (publish), a call (select), a step (latency), a send (retry), a row
(duration).
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.versions import parse_version
from rebalance_core.producers.profile import not_available_ms, profile_of
from tests.conformance.producer_routes import route_facts
from tests.conformance.producer_sends import send_facts
from tests.conformance.producer_steps import call_facts, step_facts
from tests.conformance.replay_world import Json

Facts = Callable[[Json], Iterator[str]]

DURATION_COLUMNS = ("version", "latency_ms", "not_available_ms")
PUBLISH_KEYS = {"id", "versions", "order_topic_conf", "queue_datas", "broker_datas", "publish"}
SELECT_KEYS = {"id", "version", "queues", "start_counter", "calls", "results"}
LATENCY_KEYS = {"id", "version", "enable", "route", "queues", "start_counter", "steps", "results"}
RETRY_KEYS = {"id", "version", "retry_times", "retry_times_async", "route", "sends", "results"}
_FACTS: tuple[tuple[set[str], Facts], ...] = (
    (PUBLISH_KEYS, route_facts),
    (SELECT_KEYS, call_facts),
    (LATENCY_KEYS, step_facts),
    (RETRY_KEYS, send_facts),
)
_UNREADABLE = (RebalanceError, LookupError, ValueError, TypeError, AttributeError, AssertionError)


def compares(value: Json) -> Facts | None:
    """What compares a file that begins with this object; null: none of these formats."""
    return next((facts for keys, facts in _FACTS if value.keys() >= keys), None)


def compare(path: Path) -> tuple[int, list[str]]:
    """(facts, descriptions of the mismatches) of a JSONL of any kind of producer vectors."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        facts_of = compares(json.loads(next(lines)))
    if facts_of is None:
        raise ValueError(f"{path}: no producer vectors")
    return _compare_lines(path, facts_of)


def compare_durations(path: Path) -> tuple[int, list[str]]:
    """The same of a duration TSV."""
    facts, mismatches = 0, []
    with path.open(encoding="utf-8", newline="\n") as lines:
        if tuple(next(lines, "").rstrip("\n").split("\t")) != DURATION_COLUMNS:
            raise ValueError(f"{path}: columns other than {DURATION_COLUMNS}")
        for number, line in enumerate(lines, start=2):
            facts += 1
            try:
                version, latency, expected = line.rstrip("\n").split("\t")
                actual = str(not_available_ms(int(latency), profile_of(parse_version(version))))
            except _UNREADABLE as error:
                expected, actual = "", f"cannot be computed: {error}"
            if actual != expected:
                mismatches.append(f"{path.name}:{number}: expected {expected}, got {actual}")
    return facts, mismatches


def _compare_lines(path: Path, facts_of: Facts) -> tuple[int, list[str]]:
    facts, mismatches = 0, []
    with path.open(encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                for description in facts_of(json.loads(line)):
                    facts += 1
                    if description:
                        mismatches.append(f"{path.name}:{number}: {description}")
            except _UNREADABLE as error:
                problem = f"cannot be replayed: {type(error).__name__}: {error}"
                mismatches.append(f"{path.name}:{number}: {problem}")
    return facts, mismatches
