"""``metrics.prom``: an audit run's counts as a Prometheus text file (node_exporter's textfile)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rebalance_core.audit.outcome import AuditOutcome
from rebalance_core.model.verdicts import RUN_VERDICTS

Labels = Mapping[str, str]


def render_metrics(clusters: Sequence[AuditOutcome], finished_ms: int) -> str:
    """The file's text; ends with a newline, lines in a fixed order.

    Args:
        clusters: what came of each; every sample is labelled with the name of one.
        finished_ms: when the audit ended.
    """
    lines: list[str] = []

    def metric(
        name: str, text: str, samples: Callable[[AuditOutcome], Iterable[tuple[Labels, int]]]
    ) -> None:
        lines.append(f"# HELP rebalance_audit_{name} {text}")
        lines.append(f"# TYPE rebalance_audit_{name} gauge")
        for one in clusters:
            for labels, value in samples(one):
                shown = {"cluster": one.cluster, **labels}.items()
                text_of_labels = ",".join(f'{k}="{_escaped(v)}"' for k, v in shown)
                lines.append(f"rebalance_audit_{name}{{{text_of_labels}}} {value}")

    metric("findings", "Findings by rule, severity and acceptance.", _findings)
    metric(
        "groups",
        "Consumer groups by what the comparison of predicted and live ownership gave.",
        lambda one: (({"verdict": name}, n) for name, n in sorted(one.groups.items())),
    )
    metric(
        "verdict",
        "1 for the verdict on the cluster, 0 for the others.",
        lambda one: (({"verdict": word}, int(word == one.verdict)) for word in RUN_VERDICTS),
    )
    metric(
        "collection_end_seconds",
        "Last moment of the collection.",
        lambda one: [({}, one.end_ms // 1000)],
    )
    metric("finished_seconds", "When the audit ended.", lambda one: [({}, finished_ms // 1000)])
    return "\n".join(lines) + "\n"


def _findings(outcome: AuditOutcome) -> Iterator[tuple[Labels, int]]:
    ordered = sorted(outcome.counts, key=lambda one: (one.rule_id, one.severity, one.accepted))
    for one in ordered:
        accepted = str(one.accepted).lower()
        labels = {"rule_id": one.rule_id, "severity": one.severity, "accepted": accepted}
        yield labels, one.findings


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
