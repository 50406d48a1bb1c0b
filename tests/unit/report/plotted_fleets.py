"""Rows to draw: small ones by hand, huge ones by formula."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from rebalance_core import MessageQueue
from rebalance_core.model.queue import sort_client_ids

GROUP = {"cluster": "c1", "consumer_group": "order-service"}
MINUTE = 60_000
START = 1_795_231_710_000

Row = dict[str, Any]


def client(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250 + 1}@{2000 + number}#{7919 * number}"


def rounds(queues: int, consumers: int, epochs: int) -> list[dict[MessageQueue, str]]:
    """AVG over epochs: in each another consumer of the last third is away."""
    of_topic = [MessageQueue("T", f"broker-{n % 4}", n // 4) for n in range(queues)]
    found = []
    for epoch in range(epochs):
        away = consumers - 1 - epoch % max(1, consumers // 3)
        there = sort_client_ids(client(n) for n in range(consumers) if n != away or consumers == 1)
        share = max(1, -(-queues // len(there)))
        found.append({queue: there[at // share] for at, queue in enumerate(sorted(of_topic))})
    return found


def ownership(queues: int, consumers: int, epochs: int) -> pd.DataFrame:
    rows: list[Row] = []
    history = rounds(queues, consumers, epochs)
    for queue in history[0]:
        for epoch, owners in enumerate(history):
            if epoch and history[epoch - 1][queue] == owners[queue]:
                continue
            if epoch:
                rows[-1]["to_ms"] = START + epoch * MINUTE
            rows.append(
                {
                    **GROUP,
                    "topic": queue.topic,
                    "broker_name": queue.broker_name,
                    "queue_id": queue.queue_id,
                    "client_id": owners[queue],
                    "holders": 1,
                    "from_ms": START + epoch * MINUTE,
                    "to_ms": None,
                }
            )
    return pd.DataFrame(rows)


def consumer_load(queues: int, consumers: int, epochs: int) -> pd.DataFrame:
    rows: list[Row] = []
    history = rounds(queues, consumers, epochs)
    loads = [Counter(owners.values()) for owners in history]
    for number in range(consumers):
        for epoch in range(epochs):
            last = epoch == epochs - 1
            held = loads[epoch][client(number)]
            rows.append(
                {
                    **GROUP,
                    "client_id": client(number),
                    "queues": held,
                    "idle": held == 0,
                    "suspended": number == 1 and last,
                    "from_ms": START + epoch * MINUTE,
                    "to_ms": None if last else START + (epoch + 1) * MINUTE,
                }
            )
    return pd.DataFrame(rows)


def step(strategy: str, epoch: int, moved: int, fewest: int | None, **more: Any) -> Row:
    return {
        **GROUP,
        "scenario": "",
        "strategy": strategy,
        "of_rocketmq": True,
        "seed": 0,
        "epoch": epoch,
        "change_ms": START + epoch * MINUTE,
        "causes": ["CONSUMER_JOIN"],
        "members": 4,
        "queues": 8,
        "moved": moved,
        "minimum_moves": fewest,
        "max_queues": 2,
        "min_queues": 2,
        "peak_ratio": 1.0,
        "idle_members": 0,
        "orphaned": 0,
        "shared": 0,
        **more,
    }


def standing(strategy: str, moved: float, peak: float, **more: Any) -> Row:
    return {
        "strategy": strategy,
        "of_rocketmq": True,
        "groups": 1,
        "rebalances": 6,
        "moved": round(6 * moved),
        "moved_per_rebalance": moved,
        "minimum_moves": 12,
        "amplification": moved / 2,
        "stickiness": 0.5,
        "mean_peak_ratio": peak,
        "worst_peak_ratio": peak + 0.2,
        "idle_members": 0,
        "orphaned": 0,
        **more,
    }
