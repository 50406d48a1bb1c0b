"""An audit's counts as a Prometheus text file, for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rebalance_core.audit.outcome import AuditOutcome, with_most
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.verdicts import (
    RUN_VERDICTS,
)

Labels = Mapping[str, str]


def render_metrics(
    clusters: Sequence[AuditOutcome],
    finished_ms: int,
    stalled: Mapping[tuple[str, str], int],
    orphan_ms: Mapping[tuple[str, str], int],
) -> str:
    """Return the file's text, which ends with a newline; its lines are in a fixed order.

    Args:
        clusters: the result of each cluster; every sample is labelled with a cluster's name.
        finished_ms: when the audit ended.
        stalled: the number of stalled queues by (cluster, group).
        orphan_ms: queues x ms of the night without an owner, by (cluster, group).
    """
    lines: list[str] = []

    def metric(
        name: str, text: str, samples: Callable[[AuditOutcome], Iterable[tuple[Labels, float]]]
    ) -> None:
        lines.append(f"# HELP rebalance_audit_{name} {text}")
        lines.append(f"# TYPE rebalance_audit_{name} gauge")
        for cluster in clusters:
            for labels, value in samples(cluster):
                shown = {"cluster": cluster.cluster, **labels}.items()
                text_of_labels = ",".join(f'{k}="{_escaped(v)}"' for k, v in shown)
                lines.append(f"rebalance_audit_{name}{{{text_of_labels}}} {value}")

    metric("findings", "Findings by rule, severity and acceptance.", _findings)
    metric(
        "groups",
        "Consumer groups by verdict: predicted ownership compared with live ownership.",
        lambda cluster: (({"verdict": name}, n) for name, n in sorted(cluster.groups.items())),
    )
    metric(
        "groups_progress",
        "Consumer groups with members, by whether they read the queues that they hold.",
        lambda cluster: (({"progress": name}, n) for name, n in cluster.progress.items()),
    )
    metric(
        "groups_health",
        "Consumer groups by health, the on-call summary.",
        lambda cluster: (({"health": word}, n) for word, n in cluster.health.items()),
    )
    metric(
        "group_health",
        "1 for each group in trouble: at most 50 groups, most severe first.",
        lambda cluster: (({"group": g, "health": word}, 1) for g, word in cluster.troubled),
    )
    metric(
        "unread_messages",
        "Messages after the group's newest commits, for the groups with the most.",
        lambda cluster: (({"group": name}, n) for name, n in cluster.unread.items()),
    )
    metric(
        "stalled_queues",
        "Queues whose commit does not advance while messages arrive, for the groups with the most.",
        lambda cluster: _of_groups(cluster, stalled),
    )
    metric(
        "orphan_queue_seconds",
        "Queues x seconds of the night without an owner, for the groups with the most.",
        lambda cluster: ((labels, n / 1000) for labels, n in _of_groups(cluster, orphan_ms)),
    )
    metric(
        "verdict",
        "1 for the cluster's verdict, 0 for the others.",
        lambda cluster: (
            ({"verdict": word}, int(word == cluster.verdict)) for word in RUN_VERDICTS
        ),
    )
    metric(
        "collection_end_seconds",
        "Last moment of the collection.",
        lambda cluster: [({}, cluster.end_ms // 1000)],
    )
    metric("finished_seconds", "When the audit ended.", lambda cluster: [({}, finished_ms // 1000)])
    return "\n".join(lines) + "\n"


def _of_groups(
    outcome: AuditOutcome, counts: Mapping[tuple[str, str], int]
) -> Iterator[tuple[Labels, int]]:
    """Yield the sample of each group with the most, without RocketMQ's own groups."""
    worst = with_most(
        (n, group)
        for (cluster, group), n in counts.items()
        if cluster == outcome.cluster and not is_system_group(group)
    )
    yield from (({"group": name}, n) for name, n in worst.items())


def _findings(outcome: AuditOutcome) -> Iterator[tuple[Labels, int]]:
    ordered = sorted(
        outcome.counts, key=lambda count: (count.rule_id, count.severity, count.accepted)
    )
    for count in ordered:
        accepted = str(count.accepted).lower()
        labels = {"rule_id": count.rule_id, "severity": count.severity, "accepted": accepted}
        yield labels, count.findings


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
