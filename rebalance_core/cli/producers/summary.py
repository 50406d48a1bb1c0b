"""The summary of a run of `producers`, for a person and for a program."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalance_core.cli.printed import duration, place
from rebalance_core.cli.producers.options import ProducersOptions
from rebalance_core.cli.terminal import joined
from rebalance_core.contracts.producers import PRODUCER_OUTCOMES, PRODUCER_SHARES
from rebalance_core.engine.table_writer import ProducersWritten

Row = Mapping[str, Any]
HEADER = ("client", "sends", "failed", "held back", "mean wait", "busiest queue", "shares")
RECORDED_HEADER = ("broker", "attempts", "share", "slow", "errors", "though avoided")
_ON, _OFF = "fault tolerance", "default"


def producers_facts(
    options: ProducersOptions, written: ProducersWritten, seconds: float, run_on: str
) -> dict[str, Any]:
    """The `--json` object; `render_producers` reads the same.

    Args:
        options: of the run.
        written: what came of it.
        seconds: how long the run took.
        run_on: where it took place, `process` or `spark`.
    """
    return {
        "job": "producers",
        "status": "OK",
        "exit_code": 0,
        "output": options.output,
        "model": None if options.model is None else options.model.name,
        "outcomes": written.answers[PRODUCER_OUTCOMES.name].to_pylist(),
        "shares": written.answers[PRODUCER_SHARES.name].to_pylist(),
        "rejected": dict(written.rejected),
        "rows": {name: table.rows for name, table in written.tables.items()},
        "seconds": seconds,
        "run_on": run_on,
    }


def render_producers(facts: Row) -> str:
    """What a person reads: a table for each group and phase, or for each recorded topic."""
    took = f"{duration(facts['seconds'])} {place(facts['run_on'])}"
    lines = [f"Producers in {facts['output']} ({took})"]
    for (group, topic), rows in _grouped(facts["outcomes"], ("producer_group", "topic")):
        for (_, phase), of_phase in _grouped(rows, ("from_ms", "phase")):
            seconds = (of_phase[0]["to_ms"] - of_phase[0]["from_ms"]) / 1000
            lines += ["", f"{group} to {topic}: {phase}, {seconds:,.0f} s"]
            lines += _table(HEADER, [_cells(row, facts["shares"]) for row in of_phase])
            lines += _recoveries(of_phase, facts["shares"])
    if not facts["outcomes"]:
        for (group, topic), rows in _grouped(facts["shares"], ("producer_group", "topic")):
            lines += ["", f"{group} to {topic}, results as recorded"]
            lines += _table(RECORDED_HEADER, [_recorded(row) for row in rows])
    if facts["rejected"]:
        lines += ["", "Rejected rows"]
        lines += [f"  {code:<20} {times:,}" for code, times in facts["rejected"].items()]
    return joined(lines)


def _grouped(
    rows: Sequence[Row], names: tuple[str, ...]
) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from sorted(groups.items(), key=lambda group: group[0])


def _cells(row: Row, shares: Sequence[Row]) -> list[str]:
    wait, peak = row["mean_wait_ms"], row["peak_queue_ratio"]
    return [
        _client(row),
        f"{row['sends']:,}",
        f"{row['failed']:,}",
        f"{row['held_back']:,}",
        "-" if wait is None else f"{wait:,.1f} ms",
        "-" if peak is None else f"{peak:.2f} x mean",
        ", ".join(f"{one['broker_name']} {_percent(one['share'])}" for one in _of(row, shares)),
    ]


def _of(row: Row, shares: Sequence[Row]) -> list[Row]:
    """The shares of an outcome."""
    names = (
        "cluster",
        "producer_group",
        "topic",
        "client_version",
        "fault_tolerance",
        "from_ms",
    )
    return [one for one in shares if all(one[name] == row[name] for name in names)]


def _recoveries(rows: Sequence[Row], shares: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        for one in _of(row, shares):
            if one["not_recovered"] is None:
                continue
            back = row["producers"] - one["not_recovered"]
            time = "" if not back else f" after {one['recovery_ms'] / 1000:,.1f} s at the latest"
            yield (
                f"  {_client(row)}: {back:,} of {row['producers']:,} producers chose "
                f"{one['broker_name']} again{time}"
            )


def _client(row: Row) -> str:
    return f"{row['client_version']} {_ON if row['fault_tolerance'] else _OFF}"


def _recorded(row: Row) -> list[str]:
    return [
        row["broker_name"],
        f"{row['attempts']:,}",
        _percent(row["share"]),
        f"{row['slow']:,}",
        f"{row['errors']:,}",
        f"{row['avoided']:,}",
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    whole = [header, *rows]
    widths = [max(len(row[column]) for row in whole) for column in range(len(header))]
    for row in whole:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        yield "  " + "  ".join([*cells, row[-1]]).rstrip()
