"""What dumps and facts show: which are recent, which belong together, what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.model.timers import REBALANCE_WAIT_MS

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
    for together in rounds(rows, "observed_ms"):
        asked: dict[str, int] = {}
        current: list[Row] = []
        for row in together:
            if asked.setdefault(row["asked_broker"], row["observed_ms"]) != row["observed_ms"]:
                yield current
                asked, current = {row["asked_broker"]: row["observed_ms"]}, []
            current.append(row)
        yield current


def is_broker(case: GroupCase, answer: Row) -> bool:
    """True if a broker with one of the group's topics was asked; else it was a proxy.

    A broker that runs a proxy in the same process (LOCAL mode) is a broker.
    """
    return any(row["broker_name"] == answer["asked_broker"] for row in case.rows("topics"))


def member_answers(case: GroupCase) -> list[Row]:
    """Members as brokers and proxies list them, and empty lists: rows whose client_id is None."""
    rows = [row for row in case.rows("observed_members") if row["asked_broker"] is not None]
    for fact in case.facts("GROUP_AT_BROKER"):
        if fact["broker_name"] and fact["details"].get("members", "0") in EMPTY_LIST:
            rows.append({"asked_broker": fact["broker_name"], "client_id": None,
                         "observed_ms": fact["first_ms"], "source": fact["source"]})  # fmt: skip
    return rows


def listed_by_proxies(case: GroupCase) -> bool:
    """True if a proxy lists members of the group; the brokers then know none of these."""
    answers = fresh(case, member_answers(case), "observed_ms")
    return any(row["client_id"] is not None and not is_broker(case, row) for row in answers)


def listed_members(case: GroupCase) -> list[Row]:
    """Members as brokers list them, stale answers left out."""
    rows = [row for row in case.rows("observed_members") if row["asked_broker"] is not None]
    return fresh(case, rows, "observed_ms")


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
