"""The options of `ingest`, checked: every mistake is named at once."""

import argparse
from dataclasses import dataclass

from rebalance_core.cli.job import JobOptions, common_values
from rebalance_core.contracts.paths import is_local
from rebalance_core.model.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class IngestOptions(JobOptions):
    """The options of `ingest`."""

    collection: str
    output: str


def add_ingest_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `read_ingest_options` checks them."""
    parser.add_argument(
        "--collection",
        metavar="DIR",
        help="logs, stores and dumps, laid out as docs/ingest.md says",
    )
    parser.add_argument("--output", metavar="DIR", help="where the tables go; a fresh folder")


def read_ingest_options(arguments: argparse.Namespace, argv: tuple[str, ...]) -> IngestOptions:
    """The options, or `UsageError` naming every mistake."""
    mistakes = [
        f"--{name} DIR is missing"
        for name in ("collection", "output")
        if not getattr(arguments, name)
    ]
    if arguments.collection and not is_local(arguments.collection):
        mistakes.append(
            f"--collection {arguments.collection}: must be a folder that driver and executors "
            "mount; copy it there first"
        )
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return IngestOptions(
        **common_values(arguments, argv), collection=arguments.collection, output=arguments.output
    )
