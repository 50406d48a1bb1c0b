"""The rebalances of `plan_steps` in an order that all strategies share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rebalance_core.report.plots.labels import short
from rebalance_core.report.plots.tabular import Rows, table

PLACE = ("scenario", "seed", "change_ms", "cluster", "consumer_group", "epoch")
"""What tells one rebalance from another, in the order they are drawn."""

DEFAULTS = {
    "cluster": "", "consumer_group": "", "scenario": "", "seed": 0, "of_rocketmq": True,
    "causes": (), "orphaned": 0, "shared": 0, "idle_members": 0,
}  # fmt: skip

BELOW_ONE = (
    "Less than the fewest is possible (CONSISTENT_HASH): fewest is that of a balanced result,"
    " a less even one may move less."
)


@dataclass(frozen=True, slots=True)
class Total:
    """What a strategy moved, over all rebalances and over those whose minimum can be compared.

    Attributes:
        rebalances: All of them.
        moved: Queues moved, over all of them.
        compared: Those that have a minimum.
        moved_compared: Queues moved in these.
        fewest: Proven minimum of these.
    """

    rebalances: int
    moved: int
    compared: int
    moved_compared: int
    fewest: int

    @property
    def ratio(self) -> float | None:
        """Moved / fewest; None if there is nothing to compare with."""
        return self.moved_compared / self.fewest if self.fewest else None


def read_steps(given: Rows, needed: Sequence[str]) -> Any:
    """The rows, with ``compared``: True where the minimum can be compared with this result.

    Rows of `group_metrics` with a strategy and a time are welcome: those of topics are left out,
    and so is what `plan_steps` does not count.
    """
    frame = table(given, ("strategy", "epoch", "change_ms", *needed), DEFAULTS)
    if "topic" in frame.columns:
        frame = frame[frame["topic"].isna()].reset_index(drop=True)
    if "counted" in frame.columns:
        frame = frame[frame["counted"].astype(bool)].reset_index(drop=True)
    if "minimum_moves" in frame.columns:
        whole = (frame["orphaned"] == 0) & (frame["shared"] == 0)
        frame["compared"] = frame["minimum_moves"].notna() & whole
    return frame


def slots(frame: Any) -> Any:
    """A number for each rebalance, the same under every strategy: a frame of PLACE and ``slot``."""
    places = frame[list(PLACE)].drop_duplicates().sort_values(list(PLACE), kind="stable")
    return places.assign(slot=range(len(places)))


def strategies(frame: Any) -> list[str]:
    """The strategies as they come."""
    return list(dict.fromkeys(frame["strategy"]))


def total(rows: Any) -> Total:
    """The total of one strategy's rows."""
    compared = rows[rows["compared"]]
    return Total(
        len(rows),
        int(rows["moved"].sum()),
        len(compared),
        int(compared["moved"].sum()),
        int(pd.to_numeric(compared["minimum_moves"]).sum()),
    )


def strategy_lines(name: str, of_rocketmq: bool, most: int = 24) -> str:
    """A strategy's label: its name, its settings below, and whose it is if not RocketMQ's."""
    head, bracket, rest = name.partition("(")
    lines = [short(head, most)]
    settings = rest.split(", ") if bracket else []
    shown = [f"{setting}," for setting in settings[:-1]] + settings[-1:]
    lines += [short(setting, most) for setting in shown[:2]]
    if more := len(settings) - 2:
        lines += [f"and {more} more"] if more > 0 else []
    if bracket:
        lines[1] = f"({lines[1]}"
    if not of_rocketmq:
        lines.append("not RocketMQ's")
    return "\n".join(lines)


def cause_lines(causes: Any) -> str:
    r"""Causes in short.

    >>> cause_lines(["CONSUMER_JOIN", "BROKER_DOWN"])
    'join\nbroker\ndown'
    """
    named = [str(cause).removeprefix("CONSUMER_").lower() for cause in causes]
    return "\n".join("\n".join(named).split("_"))
