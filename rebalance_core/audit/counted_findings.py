"""Counts findings, and determines which are kept and shown, and in what order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.model.verdicts import (
    INFO,
    SEVERITIES,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow


from collections.abc import Callable
from dataclasses import astuple
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from rebalance_core.audit.accepted_findings import ToAccept
from rebalance_core.contracts.ledger import by_cause
from rebalance_core.model.verdicts import (
    ERROR,
    WORST_FIRST,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow

OfCluster = TypeVar("OfCluster", "FindingsRow", "GroupVerdictsRow")


_RANK: dict[object, int] = {severity: rank for rank, severity in enumerate(WORST_FIRST, 1)}


_PLACE = ("consumer_group", "topic", "broker_name", "queue_id", "client_id")


KEPT_FIRST = (*_PLACE, "first_ms", "summary", "last_ms", "remedy")
"""The order in which a rule's findings of the same severity are kept if there are too many."""


SHOWN_FIRST = ("rule_id", *_PLACE, "summary", "cluster", "first_ms", "last_ms", "remedy")
"""The order in which findings of one severity are shown."""


def count_findings(findings: Iterable[FindingsRow]) -> list[Count]:
    """Return the number of findings by rule, severity and acceptance, in this order."""
    counted = Counter(
        (row["rule_id"], row["severity"], row["accepted"] is not None) for row in findings
    )
    return sorted((Count(*kind, times) for kind, times in counted.items()), key=astuple)


def count_causes(findings: Iterable[FindingsRow]) -> dict[str, int]:
    """Return the number of causes of the open findings, by the highest severity among each cause's
    consequences.
    """
    rows = [row for row in findings if row["accepted"] is None]
    lists = by_cause((row["fingerprint"], row["caused_by"]) for row in rows)
    gravest: Counter[str] = Counter(
        max((rows[number]["severity"] for number in numbers), key=SEVERITIES.index)
        for numbers in lists
    )
    return {severity: gravest[severity] for severity in WORST_FIRST if gravest[severity]}


def is_open(finding: FindingsRow) -> bool:
    """Return True for a finding above INFO that is not accepted."""
    return finding["accepted"] is None and finding["severity"] != INFO


def to_accept(findings: Iterable[FindingsRow]) -> list[ToAccept]:
    """Return the distinct entries that accept the open findings (`accepted_findings.ToAccept`)."""
    named: dict[tuple[object, ...], ToAccept] = {}
    for row in filter(is_open, findings):
        names: ToAccept = {
            "rule_id": row["rule_id"],
            "consumer_group": row["consumer_group"],
            "topic": row["topic"],
            "broker_name": row["broker_name"],
            "client_id": row["client_id"],
        }
        named.setdefault(tuple(names.values()), names)
    return list(named.values())


def shown_first(findings: Iterable[FindingsRow], limit: int) -> list[FindingsRow]:
    """Return the findings to show first: open findings, then the most severe."""
    return sorted(findings, key=_order(SHOWN_FIRST))[:limit]


def capped(findings: Iterable[FindingsRow], rows_of_a_rule: int) -> list[FindingsRow]:
    """Return the first findings of each rule in a cluster, open and most severe first."""
    rule = ("cluster", "rule_id")
    ordered = sorted(sorted(findings, key=_order(KEPT_FIRST)), key=_by(rule))
    return [row for _, rows in groupby(ordered, _by(rule)) for row in list(rows)[:rows_of_a_rule]]


def worst_groups(findings: Iterable[FindingsRow], groups: int) -> list[tuple[str, str]]:
    """Return the (cluster, consumer_group) of the groups with the most severe open findings above
    INFO.
    """
    errors: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for row in findings:
        if is_open(row) and row["consumer_group"] is not None:
            group = (row["cluster"], row["consumer_group"])
            errors[group] += row["severity"] == ERROR
            total[group] += 1
    return sorted(total, key=lambda group: (-errors[group], -total[group], *group))[:groups]


def _by(names: Iterable[str]) -> Callable[[Mapping[str, object]], tuple[Any, ...]]:
    return lambda row: tuple((row[name] is not None, row[name]) for name in names)


def _order(names: Iterable[str]) -> Callable[[Mapping[str, object]], tuple[Any, ...]]:
    """Return a sort key: open findings first, then by severity, then by these columns."""
    rest = _by(names)
    return lambda row: (row["accepted"] is not None, _RANK.get(row["severity"], 0), *rest(row))


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers of accepted and open findings of a rule at one severity."""

    rule_id: str
    severity: str
    accepted: bool
    findings: int
