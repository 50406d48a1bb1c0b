"""What a bench reports: figures with their targets, tables, and what was left out."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MORE, LESS = "more", "less"
TIMES = "times"
"""The unit of a ratio, which `make bench-check` compares; seconds it does not."""


@dataclass(frozen=True)
class Figure:
    """One number.

    Attributes:
        name: What it is, as the page says it; the same in every run.
        value: None: it could not be measured.
        unit: `TIMES`, ``s`` (of processor time), ``MiB``, ``exponent``.
        better: `MORE` or `LESS`.
        target: What it should be at least or at most; None: no target.
        steady: False: it varies too much from run to run to be compared with a baseline.
    """

    name: str
    value: float | None
    unit: str = TIMES
    better: str = LESS
    target: float | None = None
    steady: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None: there is none, or no value."""
        if self.target is None or self.value is None:
            return None
        return self.value >= self.target if self.better == MORE else self.value <= self.target


@dataclass(frozen=True)
class Table:
    """Rows as the page shows them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Report:
    """The result of one bench.

    Attributes:
        title: Heading of its section.
        about: What was run, how, and what was asserted.
        figures: Numbers with names of their own.
        tables: All other numbers.
        left_out: What could not be run here, and why.
    """

    title: str
    about: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    left_out: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """As `report_of` reads it."""
        return asdict(self)


def report_of(made: dict[str, Any]) -> Report:
    """The report that `Report.to_json` wrote."""
    return Report(
        title=made["title"],
        about=made["about"],
        figures=tuple(Figure(**one) for one in made["figures"]),
        tables=tuple(
            Table(tuple(one["columns"]), tuple(map(tuple, one["rows"])), one["note"])
            for one in made["tables"]
        ),
        left_out=tuple(made["left_out"]),
    )


def bench_main(run: Callable[..., Report], about: str | None, **defaults: int | float) -> None:
    """The command line of a bench: its numbers as options, the report as JSON on stdout.

    Args:
        run: Takes the options by name.
        about: For ``--help``.
        defaults: The options with their values.
    """
    parser = argparse.ArgumentParser(description=about)
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    print(json.dumps(run(**vars(parser.parse_args())).to_json(), indent=1))


def say(text: str) -> None:
    """To stderr: stdout has the result alone."""
    print(text, file=sys.stderr, flush=True)


def tidy(value: float, digits: int = 3) -> float:
    """Rounded to so many significant digits."""
    return float(f"{value:.{digits}g}")


def read_json(path: Path) -> Any:
    """The JSON of a file."""
    return json.loads(path.read_text())
