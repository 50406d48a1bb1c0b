"""The options of `plan`, checked: every mistake of every file and text is named at once."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.cli.option_values import group_mistakes, whole_number
from rebalance_core.cli.run.input_files import INPUT_FORMATS
from rebalance_core.model.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from rebalance_core.planning.variants import Variants

MOST_SEEDS = 1000
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class PlanOptions(JobOptions):
    """The options of `plan`; ``variants`` is what scenarios, strategies and seeds come to."""

    input: str
    output: str
    variants: "Variants"
    input_format: str | None = None
    group: str | None = None
    queue_rates: str | None = None


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_plan_options` checks them."""
    parser.add_argument("--input", metavar="DIR", help="a folder holding the tables by name")
    parser.add_argument("--input-format", metavar="FORMAT", help="json, csv or parquet")
    parser.add_argument(
        "--scenario",
        metavar="FILE",
        action="extend",
        nargs="+",
        default=[],
        help="what changes, as in conf/scenarios; the baseline, without a change, is always there",
    )
    parser.add_argument(
        "--strategy",
        metavar="TEXT",
        action="append",
        default=[],
        help="a strategy for all; recorded (the default): as they are; league: eight at once; "
        "POP(share_queue_num=N): all queues shared",
    )
    parser.add_argument(
        "--seed", metavar="N", action="append", default=[], help="of random choices; default 0"
    )
    parser.add_argument("--seeds", metavar="N", help="the seeds 0 to N-1")
    parser.add_argument("--group", metavar="PATTERN", help="only these groups: exact, or with *")
    parser.add_argument("--queue-rates", metavar="PATH", help="messages per second of each queue")
    parser.add_argument("--output", metavar="DIR", help="where the tables go; a fresh folder")


def read_plan_options(arguments: argparse.Namespace, argv: tuple[str, ...]) -> PlanOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = [f"--{name} DIR is missing" for name in ("input", "output")
                if not getattr(arguments, name)]  # fmt: skip
    form = arguments.input_format
    if form is not None and form not in INPUT_FORMATS:
        known = ", ".join(INPUT_FORMATS)
        mistakes.append(
            f"--input-format {form}: unknown{did_you_mean(form, INPUT_FORMATS)} (known: {known})"
        )
    mistakes += group_mistakes(arguments.group)
    seeds = _seeds(arguments, mistakes)
    variants = _variants(arguments, seeds, mistakes)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return PlanOptions(
        **common_values(arguments, argv),
        input=arguments.input,
        output=arguments.output,
        variants=variants,
        input_format=None if form is None else INPUT_FORMATS[form],
        group=arguments.group,
        queue_rates=arguments.queue_rates,
    )


def _variants(
    arguments: argparse.Namespace, seeds: tuple[int, ...], mistakes: list[str]
) -> "Variants":
    """Scenarios need numpy, and no other job does before Spark starts: imported here."""
    from rebalance_core.planning.scenario.file import read_scenarios
    from rebalance_core.planning.variants import BASELINE, read_strategies, variants_of

    scenarios = []
    try:
        scenarios = read_scenarios(arguments.scenario)
    except UsageError as error:
        mistakes += str(error).splitlines()
    mistakes += [
        f"--scenario: the name {BASELINE!r} means the history without a change; choose another"
        for scenario in scenarios
        if scenario.name == BASELINE
    ]
    strategies = read_strategies(arguments.strategy, mistakes)
    return variants_of(scenarios, strategies, seeds)


def _seeds(arguments: argparse.Namespace, mistakes: list[str]) -> tuple[int, ...]:
    """The seeds asked for, each once; 0 if none is."""
    seeds = dict.fromkeys(int(text) for text in arguments.seed if _is_seed(text))
    mistakes += [
        f"--seed {text}: not a whole number from 0 to {LARGEST_SEED}"
        for text in arguments.seed
        if not _is_seed(text)
    ]
    mistakes += _seeds_mistakes(arguments)
    if arguments.seeds is not None and not list(_seeds_mistakes(arguments)):
        seeds = dict.fromkeys(range(int(arguments.seeds)))
    return tuple(seeds) or (0,)


def _seeds_mistakes(arguments: argparse.Namespace) -> Iterator[str]:
    text = arguments.seeds
    if text is None:
        return
    if not 1 <= (whole_number(text) or 0) <= MOST_SEEDS:
        yield f"--seeds {text}: not a whole number from 1 to {MOST_SEEDS:,}"
    if arguments.seed:
        yield "--seed and --seeds exclude each other: --seeds 3 is --seed 0 --seed 1 --seed 2"


def _is_seed(text: str) -> bool:
    seed = whole_number(text)
    return seed is not None and 0 <= seed <= LARGEST_SEED
