"""Renders ``metrics.prom`` of the history: the last night of each cluster, with the label names of
RocketMQ's exporter (cluster, group).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rebalance_core.audit.outcome import OTHER_GROUPS, WORST_GROUPS
from rebalance_core.contracts.history import OVER
from rebalance_core.history.owners import Owner
from rebalance_core.model.system_groups import is_system_group

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupNightsRow, NightsRow, OpenFindingsRow

Sample = tuple[Mapping[str, str], int | float]
"""Labels and value; values are printed in full, because with six digits a time could be off by 83
minutes.
"""

_BY_GROUP: "dict[str, tuple[str, Callable[[GroupNightsRow], int | None], int]]" = {
    "unread_messages": (
        "Unread messages: those after the group's newest commits.",
        lambda row: row["behind"],
        1,
    ),
    "epochs": ("Epochs of the group that began in the night.", lambda row: row["epochs"], 1),
    "moved_queues": (
        "Queues that received an owner in the night, after the group's first epoch.",
        lambda row: row["moved"],
        1,
    ),
    "orphan_queue_seconds": (
        "Queues x seconds of the night without an owner.",
        lambda row: row["orphan_ms"],
        1000,
    ),
    "shared_queue_seconds": (
        "Queues x seconds of the night with more than one holder.",
        lambda row: row["shared_ms"],
        1000,
    ),
}


def render_metrics(
    nights: "Sequence[NightsRow]",
    groups: "Sequence[GroupNightsRow]",
    findings: "Sequence[OpenFindingsRow]",
    owners: Iterable[Owner] = (),
    left_out: int = 0,
) -> str:
    """Return the text of the file, with lines in a fixed order and a final newline.

    Args:
        nights: the last night of each cluster, rows of ``nights``.
        groups: rows of ``group_nights`` for these nights.
        findings: all rows of ``open_findings``.
        owners: entries of ``owners.toml``, for the channel of each team.
        left_out: the number of run folders left out.
    """
    channels = {owner.team: owner.channel for owner in reversed(tuple(owners))}
    lines: list[str] = []

    def metric(name: str, text: str, samples: Iterable[Sample]) -> None:
        lines.append(f"# HELP rebalance_history_{name} {text}")
        lines.append(f"# TYPE rebalance_history_{name} gauge")
        for labels, value in samples:
            shown = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
            lines.append(f"rebalance_history_{name}{f'{{{shown}}}' if shown else ''} {value!r}")

    metric(
        "open_causes",
        "Findings above INFO that no other finding caused, by state and severity.",
        _causes(findings, channels),
    )
    metric(
        "complete",
        "1 if the last night was complete.",
        [({"cluster": row["cluster"]}, int(row["complete"])) for row in nights],
    )
    metric(
        "night_end_seconds",
        "End of the last night.",
        [({"cluster": row["cluster"]}, row["end_ms"] // 1000) for row in nights],
    )
    metric("left_out", "Run folders that were left out; the page states why.", [({}, left_out)])
    groups = [row for row in groups if not is_system_group(row["consumer_group"])]
    chosen = _chosen(groups)
    for name, (text, counted, unit) in _BY_GROUP.items():
        metric(name, text, _of_groups(groups, chosen, counted, unit))
    return "\n".join(lines) + "\n"


def _causes(findings: "Iterable[OpenFindingsRow]", channels: Mapping[str, str]) -> list[Sample]:
    counted = Counter(
        (row["cluster"], row["state"], row["severity"], row["owner"] or "")
        for row in findings
        if row["caused_by"] is None and row["state"] not in OVER
    )
    names = ("cluster", "state", "severity", "owner", "channel")
    return [
        (dict(zip(names, (*key, channels.get(key[-1], "")), strict=True)), n)
        for key, n in sorted(counted.items())
    ]


def _chosen(groups: "Sequence[GroupNightsRow]") -> set[tuple[str, str]]:
    """Return the groups with the most orphaned and shared time, then the most unread messages, then
    the most moves.
    """
    worst = sorted(
        groups,
        key=lambda row: (
            -(row["orphan_ms"] + row["shared_ms"]),
            -(row["behind"] or 0),
            -row["moved"],
            row["cluster"],
            row["consumer_group"],
        ),
    )
    return {(row["cluster"], row["consumer_group"]) for row in worst[:WORST_GROUPS]}


def _of_groups(
    groups: "Iterable[GroupNightsRow]",
    chosen: set[tuple[str, str]],
    counted: "Callable[[GroupNightsRow], int | None]",
    unit: int,
) -> list[Sample]:
    summed: Counter[tuple[str, str]] = Counter()
    for row in groups:
        named, count = (row["cluster"], row["consumer_group"]), counted(row)
        if count is not None:
            summed[named if named in chosen else (row["cluster"], OTHER_GROUPS)] += count
    return [
        ({"cluster": cluster, "group": group}, value // unit if value % unit == 0 else value / unit)
        for (cluster, group), value in sorted(summed.items())
    ]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
