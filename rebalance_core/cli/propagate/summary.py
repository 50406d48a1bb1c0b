"""The summary of a run of `propagate`, for a person and for a program: one dict, two forms."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rebalance_core.cli.printed import duration, place, utc
from rebalance_core.cli.propagate.advice import advice_on
from rebalance_core.cli.propagate.options import PropagateOptions
from rebalance_core.cli.terminal import joined
from rebalance_core.engine.table_writer import PropagationWritten

Row = Mapping[str, Any]
CAUSE_HEADER = ("cause", "changes", "slowest 99 % by", "without owner", "with several")
CHANGE_HEADER = (
    "group",
    "change",
    "cause",
    "half by",
    "99 % by",
    "gap 99 %",
    "without owner",
    "with several",
)
WIDTH = 96
NOT_SIMULATED = (
    "Not simulated: retry topics; topics whose queues members share (POP, gRPC); hand-overs of "
    "groups that broadcast; the 500 ms from taking a queue to the first pull (5.0+); messages "
    "that were in flight."
)


def propagate_facts(
    options: PropagateOptions, written: PropagationWritten, seconds: float, run_on: str
) -> dict[str, Any]:
    """The `--json` object; `render_propagate` reads the same.

    Args:
        options: of the run.
        written: what came of it.
        seconds: how long the run took.
        run_on: where it took place, `process` or `spark`.
    """
    return {
        "job": "propagate",
        "status": "OK",
        "exit_code": 0,
        "output": options.output,
        "seeds": options.seeds,
        "first_seed": options.first_seed,
        "handover_seeds": options.handover_seeds,
        **written.facts,
        "rejected": dict(written.rejected),
        "rows": {name: table.rows for name, table in written.tables.items()},
        "seconds": seconds,
        "run_on": run_on,
    }


def render_propagate(facts: Row) -> str:
    """What a person reads: causes, the slowest changes, what to do, what was left out."""
    first, count = facts["first_seed"], facts["seeds"]
    took = f"{duration(facts['seconds'])} {place(facts['run_on'])}"
    lines = [
        f"Propagation in {facts['output']} ({took})",
        f"{count:,} futures (seeds {first:,} to {first + count - 1:,}) of {facts['changes']:,} "
        f"changes in {facts['groups']:,} groups; hand-overs of {_kept(facts)}",
    ]
    if facts["causes"]:
        lines += ["", "Causes, the slowest first"]
        lines += _table(CAUSE_HEADER, [_cause(row) for row in facts["causes"]], text=1)
        lines += ["", "The slowest changes"]
        lines += _table(CHANGE_HEADER, [_change(row) for row in facts["slowest"]], text=3)
        lines += ["", *_legend(), "", "What to do", *_advice(facts["slowest"])]
    if facts["rejected"]:
        lines += ["", "Rejected rows"]
        lines += [f"  {code:<20} {times:,}" for code, times in facts["rejected"].items()]
    return joined([*lines, "", *_left_out(facts)])


def _kept(facts: Row) -> str:
    kept = min(facts["handover_seeds"], facts["seeds"])
    return "none" if not kept else "the first" if kept == 1 else f"the first {kept:,}"


def _cause(row: Row) -> list[str]:
    return [
        row["cause"],
        f"{row['changes']:,}",
        _seconds(row["convergence_ms_p99"]),
        _queue_seconds(row["orphan_queue_seconds"]),
        _queue_seconds(row["double_queue_seconds"]),
    ]


def _change(row: Row) -> list[str]:
    return [
        row["consumer_group"],
        utc(row["change_ms"]),
        row["cause"],
        _seconds(row["convergence_ms_p50"]),
        _seconds(row["convergence_ms_p99"]),
        _seconds(row["gap_ms_p99"]),
        _queue_seconds(row["orphan_queue_seconds"]),
        _queue_seconds(row["double_queue_seconds"]),
    ]


def _legend() -> Iterator[str]:
    text = (
        "`99 % by`: in 99 % of the futures the last queue had moved by then. `gap`: how long a "
        "queue that went from one client to another had neither. `without owner`, `with "
        "several`: queues x seconds, mean of all futures."
    )
    yield from wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _advice(slowest: Sequence[Row]) -> Iterator[str]:
    general = "Expect a change to take as long as `99 % by`, and let alerts wait for it."
    yield f"  {general}"
    for text, kinds in advice_on(row["cause"] for row in slowest).items():
        yield from wrap(f"{', '.join(kinds)}: {text}", WIDTH, initial_indent="  ",
                        subsequent_indent="    ")  # fmt: skip


def _left_out(facts: Row) -> Iterator[str]:
    yield from wrap(NOT_SIMULATED, WIDTH)
    for name, text in (
        ("groups_with_shared_topics", "groups with topics that members share"),
        ("groups_of_unknown_subscriptions", "groups left out: what a member subscribes is unknown"),
        ("groups_that_broadcast", "groups that broadcast (only their convergence counts)"),
    ):
        if facts[name]:
            yield f"  {text}: {facts[name]:,}"


def _seconds(ms: int) -> str:
    return f"{ms / 1_000:,.1f} s"


def _queue_seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, text: int) -> Iterator[str]:
    """A table whose first columns are text, the others numbers."""
    whole = [header, *rows]
    widths = [max(len(row[column]) for row in whole) for column in range(len(header))]
    for row in whole:
        cells = [
            cell.ljust(width) if column < text else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()
