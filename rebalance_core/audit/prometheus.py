"""``metrics.prom``: an audit run's counts as a Prometheus text file (node_exporter's textfile)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rebalance_core.audit.verdict import Count
from rebalance_core.model.verdicts import RUN_VERDICTS


def render_metrics(
    cluster: str,
    counts: Iterable[Count],
    groups: Mapping[str, int],
    verdict: str,
    end_ms: int,
    finished_ms: int,
) -> str:
    """The file's text; ends with a newline, lines in a fixed order.

    Args:
        cluster: name of the cluster.
        counts: findings by rule, severity and acceptance.
        groups: groups by verdict of the comparison.
        verdict: of the whole run.
        end_ms: end of the collection.
        finished_ms: when the audit ended.
    """
    lines: list[str] = []

    def metric(name: str, text: str, samples: Iterable[tuple[Mapping[str, str], int]]) -> None:
        lines.append(f"# HELP rebalance_audit_{name} {text}")
        lines.append(f"# TYPE rebalance_audit_{name} gauge")
        for labels, value in samples:
            text_of_labels = ",".join(
                f'{k}="{_escaped(v)}"' for k, v in {"cluster": cluster, **labels}.items()
            )
            lines.append(f"rebalance_audit_{name}{{{text_of_labels}}} {value}")

    ordered = sorted(counts, key=lambda one: (one.rule_id, one.severity, one.accepted))
    metric(
        "findings",
        "Findings by rule, severity and acceptance.",
        (
            (
                {
                    "rule_id": one.rule_id,
                    "severity": one.severity,
                    "accepted": str(one.accepted).lower(),
                },
                one.findings,
            )
            for one in ordered
        ),
    )
    metric(
        "groups",
        "Consumer groups by what the comparison of predicted and live ownership gave.",
        (({"verdict": name}, n) for name, n in sorted(groups.items())),
    )
    metric(
        "verdict",
        "1 for the verdict of the run, 0 for the others.",
        (({"verdict": word}, int(word == verdict)) for word in RUN_VERDICTS),
    )
    metric("collection_end_seconds", "Last moment of the collection.", [({}, end_ms // 1000)])
    metric("finished_seconds", "When the audit ended.", [({}, finished_ms // 1000)])
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
