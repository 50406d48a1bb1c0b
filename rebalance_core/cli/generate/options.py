"""The options of `generate`, checked: every mistake is named at once."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.cli.option_values import whole_number
from rebalance_core.model.errors import UsageError
from rebalance_core.synthetic.fleet import RANGES

NUMBERS = ("groups", "days", "seed")


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(JobOptions):
    """The options of `generate`."""

    groups: int
    days: int
    seed: int
    output: str


def add_generate_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_generate_options` checks them."""
    parser.add_argument("--groups", metavar="N", help="how many consumer groups")
    parser.add_argument("--days", metavar="D", default="1", help="how long; default 1")
    parser.add_argument("--seed", metavar="S", default="0", help="same seed, same rows; default 0")
    parser.add_argument("--output", metavar="DIR", help="where the tables go; a fresh folder")


def read_generate_options(arguments: argparse.Namespace, argv: tuple[str, ...]) -> GenerateOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = [mistake for name in NUMBERS for mistake in _number_mistakes(arguments, name)]
    if not arguments.output:
        mistakes.append("--output DIR is missing")
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return GenerateOptions(
        **common_values(arguments, argv),
        groups=int(arguments.groups),
        days=int(arguments.days),
        seed=int(arguments.seed),
        output=arguments.output,
    )


def _number_mistakes(arguments: argparse.Namespace, name: str) -> Iterator[str]:
    text, (low, high) = getattr(arguments, name), RANGES[name]
    number = None if text is None else whole_number(text)
    if text is None:
        yield f"--{name} is missing: a whole number from {low} to {high}"
    elif number is None:
        yield f"--{name} {text}: not a whole number"
    elif not low <= number <= high:
        yield f"--{name} {text}: not from {low} to {high}"
