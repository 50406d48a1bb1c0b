"""Answers of Prometheus to range queries, made by hand."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

BEGIN_S = 1_795_231_200
STEP_S = 60

IN = "rocketmq_messages_in_total"
LAG = "rocketmq_consumer_lag_messages"
PODS = "kube_deployment_spec_replicas"


def series(
    name: str, values: Sequence[float | str | None], labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return a series with a value a minute; None: no sample."""
    samples = [
        [BEGIN_S + place * STEP_S, value if isinstance(value, str) else f"{value}"]
        for place, value in enumerate(values)
        if value is not None
    ]
    return {"metric": {"__name__": name, **labels}, "values": samples}


def come(values: Sequence[float | str | None], **labels: str) -> dict[str, Any]:
    """Return a counter of broker-a."""
    named = {"cluster": "shop", "node_id": "broker-a", "topic": "Orders"} | labels
    return series(IN, values, named)


def lag(values: Sequence[float | str | None], **labels: str) -> dict[str, Any]:
    """Return the lag of a group at broker-a."""
    named = {"cluster": "shop", "node_id": "broker-a", "topic": "Orders"} | labels
    return series(LAG, values, {"consumer_group": "pay", **named})


def pods(values: Sequence[float | str | None], **labels: str) -> dict[str, Any]:
    """Return the replicas of a Deployment."""
    return series(PODS, values, {"namespace": "live", "deployment": "pay", **labels})


def body(*of: Mapping[str, Any], **more: Any) -> str:
    """Return the JSON of an answer."""
    data = {"resultType": "matrix", "result": list(of)}
    return json.dumps({"status": "success", "data": data, **more})
