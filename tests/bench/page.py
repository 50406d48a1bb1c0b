"""`python -m tests.bench.page`: docs/performance.md, from the results that are checked in."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.benches import BENCHES, FULL, LISTS, QUICK
from tests.bench.report import LESS, TIMES, Figure, Report, Table, read_json, report_of

MEASURED = Path(__file__).parent / "measured"
MOST_ROWS = 8
"""Of longer tables the page has every second row, third and so on, the last one among them."""
BUSY = 1.0
"""From this load on a machine was busy with other work when a bench began."""
INTRODUCTION = """\
# Performance

`make docs` generates this page from [tests/bench/measured](../tests/bench/measured), which also \
contains ratios without a target, further tables and the rows that are left out of long tables. \
`make bench` and `make bench-full` run the benches, and `make bench-check` compares the ratios of \
a new run with those on this page. Every bench checks in the same run that its results are \
correct. All jobs read and write Parquet and write all tables. *cpu s* is the processor time of \
the whole process tree, and MiB is the peak memory of one process. Ratios can be compared between \
machines, but seconds cannot. The load in the line below a heading comes from other work on the \
machine; with such a load, wall times are meaningless."""


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole page.

    Args:
        results: By list, what ``python -m tests.bench`` wrote; a list that was never run is absent.
    """
    return "\n".join([INTRODUCTION, "", *_machines(results), *_targets(results),
                      *_failed(results), *_sections(results), *_not_run(results), ""])  # fmt: skip


def _runs(results: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Bench, list and result: the full one of a bench if there is one."""
    for bench in BENCHES:
        for listed in (FULL, QUICK):
            found = results.get(listed, {}).get("benches", {}).get(bench.name)
            if found is not None and found["report"] is not None:
                yield bench.name, listed, found
                break


def _machines(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    known: dict[str, Any] = {}
    for listed, found in results.items():
        facts = {name: one for name, one in found["machine"].items() if known.get(name) != one}
        told = ", ".join(f"{name} {value}" for name, value in facts.items())
        same = "the same, but " if known and told else "the same" if known else ""
        yield f"`make {_target_of(listed)}` was run on: {same}{told}."
        yield ""
        known = found["machine"]


def _targets(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    told = [report_of(found["report"]).figures for _, _, found in _runs(results)]
    figures = [figure for of_bench in told for figure in of_bench if figure.target is not None]
    rows = tuple((one.name, _value(one), _target(one), _verdict(one)) for one in figures)
    yield "## Targets"
    yield ""
    yield from _rows(Table(("figure", "measured", "target", ""), rows))
    yield ""


def _sections(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for _, listed, found in _runs(results):
        report = report_of(found["report"])
        yield f"## {report.title}"
        yield ""
        yield report.about
        yield ""
        load = f", load {found['load before']}" if found["load before"] >= BUSY else ""
        took = f"{found['seconds']:,.4g} s"
        yield f"`{found['command']}` ({listed}), {found['date']}{load}: {took}."
        yield ""
        yield from _body(report)


def _body(report: Report) -> Iterator[str]:
    for table in report.tables[:1]:
        yield from _rows(_shortened(_joined(table)))
        yield ""
        if table.note:
            yield table.note
            yield ""
    for left_out in report.left_out:
        yield f"Left out: {left_out}"
        yield ""


def _not_run(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "## Not measured yet"
    yield ""
    for listed in LISTS:
        found = results.get(listed, {}).get("benches", {})
        missing = [b.name for b in BENCHES if not found.get(b.name, {}).get("report")]
        told = ", ".join(missing) if missing else "nothing"
        yield f"- `make {_target_of(listed)}`: {told}"


def _failed(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for listed, found in results.items():
        for name, one in found["benches"].items():
            if one["error"]:
                yield f"**{name}** of `make {_target_of(listed)}` failed: {one['error']}"
                yield ""


def _rows(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{'---|' * len(table.columns)}"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _shortened(table: Table) -> Table:
    step = -(-len(table.rows) // MOST_ROWS)
    return Table(table.columns, table.rows[::-step][::-1], table.note) if step > 1 else table


def _joined(table: Table) -> Table:
    """The table with columns that hold the same in every row as one."""
    if len(table.rows) < 2:
        return table
    names: dict[tuple[str | float | int | None, ...], list[str]] = {}
    for name, cells in zip(table.columns, zip(*table.rows, strict=True), strict=True):
        names.setdefault(cells, []).append(name)
    heads = tuple(", ".join(alike) for alike in names.values())
    return Table(heads, tuple(zip(*names, strict=True)), table.note)


def _cell(value: str | float | int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{int(value):,}" if value == int(value) else f"{value:,g}"


def _value(figure: Figure) -> str:
    if figure.value is None:
        return "not measured"
    return f"{_cell(figure.value)}{_unit(figure)}"


def _target(figure: Figure) -> str:
    return f"{'≤' if figure.better == LESS else '≥'} {_cell(figure.target)}{_unit(figure)}"


def _unit(figure: Figure) -> str:
    if figure.unit == "s":
        return " cpu s"
    return " x" if figure.unit == TIMES else "" if figure.unit == "exponent" else f" {figure.unit}"


def _verdict(figure: Figure) -> str:
    return {None: "", True: "met", False: "**missed**"}[figure.met]


def _target_of(listed: str) -> str:
    return "bench" if listed == QUICK else "bench-full"


def main() -> None:
    """Print the page."""
    files = {listed: MEASURED / f"{listed}.json" for listed in (QUICK, FULL)}
    print(
        page({listed: read_json(path) for listed, path in files.items() if path.exists()}), end=""
    )


if __name__ == "__main__":
    main()
