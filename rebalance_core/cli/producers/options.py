"""The options of `producers`, checked: every mistake is named at once."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.cli.run.input_files import INPUT_FORMATS
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.versions import Version, parse_version

if TYPE_CHECKING:
    from rebalance_core.producers.model import ProducerModel

BOTH_GENERATIONS = ("4.9", "5.3")
RECORDED_VERSION = "5.3"


@dataclass(frozen=True, kw_only=True)
class ProducersOptions(JobOptions):
    """The options of `producers`: a folder of recorded results, or a model."""

    output: str
    versions: tuple[Version, ...]
    """of a model: to compare; of results: the one that is assumed"""
    input: str | None = None
    model_file: str | None = None
    model: "ProducerModel | None" = None
    input_format: str | None = None


def add_producers_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_producers_options` checks them."""
    parser.add_argument("--model", metavar="FILE", help="brokers and producers to simulate, TOML")
    parser.add_argument(
        "--input",
        metavar="DIR",
        help="instead: a folder with send_results and, to know the brokers, cluster_events",
    )
    parser.add_argument("--input-format", metavar="FORMAT", help="json, csv or parquet")
    parser.add_argument(
        "--client-version",
        metavar="VERSION",
        action="append",
        default=[],
        help="compare with this version (repeatable; default 4.9 and 5.3); with --input: assume it",
    )
    parser.add_argument("--output", metavar="DIR", help="where the tables go; a fresh folder")


def read_producers_options(
    arguments: argparse.Namespace, argv: tuple[str, ...]
) -> ProducersOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = [] if arguments.output else ["--output DIR is missing"]
    if (arguments.input is None) == (arguments.model is None):
        mistakes.append("one of --model FILE and --input DIR is needed, and not both")
    form = arguments.input_format
    if form is not None and form not in INPUT_FORMATS:
        known = ", ".join(INPUT_FORMATS)
        hint = did_you_mean(form, INPUT_FORMATS)
        mistakes.append(f"--input-format {form}: unknown{hint} (known: {known})")
    if arguments.input is not None and len(arguments.client_version) > 1:
        mistakes.append("--client-version: --input takes one, the version of the recorded clients")
    versions = _versions(arguments, mistakes)
    model = None
    if arguments.model is not None:
        model = _model(arguments.model, mistakes)
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return ProducersOptions(
        **common_values(arguments, argv),
        output=arguments.output,
        versions=versions,
        input=arguments.input,
        model_file=arguments.model,
        model=model,
        input_format=None if form is None else INPUT_FORMATS[form],
    )


def _versions(arguments: argparse.Namespace, mistakes: list[str]) -> tuple[Version, ...]:
    default = BOTH_GENERATIONS if arguments.input is None else (RECORDED_VERSION,)
    versions = []
    for text in arguments.client_version or default:
        try:
            versions.append(parse_version(text))
        except UsageError as error:
            mistakes.append(f"--client-version {text}: {error}")
    return tuple(dict.fromkeys(versions))


def _model(path: str, mistakes: list[str]) -> "ProducerModel | None":
    """Models are read by `planning`, which needs numpy: imported here."""
    from rebalance_core.planning.producer_model import read_model

    try:
        return read_model(path)
    except UsageError as error:
        mistakes += str(error).splitlines()
    return None
