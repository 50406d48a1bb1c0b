"""What dumps and facts show: which are recent, which belong together, what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.model.times import REBALANCE_WAIT_MS
from rebalance_core.protocol.members import GO, library_of

EMPTY_LIST = ("0", "")
"""A number of members, in a fact's details."""
SAME_ROUND_MS = 120_000
"""Dumps of one group that lie no further apart were taken in one go."""


def fresh(case: GroupCase, rows: Iterable[Row], column: str = "last_ms") -> list[Row]:
    """The rows that are not stale."""
    since = case.run.end_ms - case.run.stale_ms
    return [row for row in rows if row[column] >= since]


def rounds(rows: Iterable[Row], column: str, apart_ms: int = SAME_ROUND_MS) -> Iterator[list[Row]]:
    """The rows by rounds of dumps: none begins later than this after the first of its round."""
    current: list[Row] = []
    for row in sorted(rows, key=lambda one: one[column]):
        if current and row[column] - current[0][column] > apart_ms:
            yield current
            current = []
        current.append(row)
    if current:
        yield current


def member_rounds(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Answers of brokers by rounds in which each broker was asked once."""
    return each_asked_once(rows, "asked_broker", "observed_ms")


def each_asked_once(rows: Iterable[Row], whom: str, column: str) -> Iterator[list[Row]]:
    """The rows by rounds in which each of the column ``whom`` was asked once."""
    for together in rounds(rows, column):
        asked: dict[str, int] = {}
        current: list[Row] = []
        for row in together:
            if asked.setdefault(row[whom], row[column]) != row[column]:
                yield current
                asked, current = {row[whom]: row[column]}, []
            current.append(row)
        yield current


def answers_at(rows: Iterable[Row], at_ms: int, within_ms: int) -> dict[str, list[Row]]:
    """By broker its one answer for a time: the newest until then, else the first after it.

    Args:
        rows: of `broker_answers` or `proxy_answers`.
        at_ms: the time.
        within_ms: an answer further from it says nothing of it.
    """
    answers: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        if abs(row["observed_ms"] - at_ms) <= within_ms:
            of_broker = answers.setdefault(row["asked_broker"], {})
            of_broker.setdefault(row["observed_ms"], []).append(row)
    return {
        broker: of_broker[max((ms for ms in of_broker if ms <= at_ms), default=min(of_broker))]
        for broker, of_broker in answers.items()
    }


def broker_answers(case: GroupCase) -> list[Row]:
    """Members as brokers list them, and empty lists: rows whose client_id is None."""
    rows = [row for row in case.rows("observed_members") if row["asked_broker"] is not None]
    return rows + [_nobody(fact, fact["broker_name"]) for fact in case.facts("GROUP_AT_BROKER")
                   if fact["broker_name"] and _is_empty(fact)]  # fmt: skip


def proxy_answers(case: GroupCase) -> list[Row]:
    """Members as proxies list them, as `broker_answers`; ``asked_broker`` is the proxy."""
    rows = [
        {**_nobody(fact, fact["details"]["proxy"]), "client_id": fact["client_id"]}
        for fact in case.facts("CONNECTION")
        if "proxy" in fact["details"]
    ]
    return rows + [
        _nobody(fact, fact["details"]["proxy"])
        for fact in case.facts("GROUP_AT_PROXY")
        if _is_empty(fact)
    ]


def _is_empty(fact: Row) -> bool:
    return fact["details"].get("members", "0") in EMPTY_LIST


def _nobody(fact: Row, asked: str) -> Row:
    return {"asked_broker": asked, "client_id": None, "observed_ms": fact["first_ms"],
            "source": fact["source"]}  # fmt: skip


def listed_members(case: GroupCase) -> list[Row]:
    """Members as brokers list them, stale answers left out."""
    rows = [row for row in case.rows("observed_members") if row["asked_broker"] is not None]
    return fresh(case, rows, "observed_ms")


def libraries(case: GroupCase) -> dict[str, str]:
    """The library of each client whose language a broker's list tells, by client id."""
    rows = sorted(case.rows("observed_members"), key=lambda row: row["observed_ms"])
    named = [
        (row["client_id"], library_of(row.get("language"), row.get("version"))) for row in rows
    ]
    return {client_id: library for client_id, library in named if library is not None}


def letting_go(case: GroupCase) -> set[str]:
    """Go clients: they give up all queues of a topic that has no readable one; Java's keep them."""
    return {client_id for client_id, library in libraries(case).items() if library == GO}


def said_steadily(fact: Row) -> bool:
    """True if the fact was stated pass after pass from its first to its last time."""
    return bool(fact["times"] * 2 * REBALANCE_WAIT_MS >= fact["last_ms"] - fact["first_ms"])


def number(row: Row, name: str, default: int = -1) -> int:
    """A numeric field of a fact's details."""
    try:
        return int(row["details"].get(name, default))
    except (TypeError, ValueError):
        return default


def flag(row: Row, name: str) -> bool:
    """A boolean field of a fact's details."""
    return str(row["details"].get(name, "")).lower() == "true"
