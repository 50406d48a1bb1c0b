# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A week of a shop
#
# Six pods read the topic `Checkout`; every evening they fall behind. Would a scaler help, which,
# and what does it cost? From a week of Prometheus's metrics to the YAML, and to a sentence for those
# who pay. The metrics are made here; to ask about a group of yours, set `ANSWER` to an answer of
# `/api/v1/query_range`, `TABLES` to input tables, `GROUP`, and `FROM` if a refusal names a time.

# %%
import json
import math
import os
import random
import tempfile
from contextlib import redirect_stdout
from importlib.resources import files
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq

import rebalance_core
from rebalance_core.cli.main import main

ANSWER, TABLES = (os.environ.get(name) for name in ("ANSWER", "TABLES"))
FROM = os.environ.get("FROM", "" if ANSWER else "2026-11-26T10:10:00Z")
ANSWER = Path(ANSWER).resolve() if ANSWER else None
TABLES = Path(TABLES or files(rebalance_core) / "bundled/demo/steady/tables").resolve()
os.chdir(tempfile.mkdtemp())
GROUP = os.environ.get("GROUP", "checkout")
PODS, MINUTES, BEGIN = 6, 7 * 24 * 60, 1_795_392_000  # Monday, 2026-11-23, UTC


def rebalance(*words, skip=1):
    """Run a job and print what it prints, without the line that has its seconds."""
    said = StringIO()
    with redirect_stdout(said):
        code = main(None, [str(word) for word in words])
    print("\n".join(said.getvalue().splitlines()[skip:]))
    assert code == 0, code


# %% [markdown]
# ## What Prometheus answers
#
# A counter of messages at each of two brokers, the lag of the group at each, and the replicas of its
# Deployment, once a minute. The six pods read some 1,200 messages a second at most. On Thursday Prometheus
# is down for ten minutes.


# %%
def series(name, values, **labels):
    samples = [[BEGIN + 60 * minute, f"{value:.0f}"] for minute, value in values]
    return {"metric": {"__name__": name, **labels}, "values": samples}


def a_week():
    chance, come, waits = random.Random(63), 0.0, 0.0
    counted, lags = [], []
    for minute in range(MINUTES + 1):
        if not 3 * 1440 + 600 <= minute < 3 * 1440 + 610:
            counted.append((minute, come))
            lags.append((minute, waits))
        hour = minute / 60 % 24
        evening = math.exp(-(((hour - 20) / 2.5) ** 2))
        noon = math.exp(-(((hour - 13) / 3) ** 2))
        rate = (150 + 500 * noon + 1_150 * evening) * chance.lognormvariate(0, 0.05)
        come += 60 * rate
        waits = max(0.0, waits + 60 * (rate - 1_200 * chance.lognormvariate(0, 0.04)))
    series_of = []
    for broker in ("broker-a", "broker-b"):
        labels = {"cluster": "DefaultCluster", "node_id": broker, "topic": "Checkout"}
        halves = [[(minute, value / 2) for minute, value in of] for of in (counted, lags)]
        series_of += [
            series("rocketmq_messages_in_total", halves[0], **labels),
            series("rocketmq_consumer_lag_messages", halves[1], consumer_group="checkout", **labels),
        ]
    replicas = [(minute, PODS) for minute, _ in counted]
    series_of.append(
        series("kube_deployment_spec_replicas", replicas, namespace="shop", deployment="checkout")
    )
    return {"status": "success", "data": {"resultType": "matrix", "result": series_of}}


if ANSWER is None:
    ANSWER = Path("week.json")
    ANSWER.write_text(json.dumps(a_week()))
print(f"{ANSWER.stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# ## What it shows
#
# The gap is UNKNOWN, not zero. While the group is behind, its members read what they can: that is
# the service time, with what nine of ten minutes do not exceed or fall below.

# %%
rebalance("read-metrics", "--answer", ANSWER, "--output", "metrics")

# %% [markdown]
# ## Scalers against that week
#
# A replay needs rates without a gap, and a refusal names the longest time that has them: from
# Thursday, 10:10, to Sunday. The pods that there were are a policy, too: `recorded`. The interval of
# the service time makes two more worlds; `*` has the least largest regret over them.

# %%
rebalance(
    "autoscale", "--input", TABLES, "--group", GROUP,
    "--arrivals", "metrics/arrivals", "--capacity", "metrics/capacity",
    "--recorded", "metrics/recorded_scaling", "--policy", "hpa", "by-rate",
    "--seeds", "2", "--output", "scaled", *(("--from", FROM) if FROM else ()),
)

# %% [markdown]
# ## What to deploy
#
# The chosen policy, with what its figures rest on.

# %%
print(Path("scaled/scaler.yaml").read_text())

# %% [markdown]
# ## What to say

# %%
rows = pq.read_table("scaled/policy_summary").to_pylist()
likely = {row["policy"]: row for row in rows if row["world"] == "likely"}
today, best = likely["recorded"], next(row for row in likely.values() if row["chosen"])
days = (today["to_ms"] - today["from_ms"]) / 86_400_000
print(
    f"Today {today['late_messages'] / days:,.0f} messages a day wait for longer than 30 s, up to "
    f"{today['longest_wait_s'] / 60:,.0f} minutes. With {best['policy']} it would be "
    f"{best['late_messages'] / days:,.0f}, up to {best['longest_wait_s']:,.0f} s, for "
    f"{best['pod_hours'] / days:,.0f} instead of {today['pod_hours'] / days:,.0f} pod hours a day."
)
