"""The options of `simulate`, checked: every mistake is named at once."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, fields

from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.cli.option_values import group_mistakes, instant, strategy_mistakes
from rebalance_core.cli.run.input_files import INPUT_FORMATS
from rebalance_core.model.errors import UsageError, did_you_mean

TABLE_OPTIONS = ("events", "consumer_groups", "queue_offsets", "committed_offsets")
ENGINES = ("vectorized", "reference")


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(JobOptions):
    """The options of `simulate`; None where the settings or the engine decide."""

    output: str
    input: str | None = None
    events: str | None = None
    consumer_groups: str | None = None
    queue_offsets: str | None = None
    committed_offsets: str | None = None
    input_format: str | None = None
    engine: str = "vectorized"
    strategy: str | None = None
    on_bad_rows: str | None = None
    max_bad_share: str | None = None
    group: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None


def add_simulate_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_simulate_options` checks them."""
    tables = parser.add_argument_group("input: either the folder or the tables one by one")
    tables.add_argument("--input", metavar="DIR", help="a folder holding the tables by name")
    for name in TABLE_OPTIONS:
        tables.add_argument("--" + name.replace("_", "-"), metavar="PATH")
    tables.add_argument(
        "--input-format", metavar="FORMAT", help="json, csv or parquet; default: by suffix"
    )
    parser.add_argument("--output", metavar="DIR", help="where the ledger goes; a fresh folder")
    parser.add_argument("--engine", metavar="ENGINE", default="vectorized", help="|".join(ENGINES))
    parser.add_argument("--strategy", metavar="TEXT", help="instead of every group's own")
    parser.add_argument("--on-bad-rows", metavar="HOW", help="quarantine|fail")
    parser.add_argument("--max-bad-share", metavar="X", help="refuse an input with more, 0 to 1")
    parser.add_argument("--group", metavar="PATTERN", help="only these groups: exact, or with *")
    parser.add_argument("--from", metavar="TIME", dest="from_ms", help="only rows from then on")
    parser.add_argument(
        "--to",
        metavar="TIME",
        dest="to_ms",
        help="only rows before then; epoch milliseconds or RFC 3339",
    )


def read_simulate_options(arguments: argparse.Namespace, argv: tuple[str, ...]) -> SimulateOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = [
        *_input_mistakes(arguments),
        *_choice_mistakes(arguments),
        *strategy_mistakes(arguments.strategy),
        *group_mistakes(arguments.group),
    ]
    times = {}
    for option, name in (("--from", "from_ms"), ("--to", "to_ms")):
        text = getattr(arguments, name)
        try:
            times[name] = None if text is None else instant(text)
        except ValueError as error:
            mistakes.append(f"{option} {text}: {error}")
    start, end = times.get("from_ms"), times.get("to_ms")
    if start is not None and end is not None and end <= start:
        mistakes.append(f"--to {end} is not after --from {start}")
    if mistakes:
        raise UsageError("\n".join(mistakes))
    own = {field.name for field in fields(SimulateOptions)} - {f.name for f in fields(JobOptions)}
    values = {name: getattr(arguments, name) for name in own} | times
    if values["input_format"]:
        values["input_format"] = INPUT_FORMATS[values["input_format"]]
    return SimulateOptions(**common_values(arguments, argv), **values)


def _input_mistakes(arguments: argparse.Namespace) -> Iterator[str]:
    given = [name for name in TABLE_OPTIONS if getattr(arguments, name) is not None]
    if arguments.input is not None and given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        yield f"--input and {options} exclude each other: the folder names all tables"
    if arguments.input is None and arguments.events is None:
        yield "the input is missing: --input DIR, or at least --events PATH"
    if not arguments.output:
        yield "--output DIR is missing"


def _choice_mistakes(arguments: argparse.Namespace) -> Iterator[str]:
    choices = {"engine": ENGINES, "input_format": tuple(INPUT_FORMATS)}
    for name, valid in choices.items():
        value = getattr(arguments, name)
        if value is not None and value not in valid:
            option = "--" + name.replace("_", "-")
            yield f"{option} {value}: one of {', '.join(valid)}{did_you_mean(value, valid)}"
