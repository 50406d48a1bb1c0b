"""The existing jobs and their command lines, which are parsed before anything heavy is imported.

A new job is an entry here, a class in `job_options` or `planning_options`, and a module of the same
name with `run`. That module may import pyspark, which takes seconds and need not be installed for
`--help`.
"""

import argparse
import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from textwrap import fill
from types import ModuleType
from typing import Any, NoReturn

from rebalance_core.cli import job_options, planning_options
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.terminal import ExitCode, discard, nothing_on_stdout
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.version import LIBRARY_VERSION

OBJECTS_A_COLLECTION = 100_000
"""The number of new objects after which Python collects cyclic garbage, instead of 700.

Jobs make millions of objects but hardly any cycles; with 700, collection takes a tenth of an
ingest.
"""


@dataclass(frozen=True)
class JobReport:
    """A job's results for stdout, as text and as facts for JSON."""

    text: str
    facts: Mapping[str, Any]
    exit_code: int = ExitCode.OK


@contextmanager
def _few_collections() -> Iterator[None]:
    """Make Python collect cyclic garbage only after `OBJECTS_A_COLLECTION` new objects."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS_A_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _NoPandas:
    """A module finder that hides pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise for pandas; leave all other modules to later finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _module(job: str) -> ModuleType:
    return import_module(f"rebalance_core.cli.{job}")


def _without_pandas(job: str) -> ModuleType:
    """Import a job's module, hiding pandas from pyarrow.

    pyarrow looks for pandas once, at its first value, and takes a third of a second to import it.
    If a table is converted later, pyarrow imports pandas then; but it no longer recognises frames
    as arguments, so this is only for a process that is the job's own.
    """
    sys.meta_path.insert(0, _NoPandas)
    try:
        module = _module(job)
        if "pyarrow" in sys.modules:
            sys.modules["pyarrow"].scalar(0)
    finally:
        sys.meta_path.remove(_NoPandas)
    return module


@dataclass(frozen=True)
class Job:
    """A job, with its options and two example command lines."""

    name: str
    options: type[JobOptions]
    summary: str
    examples: tuple[str, ...]

    def run(self, options: JobOptions, own_process: bool = False) -> JobReport:
        """Import the job's module and run it; a process of its own starts without pandas."""
        name = self.name.replace("-", "_")
        with _few_collections():
            module = _without_pandas(name) if own_process else _module(name)
            report: JobReport = module.run(options)
        return report


def _job(name: str, options: type[JobOptions], summary: str, *examples: str) -> tuple[str, Job]:
    return name, Job(name, options, summary, examples)


JOBS: dict[str, Job] = dict(
    (
        _job(
            "simulate",
            job_options.SimulateOptions,
            "replay events to show who owned each queue when, and where each owner started to read",
            "--input tables --output out/ledger",
            "--input tables --output out/orders --group 'order-*' --from 2026-11-21T03:00:00Z",
        ),
        _job(
            "generate",
            job_options.GenerateOptions,
            "generate a random fleet from a seed, as input tables for tests, benchmarks and plans",
            "--groups 100 --output out/fleet",
            "--groups 1000 --days 7 --seed 3 --output out/fleet",
        ),
        _job(
            "ingest",
            job_options.IngestOptions,
            "convert logs, JSON stores and mqadmin dumps into the input tables",
            "--collection collected --output out/tables",
            "--collection collected --output out/tables --set assume.time_zone=Asia/Shanghai",
        ),
        _job(
            "audit",
            job_options.AuditOptions,
            "compare live ownership with the prediction and report what is wrong; exit 3 if "
            "anything is",
            "--collection collected --output out/tonight --write-accepted known.toml",
            "--collection collected --output out/tonight --accepted known.toml --previous out/last",
        ),
        _job(
            "plan",
            planning_options.PlanOptions,
            "apply scenarios and strategies to the same history, and compare movement and balance",
            "--input tables --scenario add-consumers --output out/plan",
            "--input tables --strategy AVG --strategy league --seeds 5 --output out/plan",
        ),
        _job(
            "size",
            planning_options.SizeOptions,
            "compute how many members and queues each group needs, even with a member or broker "
            "missing",
            "--input tables --service-time 5 --output out/sizes",
            "--input tables --service-time 5 --growth 3 --catch-up 2m --output out/sizes",
        ),
        _job(
            "autoscale",
            planning_options.AutoscaleOptions,
            "replay scalers (HPA, KEDA) against rebalancing: lag, late messages, moves and pod "
            "hours of each policy",
            "--input tables --policy hpa by-rate --service-time 100 --output out/scaled",
            "--input tables --arrivals week.parquet --policy hpa --search "
            "--max-late 1000 --fail-on budget --output out/scaled",
        ),
        _job(
            "read-metrics",
            planning_options.ReadMetricsOptions,
            "convert Prometheus answers to range queries into the tables that autoscale reads "
            "besides its input: message arrivals, service times and replicas",
            "--answer week.json --output out/metrics",
            "--answer in.json lag.json replicas.json --deployment checkout=shop/checkout-consumer "
            "--output out/metrics",
        ),
        _job(
            "producers",
            planning_options.ProducersOptions,
            "show which queues producers write to while brokers are slow or down, with and "
            "without fault tolerance",
            "--model outage --output out/producers",
            "--input tables --client-version 4.9 --output out/producers",
        ),
        _job(
            "propagate",
            planning_options.PropagateOptions,
            "simulate many futures of each change: how long it takes to spread through a group, "
            "and how long queues have no owner or two owners meanwhile",
            "--input tables --output out/spread",
            "--input tables --output out/spread --seeds 100 --group 'order-*' --lost-notices 0.1",
        ),
        _job(
            "fidelity",
            planning_options.FidelityOptions,
            "compare what your clients logged about each change, and the duration of their "
            "requests, with simulated futures of the same changes",
            "--input out/tonight --output out/fidelity",
            "--input out/tonight --fit out/monday out/tuesday --output out/fidelity",
        ),
        _job(
            "demo",
            job_options.DemoOptions,
            "write a recorded cluster into a folder, audit it, and show the findings and the next "
            "steps",
            "",
            "out/demo",
        ),
        _job(
            "collect",
            job_options.CollectOptions,
            "copy a cluster's logs and stores and query it about every group and topic, for "
            "`ingest` and `audit`",
            "--init --name-server 10.0.0.1:9876 --cluster DefaultCluster",
            "--sources sources.txt --cluster DefaultCluster --output collected --days 2",
        ),
        _job(
            "publish",
            job_options.PublishOptions,
            "publish the tables of a finished run to a catalog, with the run's id and night; a "
            "repeated night replaces its rows; on Spark",
            "--run out/ledger --to lake.rebalance --keep 35d",
            "--run s3://bucket/night --to lake.rebalance --prefix ledger_",
        ),
        _job(
            "history",
            job_options.HistoryOptions,
            "combine nightly audits: show which findings are new, gone, not checked, or recurring",
            "--runs out/nights --output out/history",
            "--runs out/nights --output out/history --owners owners.toml",
        ),
        _job(
            "night",
            job_options.NightOptions,
            "run the nightly loop: collect, audit against the last good night, update the "
            "history, and remove old nights; the exit code is the audit's",
            "--sources sources.txt --cluster DefaultCluster --runs /srv/rebalance/runs",
            "--sources sources.txt --runs runs --accepted known.toml --owners owners.toml "
            "--textfiles /var/lib/node_exporter",
        ),
        _job(
            "read",
            job_options.ReadOptions,
            "show what a single file contains, such as a pasted answer from mqadmin or the "
            "dashboard, a store or a log; exit 3 if a finding is above INFO, if mqadmin or a "
            "request failed, or if an answer or store is incomplete; never uses Spark",
            "progress.txt",
            "--group orders - < pasted.txt",
        ),
        _job(
            "explain",
            job_options.ExplainOptions,
            "explain why a client owns a queue at a given time, or what a client's pass does "
            "step by step; never uses Spark",
            "--ledger out/ledger --group orders --queue orders/broker-a/3 --at 1795231740000",
            "--ledger out/ledger --client 10.0.0.2@20078#2063471432709 "
            "--at 2026-11-21T03:29:00Z --json",
        ),
    )
)


class _Parser(argparse.ArgumentParser):
    """An argparse parser that raises instead of exiting, and does not accept prefixes of
    options.
    """

    def __init__(self, *args: object, **keywords: object) -> None:
        keywords["allow_abbrev"] = False
        super().__init__(*args, **keywords)  # type: ignore[arg-type]  # handed on unread

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")

    def _print_message(self, message: str, file: Any = None) -> None:
        try:
            super()._print_message(message, file)
        except BrokenPipeError:  # which argparse of Python 3.11.2 does not ignore
            discard(file or sys.stderr)


def build_parser(jobs: Mapping[str, Job], chosen: str | None) -> argparse.ArgumentParser:
    """Return the parser of `rebalance JOB …`; only the chosen job has its options."""
    parser = _Parser(
        prog="rebalance",
        description="Show who owns which RocketMQ queue, when, and where each starts to read.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {LIBRARY_VERSION}")
    subparsers = parser.add_subparsers(dest="job", metavar="JOB")
    for job in jobs.values():
        examples = [f"  rebalance {job.name} {words}" for words in job.examples]
        subparser = subparsers.add_parser(
            job.name,
            help=job.summary,
            description=fill(job.summary, 78),
            epilog="\n".join(["examples:", *examples]) if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if job.name == chosen:
            job.options.add_to(subparser)
    return parser


def parse_options(argv: Sequence[str], jobs: Mapping[str, Job]) -> tuple[Job, JobOptions]:
    """Return the job that `argv` names, and its options.

    Raises:
        UsageError: a word is not UTF-8, the job is missing or unknown, options are unknown (each
            with a suggestion), or an option's value is invalid.
    """
    if not_utf8 := [word for word in argv if not _is_utf8(word)]:
        raise UsageError("\n".join(f"{word!r} is not UTF-8; name another" for word in not_utf8))
    if argv and not argv[0].startswith("-") and argv[0] not in jobs:
        raise UsageError(
            f"unknown job {argv[0]!r}{did_you_mean(argv[0], jobs)} (jobs: {', '.join(jobs)})"
        )
    parser = build_parser(jobs, next((word for word in argv if word in jobs), None))
    arguments, unknown = parser.parse_known_args(list(argv))
    if arguments.job is None:
        raise UsageError(f"name a job: {', '.join(jobs)}\n{parser.format_usage().strip()}")
    job = jobs[arguments.job]
    if unknown:
        raise UsageError("\n".join(_unknown_options(unknown, job)))
    if arguments.config or arguments.set:
        from rebalance_core.cli.settings import add_plugins, allowed_packages

        # options may name plugins
        allowed = allowed_packages(arguments.allow_plugins or ())
        with nothing_on_stdout():
            add_plugins(arguments.config or (), arguments.set or (), allowed)
    return job, job.options.read(arguments, tuple(argv))


def _is_utf8(word: str) -> bool:
    return word.encode(errors="replace") == word.encode(errors="surrogatepass")


def _unknown_options(unknown: Sequence[str], job: Job) -> Iterator[str]:
    valid = option_names(job)
    options = [word for word in unknown if word.startswith("-")]
    for word in options or unknown:
        name = word.partition("=")[0]
        what = "option" if word.startswith("-") else "argument"
        yield f"unknown {what} {name} of {job.name}{did_you_mean(name, valid)}"
    yield f"see: rebalance {job.name} --help"


def option_names(job: Job) -> tuple[str, ...]:
    """Return all options of a job, including the options of every job."""
    parser = _Parser(prog=job.name)
    job.options.add_to(parser)
    return tuple(parser._option_string_actions)
