"""The options of `propagate`, checked: every mistake is named at once."""

import argparse
from dataclasses import dataclass

from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.cli.option_values import group_mistakes, whole_number
from rebalance_core.cli.run.input_files import INPUT_FORMATS
from rebalance_core.model.errors import UsageError, did_you_mean

SEEDS, HANDOVER_SEEDS = 1_000, 10
"""Defaults: p99 then has ten futures beyond it; ten can be looked at one by one."""
PHASES = ("log", "random")
LAST_SEED = 2**62
LAST_LATE_MS = 24 * 3_600_000


@dataclass(frozen=True, kw_only=True)
class PropagateOptions(JobOptions):
    """The options of `propagate`; None where the settings decide."""

    input: str
    output: str
    input_format: str | None = None
    seeds: int = SEEDS
    first_seed: int = 0
    handover_seeds: int = HANDOVER_SEEDS
    group: str | None = None
    phases: str = PHASES[0]
    exact_times: bool = False
    lost_notices: float = 0.0
    late_share: float = 0.0
    late_ms: int = 0
    concurrent_heartbeat: bool = False
    on_bad_rows: str | None = None
    max_bad_share: str | None = None


def add_propagate_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_propagate_options` checks them."""
    parser.add_argument("--input", metavar="DIR", help="a folder holding the tables by name")
    parser.add_argument("--input-format", metavar="FORMAT", help="json, csv or parquet")
    parser.add_argument("--output", metavar="DIR", help="where the tables go; a fresh folder")
    parser.add_argument("--group", metavar="PATTERN", help="only these groups: exact, or with *")
    seeds = parser.add_argument_group("futures")
    seeds.add_argument("--seeds", metavar="N", help=f"how many futures; default {SEEDS:,}")
    seeds.add_argument("--first-seed", metavar="N", help="number of the first; default 0")
    seeds.add_argument(
        "--handover-seeds",
        metavar="K",
        help=f"rows of handovers for the first K futures; default {HANDOVER_SEEDS}",
    )
    clocks = parser.add_argument_group("what is assumed")
    clocks.add_argument(
        "--phases",
        metavar="HOW",
        default=PHASES[0],
        help="log: timers run from each join, as logged; random: nothing is known of them",
    )
    clocks.add_argument(
        "--exact-times",
        action="store_true",
        help="events at whole seconds happened there, not within the second that follows",
    )
    clocks.add_argument(
        "--lost-notices", metavar="X", help="share of CHANGE notices that get lost, 0 to 1"
    )
    clocks.add_argument(
        "--late-name-server",
        metavar="X:MS",
        help="share of clients whose name server learns of routes later, and by how much",
    )
    clocks.add_argument(
        "--concurrent-heartbeat",
        action="store_true",
        help="clients have enableConcurrentHeartbeat (5.5): a dead host delays no timer",
    )
    rows = parser.add_argument_group("bad rows")
    rows.add_argument("--on-bad-rows", metavar="HOW", help="quarantine|fail")
    rows.add_argument("--max-bad-share", metavar="X", help="refuse an input with more, 0 to 1")


def read_propagate_options(
    arguments: argparse.Namespace, argv: tuple[str, ...]
) -> PropagateOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = [
        f"{option} DIR is missing"
        for option, value in (("--input", arguments.input), ("--output", arguments.output))
        if not value
    ]
    mistakes += group_mistakes(arguments.group)
    for option, value, valid in (
        ("--input-format", arguments.input_format, tuple(INPUT_FORMATS)),
        ("--phases", arguments.phases, PHASES),
    ):
        if value is not None and value not in valid:
            hint = did_you_mean(value, valid)
            mistakes.append(f"{option} {value}: one of {', '.join(valid)}{hint}")
    seeds = _number("--seeds", arguments.seeds, SEEDS, 1, mistakes)
    first = _number("--first-seed", arguments.first_seed, 0, 0, mistakes)
    kept = _number("--handover-seeds", arguments.handover_seeds, HANDOVER_SEEDS, 0, mistakes)
    lost = _share("--lost-notices", arguments.lost_notices, mistakes)
    late_share, late_ms = _late(arguments.late_name_server, mistakes)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    form = arguments.input_format
    return PropagateOptions(
        **common_values(arguments, argv),
        input=arguments.input,
        output=arguments.output,
        input_format=None if form is None else INPUT_FORMATS[form],
        seeds=seeds,
        first_seed=first,
        handover_seeds=kept,
        group=arguments.group,
        phases=arguments.phases,
        exact_times=arguments.exact_times,
        lost_notices=lost,
        late_share=late_share,
        late_ms=late_ms,
        concurrent_heartbeat=arguments.concurrent_heartbeat,
        on_bad_rows=arguments.on_bad_rows,
        max_bad_share=arguments.max_bad_share,
    )


def _number(option: str, text: str | None, default: int, least: int, mistakes: list[str]) -> int:
    if text is None:
        return default
    number = whole_number(text)
    if number is None or not least <= number <= LAST_SEED:
        mistakes.append(f"{option} {text}: not a whole number of {least} or more")
        return default
    return number


def _share(option: str, text: str | None, mistakes: list[str]) -> float:
    if text is None:
        return 0.0
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        mistakes.append(f"{option} {text}: not a share from 0 to 1")
        return 0.0
    return share


def _late(text: str | None, mistakes: list[str]) -> tuple[float, int]:
    if text is None:
        return 0.0, 0
    share, colon, ms = text.partition(":")
    late_ms = whole_number(ms)
    if not colon or late_ms is None or not 0 <= late_ms <= LAST_LATE_MS:
        mistakes.append(
            f"--late-name-server {text}: expected SHARE:MS, at most a day, e.g. 0.5:30000"
        )
        return 0.0, 0
    return _share("--late-name-server", share, mistakes), late_ms
