"""The jobs that exist. A new one is a line here, a module with its options and one with its run."""

from rebalance_core.cli.audit.job import run_audit
from rebalance_core.cli.audit.options import add_audit_options, read_audit_options
from rebalance_core.cli.explain.job import run_explain
from rebalance_core.cli.explain.options import add_explain_options, read_explain_options
from rebalance_core.cli.generate.job import run_generate
from rebalance_core.cli.generate.options import add_generate_options, read_generate_options
from rebalance_core.cli.ingest.job import run_ingest
from rebalance_core.cli.ingest.options import add_ingest_options, read_ingest_options
from rebalance_core.cli.job import Job
from rebalance_core.cli.plan.job import run_plan
from rebalance_core.cli.plan.options import add_plan_options, read_plan_options
from rebalance_core.cli.simulate.job import run_simulate
from rebalance_core.cli.simulate.options import add_simulate_options, read_simulate_options

JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            "simulate",
            "replay the events: who owned each queue when, and where it started to read",
            add_simulate_options,
            read_simulate_options,
            run_simulate,
        ),
        Job(
            "generate",
            "make up a fleet from a seed: input tables for tests, benchmarks and plans",
            add_generate_options,
            read_generate_options,
            run_generate,
        ),
        Job(
            "ingest",
            "read what operators have (logs, JSON stores, mqadmin dumps) into the input tables",
            add_ingest_options,
            read_ingest_options,
            run_ingest,
        ),
        Job(
            "audit",
            "compare live ownership with the predicted one and name what is wrong; exit 3 if it is",
            add_audit_options,
            read_audit_options,
            run_audit,
        ),
        Job(
            "plan",
            "what if: scenarios and strategies over the same history, movement beside balance",
            add_plan_options,
            read_plan_options,
            run_plan,
        ),
        Job(
            "explain",
            "why a queue is with this client at this time: lists, formula, offset rule; no Spark",
            add_explain_options,
            read_explain_options,
            run_explain,
        ),
    )
}
