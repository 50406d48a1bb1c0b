"""The member lists that brokers and proxies returned for a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypedDict, TypeGuard, TypeVar

from rebalance_core.audit.dumps import flag, fresh, seen_ms
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.ingest.fact import file_of

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import Dumped
    from rebalance_core.contracts.rows import (
        Fact,
        GroupAtBrokerFact,
        GroupAtProxyFact,
        ObservedMembersRow,
    )


EMPTY_LIST = ("0", "")
"""The number of members, in a fact's details."""


SAME_ROUND_MS = 120_000
"""A group's dumps belong to the same round if they are at most this far apart."""


class Asked(TypedDict):
    """The broker or proxy that was queried, and when."""

    asked_broker: str
    observed_ms: int


class ListedMember(TypedDict):
    """A member in the list of a broker that was queried by name."""

    asked_broker: str
    client_id: str
    client_addr: str | None
    observed_ms: int
    source: str


class Answer(TypedDict):
    """A member in the list of a broker or proxy; `client_id` is None for an empty list."""

    asked_broker: str
    client_id: str | None
    observed_ms: int
    source: str


AnyRow = TypeVar("AnyRow")
Answered = TypeVar("Answered", bound=Asked)


def _is_answer(row: ObservedMembersRow) -> TypeGuard[Answer]:
    return row["asked_broker"] is not None


def _is_of_broker(row: ObservedMembersRow) -> TypeGuard[ListedMember]:
    return row["asked_broker"] is not None


def rounds(
    rows: Iterable[AnyRow], time_of: Callable[[AnyRow], int], apart_ms: int = SAME_ROUND_MS
) -> Iterator[list[AnyRow]]:
    """Yield the rows of each round of dumps, which all begin within ``apart_ms`` of the first."""
    current: list[AnyRow] = []
    for row in sorted(rows, key=time_of):
        if current and time_of(row) - time_of(current[0]) > apart_ms:
            yield current
            current = []
        current.append(row)
    if current:
        yield current


def member_rounds(rows: Iterable[Answered]) -> Iterator[list[Answered]]:
    """Return the brokers' answers in rounds, in each of which a broker was queried at most once."""
    return each_asked_once(rows, lambda row: row["asked_broker"], seen_ms)


def each_asked_once(
    rows: Iterable[AnyRow], whom: Callable[[AnyRow], str | None], time_of: Callable[[AnyRow], int]
) -> Iterator[list[AnyRow]]:
    """Yield the rows in rounds, in each of which a server was queried at most once."""
    for together in rounds(rows, time_of):
        asked: dict[str | None, int] = {}
        current: list[AnyRow] = []
        for row in together:
            if asked.setdefault(whom(row), time_of(row)) != time_of(row):
                yield current
                asked, current = {whom(row): time_of(row)}, []
            current.append(row)
        yield current


def answers_at(rows: Iterable[Answer], at_ms: int, within_ms: int) -> dict[str, list[Answer]]:
    """Return each broker's answer for a time: the latest up to then, or else the first after it.

    Args:
        rows: the rows of `broker_answers` or `proxy_answers`.
        at_ms: the time.
        within_ms: an answer further away does not count.
    """
    answers: dict[str, dict[int, list[Answer]]] = {}
    for row in rows:
        if abs(row["observed_ms"] - at_ms) <= within_ms:
            of_broker = answers.setdefault(row["asked_broker"], {})
            of_broker.setdefault(row["observed_ms"], []).append(row)
    return {
        broker: of_broker[max((ms for ms in of_broker if ms <= at_ms), default=min(of_broker))]
        for broker, of_broker in answers.items()
    }


def broker_answers(group: GroupSnapshot) -> list[Answer]:
    """Return the members that brokers list; empty lists are rows whose client_id is None.

    Outputs that may be missing rows are left out because an unlisted client may be a member. An
    empty output proves that the group has no members only if no other file shows members at that
    time, because the command may have failed.
    """
    cut = partial_dumps(group)
    rows = [row for row in _listed_by_brokers(group) if not (cut and file_of(row["source"]) in cut)]
    unsaid = wordless(group, rows)
    return rows + [
        _answer(fact, fact["broker_name"], None)
        for fact in group.facts["GROUP_AT_BROKER"]
        if fact["broker_name"] and is_empty(fact) and file_of(fact["source"]) not in unsaid
    ]


def partial_dumps(group: GroupSnapshot) -> set[str]:
    """Return the files of the group's dumps that may be missing rows."""
    return {row["source"] for row in group.facts["DUMP"] if flag(row["details"].get("partial"))}


def _listed_by_brokers(group: GroupSnapshot) -> Iterator[Answer]:
    return filter(_is_answer, group.tables["observed_members"])


def whole_rounds(group: GroupSnapshot) -> Iterator[list[Answer]]:
    """Yield fresh answers from brokers, round by round, except those that may be missing rows.

    Such answers still end a round, because the broker's next answer belongs to another round.
    """
    cut = partial_dumps(group)
    if not cut:
        yield from member_rounds(fresh(group, broker_answers(group), seen_ms))
        return
    torn = [row for row in _listed_by_brokers(group) if file_of(row["source"]) in cut]
    answers = fresh(group, [*broker_answers(group), *torn], seen_ms)
    for together in member_rounds(answers):
        whole = [row for row in together if file_of(row["source"]) not in cut]
        if whole:
            yield whole


def wordless(group: GroupSnapshot, listed: Iterable[Dumped] | None = None) -> set[str]:
    """Return the files of empty answers that are not evidence because the group has members at that
    time.

    Args:
        group: its snapshot.
        listed: rows of ``observed_members`` that show members; None for all.
    """
    denied = {file_of(fact["source"]) for fact in group.facts["NOT_ONLINE"]}
    rows = group.tables["observed_members"] if listed is None else listed
    return {
        file_of(fact["source"])
        for fact in group.facts["GROUP_AT_BROKER"]
        if fact["broker_name"]
        and is_empty(fact)
        and file_of(fact["source"]) not in denied
        and _has_members(group, rows, fact["first_ms"])
    }


def _has_members(group: GroupSnapshot, listed: Iterable[Dumped], at_ms: int) -> bool:
    """Return True if a broker's list of that round, or the ledger, has members at a time.

    Brokers do not list members behind proxies.
    """
    if any(abs(row["observed_ms"] - at_ms) <= SAME_ROUND_MS for row in listed):
        return True
    behind = {
        row["client_id"]
        for row in proxy_answers(group)
        if abs(row["observed_ms"] - at_ms) <= SAME_ROUND_MS
    }
    return any(
        row["from_ms"] <= at_ms
        and (row["to_ms"] is None or at_ms < row["to_ms"])
        and not is_proxied(row)
        and row["client_id"] not in behind
        for row in group.tables["memberships"]
    )


def proxy_answers(group: GroupSnapshot) -> list[Answer]:
    """Return the members that proxies list, in the form of `broker_answers`; ``asked_broker`` is
    the proxy.
    """
    rows = [
        _answer(fact, fact["details"]["proxy"], fact["client_id"])
        for fact in group.facts["CONNECTION"]
        if "proxy" in fact["details"]
    ]
    return rows + [
        _answer(fact, fact["details"]["proxy"], None)
        for fact in group.facts["GROUP_AT_PROXY"]
        if is_empty(fact)
    ]


def is_empty(fact: GroupAtBrokerFact | GroupAtProxyFact) -> bool:
    """Return True if the answer to consumerConnection lists no member."""
    return fact["details"].get("members", "0") in EMPTY_LIST


def _answer(fact: Fact, asked: str, client_id: str | None) -> Answer:
    return {
        "asked_broker": asked,
        "client_id": client_id,
        "observed_ms": fact["first_ms"],
        "source": fact["source"],
    }


def listed_members(group: GroupSnapshot) -> list[ListedMember]:
    """Return the members that brokers list, without stale answers."""
    return fresh(group, filter(_is_of_broker, group.tables["observed_members"]), seen_ms)
