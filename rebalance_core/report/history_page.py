"""The HTML page of the history: nights by group and findings by state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from markupsafe import Markup

from rebalance_core.contracts.history import subject_of
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import DAY_MS, utc
from rebalance_core.model.verdicts import DIFFERS, EQUAL, OFFLINE, SHARED, UNKNOWN, UNSTABLE
from rebalance_core.report.page import template
from rebalance_core.report.svg import XMLNS, box, joined, number, tag
from rebalance_core.version import LIBRARY_VERSION

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        GroupNightsRow,
        NightsRow,
        OpenFindingsRow,
        RowsByTable,
    )

GroupName = tuple[str, str]

PAGE = "history.html.j2"
CALENDAR_GROUPS = 60
"""Maximum number of groups in the calendar; those with the most nights that differ from the
computation come first.
"""
CALENDAR_NIGHTS = 92
MOVING_GROUPS = 10
LISTED = 50
"""Maximum number of findings listed per state."""
OLD_NIGHTS = 7
_CELL, _ROW, _LABEL, _HEAD = 14, 16, 300, 22
_AS_COMPUTED = (EQUAL, SHARED, OFFLINE)
_CLASSES = {
    EQUAL: "equal", SHARED: "equal", OFFLINE: "offline", DIFFERS: "differs",
    UNSTABLE: "unstable", UNKNOWN: "unknown",
}  # fmt: skip
_SPARK_WIDTH, _SPARK_HEIGHT = 240, 34


def render_history(rows: RowsByTable, owners: Collection[object], left_out: Sequence[str]) -> str:
    """Return the page as a single self-contained HTML document.

    Args:
        rows: the tables of history by name, in order of their keys.
        owners: entries of ``owners.toml``; without any, the page has no owner column.
        left_out: ignored folders, with the reason.
    """
    return template(PAGE).render(history_facts(rows, bool(owners), left_out))


def history_facts(rows: RowsByTable, with_owners: bool, left_out: Sequence[str]) -> dict[str, Any]:
    """Return the values that the template reads."""
    nights, findings = rows["nights"], rows["open_findings"]
    clusters = sorted({night["cluster"] for night in nights})
    last = {night["cluster"]: night["end_ms"] for night in nights}
    by_cluster = {name: [row for row in nights if row["cluster"] == name] for name in clusters}
    groups: dict[GroupName, list[GroupNightsRow]] = defaultdict(list)
    for row in rows["group_nights"]:
        groups[row["cluster"], row["consumer_group"]].append(row)
    judged = {name: some for name, some in groups.items() if not is_system_group(name[1])}
    return {
        "nights": nights,
        "clusters": clusters,
        "from_ms": min(night["start_ms"] for night in nights),
        "to_ms": max(night["end_ms"] for night in nights),
        "most_nights": max(map(len, by_cluster.values())),
        "incomplete": [night for night in nights if not night["complete"]],
        "states": _by_state(findings, last),
        "subject_of": subject_of,
        "listed": LISTED,
        "old_nights": OLD_NIGHTS,
        "with_owners": with_owners,
        "calendars": [(name, *_calendar(name, by_cluster[name], judged)) for name in clusters],
        "moving": _moving(judged),
        "sparks": [(name, _sparks(by_cluster[name], groups)) for name in clusters],
        "flaps": rows["flaps"],
        "left_out": left_out,
        "library_version": LIBRARY_VERSION,
    }


def _by_state(
    findings: Sequence[OpenFindingsRow], last: Mapping[str, int]
) -> list[tuple[str, str, list[OpenFindingsRow]]]:
    """Return the lists on the page as (title, description, findings)."""

    def chosen(*states: str) -> list[OpenFindingsRow]:
        in_states = [row for row in findings if row["state"] in states]
        return sorted(
            in_states, key=lambda row: (row["caused_by"] is not None, -row["nights_seen"])
        )

    def over(state: str) -> list[OpenFindingsRow]:
        return [row for row in chosen(state) if row["over_night_ms"] == last[row["cluster"]]]

    still: list[OpenFindingsRow] = []
    old: list[OpenFindingsRow] = []
    for row in chosen("OPEN"):
        age_ms = last[row["cluster"]] - row["first_night_ms"]
        (old if age_ms > OLD_NIGHTS * DAY_MS else still).append(row)
    return [
        ("New", "seen in the last night first", chosen("NEW")),
        ("Back again", "were over, are back", chosen("REOPENED")),
        ("Still open", "seen in the last night and before", still),
        ("Healed", "ended, as the last night shows", over("HEALED")),
        (
            "Gone",
            ("open until the last night, which examined them and did not find them"),
            over("GONE"),
        ),
        (
            "Not looked at",
            "the last night lacked the files that showed them",
            chosen("NOT_LOOKED_AT"),
        ),
        (f"Older than {OLD_NIGHTS} days", "open throughout", old),
        ("Snoozed", "to be fixed by their date", chosen("SNOOZED")),
    ]


def _calendar(
    cluster: str,
    nights: Sequence[NightsRow],
    groups: Mapping[GroupName, Sequence[GroupNightsRow]],
) -> tuple[Markup, int, int]:
    """Return the drawing, the number of groups in it, and the number of all groups."""
    shown = nights[-CALENDAR_NIGHTS:]
    column = {night["end_ms"]: column_number for column_number, night in enumerate(shown)}
    rows_of = {name[1]: rows for name, rows in groups.items() if name[0] == cluster}

    def bad(name: str) -> int:
        return sum(row["verdict"] not in _AS_COMPUTED for row in rows_of[name])

    names = sorted(filter(bad, rows_of), key=lambda name: (-bad(name), name))[:CALENDAR_GROUPS]
    paths: dict[str, list[str]] = defaultdict(list)
    for line, name in enumerate(names):
        for row in rows_of[name]:
            if row["end_ms"] in column:
                left = _LABEL + column[row["end_ms"]] * _CELL
                paths[_CLASSES[row["verdict"]]].append(box(left, _HEAD + line * _ROW + 2, 12, 12))
    marks = [
        tag("path", d="".join(parts), class_=kind, tabindex=None)
        for kind, parts in sorted(paths.items())
    ]
    labels = [
        tag("text", name, x=_LABEL - 8, y=_HEAD + line * _ROW + 12, text_anchor="end")
        for line, name in enumerate(names)
    ]
    heads = [
        tag("text", utc(night["end_ms"], "%m-%d"), x=_LABEL + column_number * _CELL, y=_HEAD - 8)
        for column_number, night in enumerate(shown)
        if column_number % 5 == 0
    ]
    gaps = [
        tag("path", d=box(_LABEL + column_number * _CELL, _HEAD - 4, 12, 3), class_="incomplete")
        for column_number, night in enumerate(shown)
        if not night["complete"]
    ]
    width, height = _LABEL + max(len(shown), 5) * _CELL + 40, _HEAD + len(names) * _ROW + 4
    parts = [_hatch(), *heads, *gaps, *labels, *marks]
    return (
        _picture(width, height, f"Verdicts of {cluster} by night", parts),
        len(names),
        len(rows_of),
    )


def _hatch() -> Markup:
    line = tag("path", d="M-1 5l6-6M-1 9l10-10M3 9l6-6", class_="hatching")
    pattern = tag("pattern", line, id="hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    return tag("defs", pattern)


def _picture(width: float, height: float, label: str, parts: Iterable[Markup]) -> Markup:
    return tag(
        "svg",
        joined(parts),
        xmlns=XMLNS,
        width=number(width),
        height=number(height),
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=label,
    )


class MovingGroup(TypedDict):
    """A group that moved more than the proven minimum."""

    cluster: str
    consumer_group: str
    moved: int
    minimum: int
    spark: Markup


def _moving(groups: Mapping[GroupName, Sequence[GroupNightsRow]]) -> list[MovingGroup]:
    """Return the groups with the most moves beyond the proven minimum, where it is known."""
    moving: list[MovingGroup] = []
    for (cluster, name), rows in groups.items():
        comparable = [
            (row["moved"], minimum) for row in rows if (minimum := row["minimum_moves"]) is not None
        ]
        moved, least = (
            (sum(numbers) for numbers in zip(*comparable, strict=True)) if comparable else (0, 0)
        )
        if moved > least:
            moving.append(
                {
                    "cluster": cluster,
                    "consumer_group": name,
                    "moved": moved,
                    "minimum": least,
                    "spark": _spark([row["moved"] for row in rows], f"moves of {name}"),
                }
            )
    moving.sort(key=lambda group: (group["minimum"] - group["moved"], group["consumer_group"]))
    return moving[:MOVING_GROUPS]


def _sparks(
    nights: Sequence[NightsRow], groups: Mapping[GroupName, Sequence[GroupNightsRow]]
) -> list[tuple[str, int, Markup]]:
    """Return a cluster's sparklines as (title, value of the last night, drawing)."""
    ends = [night["end_ms"] for night in nights]
    epochs, moved = dict.fromkeys(ends, 0), dict.fromkeys(ends, 0)
    for (cluster, _), rows in groups.items():
        if cluster == nights[0]["cluster"]:
            for row in rows:
                epochs[row["end_ms"]] += row["epochs"]
                moved[row["end_ms"]] += row["moved"]
    series = {
        "open findings": [night["errors"] + night["warnings"] for night in nights],
        "epochs": list(epochs.values()),
        "moved queues": list(moved.values()),
    }
    return [(title, values[-1], _spark(values, title)) for title, values in series.items()]


def _spark(values: Sequence[int], label: str) -> Markup:
    """Draw a line through the values, with 0 or a negative minimum at the bottom."""
    high, low = max(values), min(0, *values)
    step = _SPARK_WIDTH / max(1, len(values) - 1)
    scale = (_SPARK_HEIGHT - 6) / max(1, high - low)
    points = [
        f"{number(index * step)} {number(_SPARK_HEIGHT - 3 - (value - low) * scale)}"
        for index, value in enumerate(values)
    ]
    line = tag("path", d="M" + "L".join(points), class_="spark")
    text = (
        f"{label}: {values[0]:,} in the first night, {values[-1]:,} in the last, {high:,} at most"
    )
    return _picture(_SPARK_WIDTH, _SPARK_HEIGHT, text, [line])
