"""The command line, read before pyspark is imported: a wrong option costs no 5 seconds of Spark.

Nothing is required or of a type as far as argparse knows: the job checks its options and names all
mistakes at once.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from rebalance_core.cli.job import Job, JobOptions
from rebalance_core.cli.option_values import master_mistakes
from rebalance_core.cli.run_on import AUTO, RUN_ON, run_on_mistakes
from rebalance_core.contracts.paths import is_utf8
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.version import LIBRARY_VERSION


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving, and never guesses from a prefix."""

    def __init__(self, *args: object, **keywords: object) -> None:
        keywords["allow_abbrev"] = False
        super().__init__(*args, **keywords)  # type: ignore[arg-type]  # handed on unread

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """The options that every job has."""
    common = parser.add_argument_group("options of every job")
    common.add_argument("--config", metavar="FILE", action="append", default=[])
    common.add_argument("--set", metavar="KEY=VALUE", action="append", default=[])
    common.add_argument("--json", action="store_true", help="one JSON object on stdout")
    common.add_argument(
        "--dry-run",
        action="store_true",
        help="write nothing; print what a run would do and end as it would",
    )
    common.add_argument("--overwrite", action="store_true", help="replace an earlier result")
    common.add_argument("--break-lock", action="store_true", help="take over from a dead run")
    common.add_argument(
        "--debug", action="store_true", help="whole stack traces, and what Spark prints"
    )
    common.add_argument("--master", metavar="URL", help="Spark master, e.g. local[4]")
    common.add_argument(
        "--run-on",
        metavar="WHERE",
        default=AUTO,
        help="|".join(RUN_ON) + "; auto: Spark for large inputs, and under spark-submit",
    )


def build_parser(jobs: Mapping[str, Job]) -> argparse.ArgumentParser:
    """The parser of `rebalance JOB …`."""
    parser = _Parser(
        prog="rebalance",
        description="Who owns which RocketMQ queue, when, and where it starts to read.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {LIBRARY_VERSION}")
    subparsers = parser.add_subparsers(dest="job", metavar="JOB")
    for job in jobs.values():
        subparser = subparsers.add_parser(job.name, help=job.summary, description=job.summary)
        job.add_options(subparser)
        add_common_options(subparser)
    return parser


def parse_options(argv: Sequence[str], jobs: Mapping[str, Job]) -> tuple[Job, JobOptions]:
    """The job that `argv` names and its options.

    Raises:
        UsageError: a word that is not UTF-8, no or an unknown job, unknown options (each with its
            near miss), or whatever the job finds wrong with the options that it knows.
    """
    if not_utf8 := [word for word in argv if not is_utf8(word)]:
        raise UsageError("\n".join(f"{word!r} is not UTF-8; name another" for word in not_utf8))
    if argv and not argv[0].startswith("-") and argv[0] not in jobs:
        raise UsageError(
            f"unknown job {argv[0]!r}{did_you_mean(argv[0], jobs)} (jobs: {', '.join(jobs)})"
        )
    parser = build_parser(jobs)
    arguments, unknown = parser.parse_known_args(list(argv))
    if arguments.job is None:
        raise UsageError(f"name a job: {', '.join(jobs)}\n{parser.format_usage().strip()}")
    job = jobs[arguments.job]
    if unknown:
        raise UsageError("\n".join(_unknown_options(unknown, job)))
    mistakes = list(master_mistakes(arguments.master))
    mistakes += run_on_mistakes(arguments.run_on, arguments.master)
    try:
        options = job.read_options(arguments, tuple(argv))
    except UsageError as error:
        mistakes.append(str(error))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return job, options


def _unknown_options(unknown: Sequence[str], job: Job) -> Iterator[str]:
    known = option_names(job)
    options = [word for word in unknown if word.startswith("-")]
    for word in options or unknown:
        name = word.partition("=")[0]
        what = "option" if word.startswith("-") else "argument"
        yield f"unknown {what} {name} of {job.name}{did_you_mean(name, known)}"
    yield f"see: rebalance {job.name} --help"


def option_names(job: Job) -> tuple[str, ...]:
    """All options of a job, the common ones too."""
    parser = _Parser(prog=job.name)
    job.add_options(parser)
    add_common_options(parser)
    return tuple(parser._option_string_actions)
