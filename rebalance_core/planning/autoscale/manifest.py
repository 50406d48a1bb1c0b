"""Renders a chosen policy as Kubernetes YAML: a HorizontalPodAutoscaler or a ScaledObject."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from rebalance_core.planning.autoscale.policy import FIXED, KEDA, Direction, Policy

LAG_QUERY = "sum(rocketmq_consumer_lag_messages{{consumer_group={group}}})"
RATE_QUERY = "sum(rate(rocketmq_messages_in_total{{topic=~{topics}}}[{window}s]))"
"""A Prometheus query on the metrics that RocketMQ has exported since 5.0."""
_NOT_NAME = re.compile(r"[^a-z0-9]+")


def name_of(group: str) -> str:
    """Return a name that Kubernetes accepts.

    >>> name_of("Orders_Pay%")
    'orders-pay'
    """
    return _NOT_NAME.sub("-", group.lower()).strip("-")[:63] or "consumers"


def manifest(policy: Policy, group: str, topics: Iterable[str], assumed: Iterable[str]) -> str:
    """Return the YAML of a policy for a group.

    Args:
        policy: the chosen policy.
        group: its name.
        topics: the group's topics.
        assumed: sentences that become comments.
    """
    comments = [*assumed, *_beyond(policy)]
    lines = [f"# {comment}" for comment in comments]
    if policy.kind == FIXED:
        lines += [f"# no scaler: replicas: {policy.replicas}"]
        return "\n".join(lines) + "\n"
    make = _scaled_object if policy.kind == KEDA else _autoscaler
    return "\n".join([*lines, *make(policy, group, sorted(topics))]) + "\n"


def _beyond(policy: Policy) -> Iterator[str]:
    """Yield what the Kubernetes object cannot express."""
    if policy.sizes:
        sizes = ", ".join(map(str, policy.sizes))
        yield f"Kubernetes has no list of sizes: {sizes} need a controller that rounds up to them"
    if policy.decide is not None:
        yield "The policy is a function: this object has its bounds alone"


def _query(policy: Policy, group: str, topics: list[str], metric: str) -> str:
    if metric == "lag":
        return LAG_QUERY.format(group=json.dumps(group))
    pattern = json.dumps("|".join(re.escape(topic) for topic in topics))
    return RATE_QUERY.format(topics=pattern, window=policy.metrics.rate_window_s)


def _targets(policy: Policy) -> Iterator[tuple[str, str]]:
    for metric, target in (("lag", policy.lag), ("rate", policy.rate)):
        if target is not None:
            yield metric, f"{target.target:.10g}"


def _autoscaler(policy: Policy, group: str, topics: list[str]) -> Iterator[str]:
    name = name_of(group)
    yield from (
        "apiVersion: autoscaling/v2",
        "kind: HorizontalPodAutoscaler",
        "metadata:",
        f"  name: {name}",
        "spec:",
        "  scaleTargetRef:",
        "    apiVersion: apps/v1",
        "    kind: Deployment",
        f"    name: {name}  # yours",
        f"  minReplicas: {policy.least}",
        f"  maxReplicas: {policy.most}",
        "  metrics:",
    )
    for metric, target in _targets(policy):
        yield "  - type: External"
        yield "    external:"
        yield "      metric:"
        yield f"        name: {name}-{metric}  # {_query(policy, group, topics, metric)}"
        yield "      target:"
        yield "        type: AverageValue"
        yield f"        averageValue: {json.dumps(target)}"
    yield from _behavior(policy, "  ")


def _scaled_object(policy: Policy, group: str, topics: list[str]) -> Iterator[str]:
    name, keda = name_of(group), policy.keda
    assert keda is not None
    yield from (
        "apiVersion: keda.sh/v1alpha1",
        "kind: ScaledObject",
        "metadata:",
        f"  name: {name}",
        "spec:",
        "  scaleTargetRef:",
        f"    name: {name}  # yours",
        f"  pollingInterval: {keda.polling_s}",
        f"  cooldownPeriod: {keda.cooldown_s}",
        f"  minReplicaCount: {policy.least}",
        f"  maxReplicaCount: {policy.most}",
    )
    if keda.fallback is not None:
        yield "  fallback:"
        yield f"    failureThreshold: {keda.failure_threshold}"
        yield f"    replicas: {keda.fallback}"
    behavior = list(_behavior(policy, "      "))
    if behavior:
        yield "  advanced:"
        yield "    horizontalPodAutoscalerConfig:"
        yield from behavior
    yield "  triggers:"
    for metric, target in _targets(policy):
        yield "  - type: prometheus"
        yield "    metricType: AverageValue"
        yield "    metadata:"
        yield "      serverAddress: http://prometheus:9090  # yours"
        yield f"      query: {json.dumps(_query(policy, group, topics, metric))}"
        yield f"      threshold: {json.dumps(target)}"
        yield f"      activationThreshold: {json.dumps(f'{keda.activation:.10g}')}"


def _behavior(policy: Policy, indent: str) -> Iterator[str]:
    if policy.up is None or policy.down is None:
        return
    yield f"{indent}behavior:"
    windows = 0, policy.down_window_s
    for key, each, window in zip(
        ("scaleUp", "scaleDown"), (policy.up, policy.down), windows, strict=True
    ):
        yield f"{indent}  {key}:"
        yield from (f"{indent}    {line}" for line in _direction(each, window))


def _direction(direction: Direction, window: int) -> Iterator[str]:
    stated = direction.stabilization_s
    yield f"stabilizationWindowSeconds: {window if stated is None else stated}"
    yield f"selectPolicy: {direction.select}"
    yield "policies:"
    for limit in direction.limits:
        yield f"- {{type: {limit.type}, value: {limit.value}, periodSeconds: {limit.period_s}}}"
