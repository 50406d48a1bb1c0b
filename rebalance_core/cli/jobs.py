"""The jobs that exist. A new one is an entry here, a module with its options and one with its run.

A job's run may need pyspark, which takes seconds to import and need not be installed to ask for
help, so it is imported once the command line is read.
"""

from rebalance_core.cli.audit.options import AuditOptions, add_audit_options, read_audit_options
from rebalance_core.cli.explain.options import (
    ExplainOptions,
    add_explain_options,
    read_explain_options,
)
from rebalance_core.cli.generate.options import (
    GenerateOptions,
    add_generate_options,
    read_generate_options,
)
from rebalance_core.cli.ingest.options import (
    IngestOptions,
    add_ingest_options,
    read_ingest_options,
)
from rebalance_core.cli.job import Job, JobReport
from rebalance_core.cli.plan.options import PlanOptions, add_plan_options, read_plan_options
from rebalance_core.cli.producers.options import (
    ProducersOptions,
    add_producers_options,
    read_producers_options,
)
from rebalance_core.cli.propagate.options import (
    PropagateOptions,
    add_propagate_options,
    read_propagate_options,
)
from rebalance_core.cli.simulate.options import (
    SimulateOptions,
    add_simulate_options,
    read_simulate_options,
)


def _simulate(options: SimulateOptions) -> JobReport:
    from rebalance_core.cli.simulate.job import run_simulate

    return run_simulate(options)


def _generate(options: GenerateOptions) -> JobReport:
    from rebalance_core.cli.generate.job import run_generate

    return run_generate(options)


def _ingest(options: IngestOptions) -> JobReport:
    from rebalance_core.cli.ingest.job import run_ingest

    return run_ingest(options)


def _audit(options: AuditOptions) -> JobReport:
    from rebalance_core.cli.audit.job import run_audit

    return run_audit(options)


def _plan(options: PlanOptions) -> JobReport:
    from rebalance_core.cli.plan.job import run_plan

    return run_plan(options)


def _producers(options: ProducersOptions) -> JobReport:
    from rebalance_core.cli.producers.job import run_producers

    return run_producers(options)


def _propagate(options: PropagateOptions) -> JobReport:
    from rebalance_core.cli.propagate.job import run_propagate

    return run_propagate(options)


def _explain(options: ExplainOptions) -> JobReport:
    from rebalance_core.cli.explain.job import run_explain

    return run_explain(options)


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            "simulate",
            "replay the events: who owned each queue when, and where it started to read",
            add_simulate_options,
            read_simulate_options,
            _simulate,
        ),
        Job(
            "generate",
            "make up a fleet from a seed: input tables for tests, benchmarks and plans",
            add_generate_options,
            read_generate_options,
            _generate,
        ),
        Job(
            "ingest",
            "read what operators have (logs, JSON stores, mqadmin dumps) into the input tables",
            add_ingest_options,
            read_ingest_options,
            _ingest,
        ),
        Job(
            "audit",
            "compare live ownership with the predicted one and name what is wrong; exit 3 if it is",
            add_audit_options,
            read_audit_options,
            _audit,
        ),
        Job(
            "plan",
            "what if: scenarios and strategies over the same history, movement beside balance",
            add_plan_options,
            read_plan_options,
            _plan,
        ),
        Job(
            "producers",
            "which queues producers write to while brokers are slow or gone, with and without "
            "fault tolerance",
            add_producers_options,
            read_producers_options,
            _producers,
        ),
        Job(
            "propagate",
            "how long a change takes to spread through a group, and what it costs meanwhile: "
            "queues without an owner or with two, over many simulated futures",
            add_propagate_options,
            read_propagate_options,
            _propagate,
        ),
        Job(
            "explain",
            "why a queue is with this client at this time: lists, formula, offset rule; no Spark",
            add_explain_options,
            read_explain_options,
            _explain,
        ),
    )
}
