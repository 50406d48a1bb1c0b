"""Reports groups that lack evidence which other groups have, as findings about their cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.audit.finding_rows import finding_row
from rebalance_core.audit.group_snapshot import MAX_LISTED, Finding, listed, plural
from rebalance_core.contracts.ledger import LACKS
from rebalance_core.model import verdicts

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun


UNASKED = "UNASKED"


_WORDS = {
    verdicts.NO_DUMP: "without a dump of its queue owners, though other groups have one",
    verdicts.STALE_DUMP: "without a recent dump of its queue owners",
    verdicts.LOG_BEGINS: "whose live owners differ and whose broker.log begins too late",
    verdicts.LOG_ENDED: "whose live owners differ in a dump made after the end of a broker.log",
    verdicts.NOT_COVERED: "with some members or owners not examined",
    UNASKED: "not queried at a broker of its topics (consumerConnection -b)",
}
"""The evidence that a group lacks, by reason, for reasons without a finding about a broker."""


MISSING_REASONS = (
    verdicts.NO_DUMP,
    verdicts.STALE_DUMP,
    verdicts.LOG_BEGINS,
    verdicts.LOG_ENDED,
    verdicts.NOT_COVERED,
)


class Missing(TypedDict):
    """The part of a ``group_verdicts`` row that shows that something is missing."""

    verdict: verdicts.Verdict
    reason: str
    unasked: Sequence[str]


class MissingGroups(Missing):
    """Groups that lack the same evidence: their number, the first names, and the number of their
    dumps.
    """

    groups: int
    names: Sequence[str]
    dumps: int | None


def missing_reason(verdict: Missing) -> str | None:
    """Return the reason under which `missing_of_groups` counts a row of ``group_verdicts``, or
    None.
    """
    if verdict["verdict"] == verdicts.UNKNOWN and verdict["reason"] in MISSING_REASONS:
        return str(verdict["reason"])
    return UNASKED if verdict["unasked"] else None


def missing_of_groups(
    unknown: Mapping[str, tuple[int, list[str]]], compared: int, *, reported: bool = True
) -> list[FindingsBegun]:
    """Return findings for groups that lack evidence which other groups have.

    Args:
        unknown: the number of groups and the first names, by reason (`missing_reason`).
        compared: the number of compared groups; if it is 0, the whole kind of dump is missing,
            which is reported by a finding of its own.
        reported: whether a finding already reports missing files of the cluster.
    """
    compared = compared or not reported
    return [
        finding_row(COLLECTION_INCOMPLETE, incomplete_groups(reason, *unknown[reason]))
        for reason in (
            verdicts.NO_DUMP,
            verdicts.STALE_DUMP,
            verdicts.LOG_BEGINS,
            verdicts.LOG_ENDED,
            verdicts.NOT_COVERED,
            UNASKED,
        )
        if reason in unknown and (compared or reason not in (verdicts.NO_DUMP, verdicts.STALE_DUMP))
    ]


def by_reason(unknown: Iterable[MissingGroups]) -> dict[str, tuple[int, list[str]]]:
    """Return, by `missing_reason`, the number of groups that lack something and the first names,
    with the brokers that were not asked about each.
    """
    by_reason: dict[str, tuple[int, list[str]]] = {}
    for row in unknown:
        reason = missing_reason(row)
        if reason is not None:
            groups, names = by_reason.get(reason, (0, []))
            lacking = f" ({', '.join(row['unasked'])})" if reason == UNASKED else ""
            by_reason[reason] = (
                groups + row["groups"],
                sorted([*names, *(f"{name}{lacking}" for name in row["names"])])[:MAX_LISTED],
            )
    return by_reason


def incomplete_groups(reason: str, count: int, names: list[str]) -> Finding:
    """Return the finding for the groups that lack the same evidence.

    Args:
        reason: a key of `_WORDS`.
        count: the number of groups.
        names: the first names.
    """
    names_shown = listed(names, count=count)
    groups = f"{plural(count, 'online group')}{', each' if count > 1 else ''}"
    return Finding(
        f"{groups} {_WORDS[reason]}: {names_shown}.",
        {"groups": names_shown, LACKS: reason},
    )
