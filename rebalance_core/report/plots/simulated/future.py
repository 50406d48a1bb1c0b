"""One simulated future of one change, queue by queue."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from rebalance_core.report.plots.labels import short
from rebalance_core.report.plots.owners_over_time import draw_ownership
from rebalance_core.report.plots.style import nothing_to_draw
from rebalance_core.report.plots.tabular import Rows, only, table

TITLE = "The worst future"
QUEUE = ["topic", "broker_name", "queue_id"]
NEEDED = (
    "consumer_group", "seed", "change_ms", *QUEUE, "from_client_id", "to_client_id", "drop_ms",
    "start_ms", "gap_ms",
)  # fmt: skip
SECOND_MS = 1_000
MARGIN = 0.15
"""Share of the time drawn that is before the change, and after the last queue has moved."""
LEAST_MARGIN_MS = 300

Row = dict[str, Any]


def draw_worst_future(handovers: Rows) -> Figure:
    """Who had which queue around the change that left queues without an owner for the longest.

    Of all changes and futures the one whose gaps add up to most; queues that did not move then are
    left out.

    Args:
        handovers: Rows of `handovers` of one group.

    Raises:
        UsageError: Columns are missing, or the rows are of several groups.
    """
    frame = table(handovers, NEEDED)
    only(frame, ("consumer_group",), TITLE)
    if frame.empty:
        return nothing_to_draw(TITLE, "No queue moved.")
    gaps = frame.groupby(["change_ms", "seed"], sort=True)["gap_ms"].sum()
    change_ms, seed = gaps.idxmax()
    figure = draw_ownership(ownership_of(frame, int(change_ms), int(seed)))
    title, subtitle = figure.texts[:2]
    title.set_text(f"{TITLE}: {short(str(frame['consumer_group'].iloc[0]), 44)}")
    worst_s = gaps.max() / SECOND_MS
    subtitle.set_text(
        f"{subtitle.get_text()}; {worst_s:,.1f} queue-seconds without an owner, the most of "
        f"{len(gaps):,} simulated (seed {seed})"
    )
    return figure


def ownership_of(frame: Any, change_ms: int, seed: int) -> list[Row]:
    """Rows as ``ownership`` has them, of the queues that moved for one change in one future.

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
            "topic": topic, "broker_name": broker, "queue_id": int(queue_id), "holders": 1,
        }  # fmt: skip
        made += [named | one for one in _intervals(moves, from_ms, to_ms)]
    return made


def _intervals(moves: Any, from_ms: int, to_ms: int) -> list[Row]:
    """Who had one queue, and when nobody did, between two times."""
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
    return sorted(made, key=lambda one: int(one["from_ms"]))


def _times(move: Row) -> list[float]:
    return [float(move[name]) for name in ("drop_ms", "start_ms") if move[name] == move[name]]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: Any, otherwise: int) -> int:
    """A time that is there; nobody took or dropped it: as long as is drawn."""
    return otherwise if value is None or value != value else int(value)
