"""How many queues consumers have over time, whatever their number: fewest, average, most, idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rebalance_core.report.plots.style import (
    ACCENT,
    FILL,
    IDLE_HATCH,
    INK,
    PAPER,
    QUIET,
    few_ticks,
    grid,
)
from rebalance_core.report.timeline.axis import Axis


@dataclass(frozen=True, slots=True)
class Band:
    """One state of the group from a time on; without members all figures are 0.

    Attributes:
        from_ms: Since when.
        fewest: Queues of the consumer that has fewest.
        average: Mean over the consumers.
        most: Queues of the one that has most.
        members: Consumers.
        idle: Those without a queue.
    """

    from_ms: int
    fewest: float
    average: float
    most: float
    members: int
    idle: int


def bands_of_loads(rows: Iterable[tuple[int, int | None, int]]) -> list[Band]:
    """Bands out of stretches (from_ms, to_ms or None, queues) of single consumers."""
    changes: dict[int, list[tuple[int, int]]] = {}
    for from_ms, to_ms, queues in rows:
        changes.setdefault(from_ms, []).append((queues, 1))
        if to_ms is not None:
            changes.setdefault(to_ms, []).append((queues, -1))
    loads: Counter[int] = Counter()
    bands = []
    for at in sorted(changes):
        for queues, one in changes[at]:
            loads[queues] += one
        there = +loads
        members = there.total()
        held = sum(queues * count for queues, count in there.items())
        bands.append(
            Band(
                at, min(there, default=0), held / members if members else 0.0,
                max(there, default=0), members, there[0],
            )
        )  # fmt: skip
    return bands


def bands_of_steps(rows: Any) -> list[Band]:
    """Bands out of `plan_steps` of one group under one strategy."""
    bands = []
    for row in rows.sort_values("epoch", kind="stable").itertuples():
        members = int(row.members)
        average = float(row.queues) / members if members else 0.0
        bands.append(
            Band(
                int(row.change_ms), float(row.min_queues), average, float(row.max_queues), members,
                int(row.idle_members),
            )
        )  # fmt: skip
    return bands


def draw_bands(axes: Axes, bands: list[Band], axis: Axis, highest: float) -> None:
    """Fewest to most as an area, the average as a dashed line in it."""
    at = [axis.at(max(band.from_ms, axis.from_ms)) for band in bands] + [axis.width]
    fewest, average, most = (
        [getattr(band, name) for band in bands] + [getattr(bands[-1], name)]
        for name in ("fewest", "average", "most")
    )
    axes.fill_between(at, fewest, most, step="post", facecolor=FILL, alpha=0.75, linewidth=0)
    axes.step(at, most, where="post", color=INK, linewidth=1.3)
    axes.step(at, fewest, where="post", color=QUIET, linewidth=0.8)
    axes.step(at, average, where="post", color=ACCENT, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.set_xlim(0, axis.width)
    axes.set_ylim(0, max(highest, 1) * 1.1)
    few_ticks(axes, 4)
    axes.set_xticks([])
    grid(axes)


def draw_idle(axes: Axes, bands: list[Band], axis: Axis) -> None:
    """Members as a line, those that are idle as a hatched area below it."""
    at = [axis.at(max(band.from_ms, axis.from_ms)) for band in bands] + [axis.width]
    members = [band.members for band in bands] + [bands[-1].members]
    idle = [band.idle for band in bands] + [bands[-1].idle]
    axes.step(at, members, where="post", color=INK, linewidth=1.0)
    axes.fill_between(
        at, 0, idle, step="post", facecolor=PAPER, edgecolor=INK, hatch=IDLE_HATCH, linewidth=0.4
    )
    axes.set_xlim(0, axis.width)
    axes.set_ylim(0, max(*members, 1) * 1.15)
    few_ticks(axes, 2)
    axes.set_xticks([])
    grid(axes)


def band_samples() -> list[Any]:
    """The legend of `draw_bands` and `draw_idle`."""
    return [
        Line2D([], [], color=INK, linewidth=1.3, label="most queues of a consumer"),
        Line2D([], [], color=ACCENT, linewidth=1.2, linestyle=(0, (4, 2)), label="average"),
        Line2D([], [], color=QUIET, linewidth=0.8, label="fewest"),
        Patch(
            facecolor=PAPER, edgecolor=INK, hatch=IDLE_HATCH, linewidth=0.4, label="idle consumers"
        ),
    ]
