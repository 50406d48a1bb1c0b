"""Which findings are counted, kept and shown, of rows of ``findings``.

Where they are put in order, null comes first, and texts go by their code points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from itertools import groupby
from typing import Any

from rebalance_core.audit.verdict import Count
from rebalance_core.model.statuses import ERROR, INFO, WORST_FIRST

Row = Mapping[str, Any]

_RANK = {severity: rank for rank, severity in enumerate(WORST_FIRST, 1)}

_PLACE = ("consumer_group", "topic", "broker_name", "queue_id", "client_id")
KEPT_FIRST = (*_PLACE, "first_ms", "summary", "last_ms", "remedy")
"""The order of a rule's findings of one severity, where only some are kept."""
SHOWN_FIRST = ("rule_id", *_PLACE, "summary", "cluster", "first_ms", "last_ms", "remedy")
"""The order in which findings of one severity are shown."""
ACCEPTED_BY = ("rule_id", "consumer_group", "topic", "broker_name", "client_id")
"""What an acceptance may name."""


def count_findings(findings: Iterable[Row]) -> list[Count]:
    """How many there are by rule, severity and acceptance, in this order."""
    counted = Counter(
        (row["rule_id"], row["severity"], row["accepted"] is not None) for row in findings
    )
    return sorted((Count(*kind, times) for kind, times in counted.items()), key=astuple)


def is_open(finding: Row) -> bool:
    """True for a finding above INFO that is not accepted."""
    return finding["accepted"] is None and finding["severity"] != INFO


def to_accept(findings: Iterable[Row]) -> list[Row]:
    """`ACCEPTED_BY` of the open findings, each once."""
    named = dict.fromkeys(_values(row, ACCEPTED_BY) for row in findings if is_open(row))
    return [dict(zip(ACCEPTED_BY, values, strict=True)) for values in named]


def shown_first(findings: Iterable[Row], limit: int) -> list[Row]:
    """The first findings that are shown: open ones, then the worst."""
    return sorted(findings, key=_order(SHOWN_FIRST))[:limit]


def capped(findings: Iterable[Row], rows_of_a_rule: int) -> list[Row]:
    """At most so many findings of each rule of a cluster: open ones first, then the worst."""
    rule = ("cluster", "rule_id")
    ordered = sorted(sorted(findings, key=_order(KEPT_FIRST)), key=_by(rule))
    return [row for _, rows in groupby(ordered, _by(rule)) for row in list(rows)[:rows_of_a_rule]]


def worst_groups(findings: Iterable[Row], groups: int) -> list[tuple[str, str]]:
    """(cluster, consumer_group) of the groups with the worst open findings above INFO."""
    errors: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for row in findings:
        if is_open(row) and row["consumer_group"] is not None:
            group = (row["cluster"], row["consumer_group"])
            errors[group] += row["severity"] == ERROR
            total[group] += 1
    return sorted(total, key=lambda group: (-errors[group], -total[group], *group))[:groups]


def _values(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _by(names: Iterable[str]) -> Callable[[Row], tuple[Any, ...]]:
    return lambda row: tuple((row[name] is not None, row[name]) for name in names)


def _order(names: Iterable[str]) -> Callable[[Row], tuple[Any, ...]]:
    """Open findings first, then by severity, then by these columns."""
    rest = _by(names)
    return lambda row: (
        row["accepted"] is not None,
        _RANK.get(row["severity"], 0),
        *rest(row),
    )
