"""The table of all groups, worst first, which shows whether a given group is healthy."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rebalance_core.model.verdicts import (
    DIFFERS,
    EQUAL,
    ERROR,
    FALLS_BEHIND,
    IDLE,
    INFO,
    OFFLINE,
    OK,
    SHARED,
    TROUBLE,
    UNKNOWN,
    UNSTABLE,
    WARNING,
    Health,
)
from rebalance_core.report.visible import visible

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow

GroupName = tuple[str, str]

ANCHOR = "group-"
SLOW = ("COMMIT_STANDS_STILL", FALLS_BEHIND)
"""Rules for queues that a group holds but does not read, or reads too slowly."""
HEALTH_ORDER: tuple[Health, ...] = (*TROUBLE, UNKNOWN, OFFLINE, IDLE, OK)
"""The values of health, worst first, as a click on the column sorts them."""
OWNER_MARKS = {EQUAL: "=", SHARED: "≈", DIFFERS: "≠", UNSTABLE: "~", UNKNOWN: "?"}
OWNER_WORDS = {
    EQUAL: "as computed",
    SHARED: "as computed, queues shared",
    DIFFERS: "not as computed",
    UNSTABLE: "a change is under way",
    UNKNOWN: "not known",
}
"""The words after the health of a group whose live owners were compared with the computed ones."""
WORST_VERDICTS = (DIFFERS, UNKNOWN, UNSTABLE, OFFLINE)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group's row in the table.

    Attributes:
        verdict: the comparison's verdict; reason: why it is UNKNOWN.
        settled_by: the file or command that would settle an UNKNOWN.
        members: processes at the end; queues: readable queues at the end.
        behind: messages after the latest known commits; moved: queues moved in the night.
        changed_ms: start of the last epoch, epoch ms UTC. Any of these may be None for unknown.
        errors: the number of open ERROR findings; warnings: the number of open WARNING findings.
        built_in: whether it belongs to RocketMQ's own brokers, proxies or tools, and is not judged.
        health: one of `model.verdicts.HEALTH`.
        basis: one of `model.verdicts.BASES`.
        progress: one of `model.verdicts.PROGRESS`; progress_reason: why the progress is UNKNOWN.
        slow_since_ms: when a queue first stood still or fell behind; None if no queue has.
        rates: arriving and read messages per second, if it falls behind.
    """

    cluster: str
    consumer_group: str
    verdict: str
    reason: str = ""
    settled_by: str | None = None
    members: int = 0
    queues: int | None = None
    behind: int | None = None
    moved: int | None = None
    changed_ms: int | None = None
    errors: int = 0
    warnings: int = 0
    built_in: bool = False
    basis: str | None = None
    health: str = UNKNOWN
    progress: str = UNKNOWN
    progress_reason: str | None = None
    slow_since_ms: int | None = None
    rates: tuple[str, str] | None = None

    @property
    def name(self) -> GroupName:
        """(cluster, group)."""
        return (self.cluster, self.consumer_group)

    @property
    def found(self) -> str:
        """The open findings above INFO, in words; empty if there are none."""
        counts = ((self.errors, ERROR), (self.warnings, WARNING))
        return ", ".join(f"{count:,}\u00a0{word}" for count, word in counts if count)


def group_rows(
    verdicts: "Iterable[GroupVerdictsRow]",
    findings: "Iterable[FindingsRow]",
    built_in: Callable[[str], bool],
) -> list[GroupRow]:
    """Return a row for every group, worst first, with RocketMQ's own groups last.

    Args:
        verdicts: rows of ``group_verdicts``.
        findings: rows of ``findings``; accepted findings and INFO do not count.
        built_in: returns True for names of RocketMQ's own groups.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    slow: dict[GroupName, list[FindingsRow]] = {}
    for finding in findings:
        group = finding["consumer_group"]
        if finding["accepted"] is None and finding["severity"] != INFO and group:
            counts[finding["cluster"], group, finding["severity"]] += 1
        if finding["rule_id"] in SLOW and group:
            slow.setdefault((finding["cluster"], group), []).append(finding)
    rows = []
    for verdict in verdicts:
        row = replace(_group_row(verdict, counts), built_in=built_in(verdict["consumer_group"]))
        rows.append(replace(row, **_slowness(slow.get(row.name, ()))))
    return sorted(rows, key=_worst_first)


def _slowness(findings: "Iterable[FindingsRow]") -> dict[str, Any]:
    """Return when the group became slow, and the rates if it falls behind."""
    begins = [row["first_ms"] for row in findings if row["first_ms"] is not None]
    behind = (row["evidence"] for row in findings if "arrive_per_second" in row["evidence"])
    rates = next(
        ((evidence["arrive_per_second"], evidence["read_per_second"]) for evidence in behind), None
    )
    return {"slow_since_ms": min(begins, default=None), "rates": rates}


def _group_row(row: "GroupVerdictsRow", counts: Mapping[tuple[str, str, str], int]) -> GroupRow:
    name = row["cluster"], row["consumer_group"]
    return GroupRow(
        *name,
        verdict=row["verdict"],
        reason=row["reason"],
        settled_by=row["settled_by"],
        members=row["members"],
        queues=row["queues"],
        behind=row["behind"],
        moved=row["moved"],
        changed_ms=row["changed_ms"],
        errors=counts.get((*name, ERROR), 0),
        warnings=counts.get((*name, WARNING), 0),
        basis=row["basis"],
        health=row["health"],
        progress=row["progress"],
        progress_reason=row["progress_reason"],
    )


def _worst_first(row: GroupRow) -> tuple[Any, ...]:
    rank = WORST_VERDICTS.index(row.verdict) if row.verdict in WORST_VERDICTS else 9
    trouble = TROUBLE.index(row.health) if row.health in TROUBLE else len(TROUBLE)
    counts = (-row.errors, trouble, -row.warnings, rank)
    return (row.built_in, *counts, row.consumer_group, row.cluster)


def by_health(rows: Iterable[GroupRow]) -> dict[str, int]:
    """Return the number of groups with each health that occurs, worst first."""
    counts = Counter(row.health for row in rows)
    return {health: counts[health] for health in HEALTH_ORDER if counts[health]}


def anchors(rows: Sequence[GroupRow]) -> dict[GroupName, str]:
    """Return the id of each group's row: ``group-NAME``, with the cluster for ambiguous names.

    >>> sorted(anchors([GroupRow("c", "pay", "EQUAL"), GroupRow("c", "a b", "EQUAL")]).values())
    ['group-a_b', 'group-pay']
    """
    names = Counter(row.consumer_group for row in rows)
    ids: dict[GroupName, str] = {}
    used = set[str]()
    for row in rows:
        several = f"@{row.cluster}" if names[row.consumer_group] > 1 else ""
        name = f"{ANCHOR}{visible(row.consumer_group, None)}{visible(several, None)}"
        name = "_".join(name.split())
        while name in used:
            name += "_"
        used.add(name)
        ids[row.name] = name
    return ids


def href(anchor: str) -> str:
    """Return the link to an id.

    >>> href("group-%RETRY%")
    '#group-%25RETRY%25'
    """
    return "#" + quote(anchor, safe="/@:!$&'()*+,;=~._-")
