"""Compares our strategies with a file of allocation vectors: one row, one fact."""

import json
from collections.abc import Iterator
from pathlib import Path

from rebalance_core.model.errors import AllocationError, RebalanceError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.registry import make_strategy

COLUMNS = ("strategy", "params", "version", "currentCID", "cidAll", "mqAll", "result")


def compare(path: Path) -> tuple[int, list[str]]:
    """(facts, descriptions of the mismatches) of an allocation-vectors TSV.

    The result must be equal in content and order; exceptions in class and message. Rows that
    cannot be read are mismatches; a file with other columns raises ValueError.
    """
    facts, mismatches = 0, []
    for number, row in _rows(path):
        facts += 1
        expected = row[-1]
        try:
            actual = answer(dict(zip(COLUMNS, row, strict=True)))
        except (RebalanceError, ValueError, TypeError) as error:
            actual = f"cannot be computed: {type(error).__name__}: {error}"
        if actual != expected:
            mismatches.append(
                f"{path.name}:{number}: {row[0]} {row[1:2]} of {row[3:4]}: "
                f"expected {expected!r}, got {actual!r}"
            )
    return facts, mismatches


def answer(row: dict[str, str]) -> str:
    """The result column as our code has it."""
    client_ids = row["cidAll"].split(",") if row["cidAll"] else []
    queues = [_queue(text) for text in row["mqAll"].split(",")] if row["mqAll"] else []
    try:
        strategy = make_strategy(row["strategy"], json.loads(row["params"]), row["version"])
        share = strategy.allocate(row["currentCID"], queues, client_ids)
    except AllocationError as error:
        message = "null" if error.java_message is None else error.java_message
        return f"!{error.java_class}: {message}"
    if strategy.returns_null:
        return "null"
    return ",".join(f"{q.topic}|{q.broker_name}|{q.queue_id}" for q in share)


def _queue(text: str) -> MessageQueue:
    topic, broker_name, queue_id = text.rsplit("|", 2)
    return MessageQueue(topic, broker_name, int(queue_id))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    # newline="\n": the default would also break lines at a lone carriage return.
    with path.open(encoding="utf-8", newline="\n") as lines:
        header = tuple(next(lines, "").rstrip("\n").split("\t"))
        if header != COLUMNS:
            raise ValueError(f"{path}: columns {header}, expected {COLUMNS}")
        for number, line in enumerate(lines, start=2):
            yield number, line.rstrip("\n").split("\t")
