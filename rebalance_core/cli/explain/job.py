"""`explain`: read the rows of one group around one instant, work the owner out again, say why."""

from dataclasses import asdict, replace
from typing import Any

from rebalance_core.cli.explain.ledger_folder import LedgerFolder
from rebalance_core.cli.explain.rendering import render_explanation
from rebalance_core.cli.job_options import ExplainOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.options import SPARK
from rebalance_core.cli.terminal import joined, warn
from rebalance_core.explain.answer import Explanation
from rebalance_core.explain.explainer import Explainer, queue_text
from rebalance_core.model.errors import UsageError
from rebalance_core.model.times import utc


def run(options: ExplainOptions) -> JobReport:
    """Run the job; the report for stdout. Needs pyarrow and no Spark."""
    if options.run_on == SPARK:
        warn("explain reads the rows of one group; it runs in this process wherever others run")
    ledger = LedgerFolder(options.ledger)
    cluster = ledger.cluster_of(options.group, options.cluster)
    rows = ledger.around(cluster, options.group, options.queue, options.at_ms)
    try:
        explanation = Explainer(rows).explain(options.queue, options.at_ms)
    except KeyError:
        raise UsageError(
            f"--queue {queue_text(options.queue)}: {options.group} cannot read it at "
            f"{utc(options.at_ms)}; members share the topic then"
        ) from None
    doubts = ledger.doubts(cluster, options.group, options.queue, options.at_ms)
    explanation = replace(explanation, notes=(*explanation.notes, *doubts))
    if options.dry_run:
        text = f"would explain {queue_text(options.queue)} of {options.group} in {cluster}"
        facts = {"job": "explain", "dry_run": True, "exit_code": 0, "cluster": cluster}
        return JobReport(joined([text]), facts)
    return JobReport(render_explanation(explanation), explain_facts(explanation))


def explain_facts(explanation: Explanation) -> dict[str, Any]:
    """The `--json` object: every field of the explanation, lists whole."""
    facts = asdict(explanation)
    facts["queue"] = explanation.queue._asdict()
    return {"job": "explain", "status": "OK", "exit_code": 0} | facts
