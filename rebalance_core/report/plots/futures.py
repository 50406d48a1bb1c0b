"""Figures of simulated time: how long changes take, and one future queue by queue."""

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.owners_over_time import draw_ownership
from rebalance_core.report.plots.plot_rows import PlotRows

CONVERGENCE_TITLE = "How long until the last queue has moved"
CONVERGENCE_NEEDED = ("seed", "change_ms", "cause", "drop_ms", "start_ms")
MOST_CURVES = 6
SECOND_MS = 1_000
P99 = 0.99
EARLY_MS = 500
"""How long before a join is logged members may act, because brokers already know the new member."""
HEIGHT, LEFT, RIGHT = 3.1, 0.75, 0.3
Dashes = Literal["-", "--", "-.", ":"]
LOOKS: tuple[tuple[str, Dashes], ...] = (
    (style.INK, "-"), (style.ACCENT, "--"), (style.ALARM, "-."),
    (style.QUIET, ":"), (style.ACCENT, "-"), (style.INK, "--"),
)  # fmt: skip
FEET = [
    "Each step is one change in one future; changes that moved no queue are not drawn.",
    "The mark shows when 99 % of them have settled. Longer times are rare but possible.",
]


@style.styled
def draw_convergence(handovers: PlotRows, by: str = "cause") -> Figure:
    """Draw the share of settled changes over the time since the change, one curve per kind.

    Args:
        handovers: Rows of `handovers` for all seeds.
        by: The column that distinguishes curves, which are ordered by the time to settle.

    Raises:
        UsageError: Columns are missing.
    """
    frame = plot_rows.table(handovers, (*CONVERGENCE_NEEDED, *({by} - set(CONVERGENCE_NEEDED))))
    frame["over_ms"] = _over_ms(frame, by)
    frame = frame[frame["over_ms"].notna()]
    if frame.empty:
        return style.nothing_to_draw(CONVERGENCE_TITLE, "No queue moved.")
    settled = frame.groupby([by, "change_ms", "seed"], sort=True)["over_ms"].max().clip(lower=0)
    curves = {str(name): np.sort(of.to_numpy()) for name, of in settled.groupby(level=0)}
    ordered = sorted(curves, key=lambda name: (_quantile(curves[name]), name))
    drawn, feet = ordered[:MOST_CURVES], list(FEET)
    if len(ordered) > MOST_CURVES:
        feet.append(f"… and {len(ordered) - MOST_CURVES} more, all slower, not drawn.")
    seeds = frame["seed"].nunique()
    legend = 0.2 + 0.18 * -(-len(drawn) // 2)
    subtitle = f"share of changes that have settled, {seeds:,} futures"
    figure = style.page(CONVERGENCE_TITLE, subtitle, HEIGHT + 0.55 + legend, feet)
    axes = style.panel(figure, LEFT, style.TOP, style.WIDTH - LEFT - RIGHT, HEIGHT)
    _frame(axes, max(curves[name][-1] for name in drawn) / SECOND_MS)
    samples = []
    for (colour, dashes), name in zip(LOOKS, drawn, strict=False):
        _curve(axes, curves[name] / SECOND_MS, colour, dashes)
        p50, p99 = (_quantile(curves[name], share) / SECOND_MS for share in (0.5, P99))
        label = f"{letters.short(name, 34)}: half by {p50:.1f} s, 99 % by {p99:.1f} s"
        samples.append(Line2D([], [], color=colour, linestyle=dashes, label=label))
    style.key(figure, samples, LEFT, style.TOP + HEIGHT + 0.5, 2)
    return figure


def _over_ms(frame: Any, by: str) -> Any:
    """Return the time from each row's change to its last action.

    An action at or after the next change belongs to that change.
    """
    changes = {name: np.unique(of) for name, of in frame.groupby(by)["change_ms"]}
    following = [
        next(iter(changes[name][np.searchsorted(changes[name], change_ms, side="right") :]), np.inf)
        for name, change_ms in zip(frame[by], frame["change_ms"], strict=True)
    ]
    times = frame[["drop_ms", "start_ms"]].astype(float)
    before = np.array(following, float)[:, None] - EARLY_MS
    return times.where(times < before).max(axis=1) - frame["change_ms"]


def _frame(axes: Axes, longest_s: float) -> None:
    axes.set_xlim(0, max(longest_s * 1.03, 0.1))
    axes.set_ylim(0, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.grid(color=style.LINE, linewidth=0.5, alpha=0.7)
    axes.tick_params(length=0)
    axes.set_xlabel("seconds since the change", size=style.SMALL)


def _curve(axes: Axes, seconds: Any, colour: str, dashes: Dashes) -> None:
    shares = np.arange(1, len(seconds) + 1) / len(seconds)
    axes.step(
        [0, *seconds], [0, *shares], where="post", color=colour, linestyle=dashes, linewidth=1.6
    )
    axes.plot([_quantile(seconds)], [P99], marker="o", markersize=5, color=colour)


def _quantile(values: Any, share: float = P99) -> float:
    """Return the quantile at this share, by nearest rank."""
    return float(values[max(0, int(np.ceil(share * len(values))) - 1)])


FUTURE_TITLE = "The worst future"
QUEUE = ["topic", "broker_name", "queue_id"]
FUTURE_NEEDED = (
    "consumer_group", "seed", "change_ms", *QUEUE, "from_client_id", "to_client_id", "drop_ms",
    "start_ms", "gap_ms",
)  # fmt: skip
MARGIN = 0.15
"""Share of the drawn time before the change, and after the last queue has moved."""
LEAST_MARGIN_MS = 300

Row = dict[str, Any]


def draw_worst_future(handovers: PlotRows) -> Figure:
    """Draw the owners of queues around the change that left queues unowned for the longest time.

    The sum of its gaps is the largest of all changes in all futures. Queues that did not move are
    left out.

    Args:
        handovers: Rows of `handovers` for one group.

    Raises:
        UsageError: Columns are missing, or the rows belong to several groups.
    """
    frame = plot_rows.table(handovers, FUTURE_NEEDED)
    plot_rows.only(frame, ("consumer_group",), FUTURE_TITLE)
    if frame.empty:
        return style.nothing_to_draw(FUTURE_TITLE, "No queue moved.")
    gaps = frame.groupby(["change_ms", "seed"], sort=True)["gap_ms"].sum()
    change_ms, seed = gaps.idxmax()
    figure = draw_ownership(ownership_of(frame, int(change_ms), int(seed)))
    title, subtitle = figure.texts[:2]
    title.set_text(f"{FUTURE_TITLE}: {letters.short(str(frame['consumer_group'].iloc[0]), 44)}")
    worst_s = gaps.max() / SECOND_MS
    subtitle.set_text(
        f"{subtitle.get_text()}; {worst_s:,.1f} queue-seconds without an owner, the most among "
        f"{len(gaps):,} simulated (seed {seed})"
    )
    return figure


def ownership_of(frame: Any, change_ms: int, seed: int) -> list[Row]:
    """Return rows of ``ownership`` for the queues that moved in one change of one future.

    Args:
        frame: `handovers` of one group.
        change_ms: the change.
        seed: the future.
    """
    rows = frame[(frame["change_ms"] == change_ms) & (frame["seed"] == seed)]
    last_ms = int(rows[["drop_ms", "start_ms"]].astype(float).max(axis=None))
    margin = max(LEAST_MARGIN_MS, int(MARGIN * (last_ms - change_ms)))
    from_ms, to_ms = change_ms - margin, last_ms + margin
    made: list[Row] = []
    for (topic, broker, queue_id), moves in rows.groupby(QUEUE, sort=True):
        named = {
            "consumer_group": moves["consumer_group"].iloc[0],
            "topic": topic,
            "broker_name": broker,
            "queue_id": int(queue_id),
            "holders": 1,
        }
        made += [named | interval for interval in _intervals(moves, from_ms, to_ms)]
    return made


def _intervals(moves: Any, from_ms: int, to_ms: int) -> list[Row]:
    """Return the owners of a queue between two times, including periods without an owner."""
    held: dict[str, int] = {}
    made: list[Row] = []

    def add(client_id: str | None, begin: int, end: int) -> None:
        if begin < end:
            made.append({"client_id": client_id, "from_ms": begin, "to_ms": end})

    ordered = sorted(moves.to_dict("records"), key=lambda move: min(_times(move)))
    for move in ordered:
        giver, taker = _text(move["from_client_id"]), _text(move["to_client_id"])
        drop, start = _time(move["drop_ms"], to_ms), _time(move["start_ms"], to_ms)
        if giver is not None:
            add(giver, held.pop(giver, from_ms), drop)
        if taker is not None:
            held[taker] = start
        add(None, drop if giver is not None else from_ms, start)
    for client_id, since in held.items():
        add(client_id, since, to_ms)
    return sorted(made, key=lambda interval: int(interval["from_ms"]))


def _times(move: Row) -> list[float]:
    return [float(move[name]) for name in ("drop_ms", "start_ms") if move[name] == move[name]]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: Any, otherwise: int) -> int:
    """Return the time, or the end of the drawn period if there is none."""
    return otherwise if value is None or value != value else int(value)
