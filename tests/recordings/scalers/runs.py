"""The recorded scaler runs: what a replay is given, and what was measured."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from rebalance_core.model.times import SECOND_MS
from rebalance_core.planning.autoscale.closed_loop import Question, Replayed, replay
from rebalance_core.planning.autoscale.policy import Policy, parse_policy
from rebalance_core.planning.autoscale.scaled_group import (
    ScaledGroup,
    Service,
    Workload,
    arrivals_by_topic,
)
from rebalance_core.planning.rollout.futures import deployed_group
from rebalance_core.planning.scenario.pods import Start
from rebalance_core.process.autoscale import read_arrivals
from rebalance_core.synthetic.draws import Draws
from tests.recordings.tables import histories, rows

RUNS = Path(__file__).parent / "runs"
NAMES = sorted(path.name for path in RUNS.iterdir())
SEEDS = range(0, 4_500, 90)
"""Fifty futures with 26 draws of addresses and starts, each of one to three futures."""


@dataclass(frozen=True, slots=True)
class MeasuredStart(Start):
    """Pods that take as long as those of a run, from the decision to the end of ``start()``."""

    took_ms: tuple[int, ...] = ()

    def drawn_ms(self, draws: Draws | None) -> int:
        """Return one of these times."""
        assert draws is not None
        return draws.pick(self.took_ms)


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the replicas, ``at_s`` after the start of the rates."""

    at_s: int
    before: int
    after: int


@dataclass(frozen=True, eq=False)
class Run:
    """A run.

    Attributes:
        name: its folder.
        policy: of its scaler.
        scaled: its group with two members, the rates that its producer had, and its service time.
        steps: that its scaler made.
        truth: by column of ``truth.csv``.
        replicas: asked of the cluster, by second.
    """

    name: str
    policy: Policy
    scaled: ScaledGroup
    steps: tuple[Step, ...]
    truth: dict[str, float]
    replicas: tuple[int, ...]

    def replayed(self) -> Replayed:
        """Return the futures of what it was given."""
        return _replayed(self.name)


@cache
def _replayed(name: str) -> Replayed:
    run = recorded(name)
    world = run.scaled.worlds[0]
    rates, reader = run.scaled.rates[world], run.scaled.readers[world]
    return replay(run.scaled.group, [run.policy], rates, reader, Question(SEEDS))


@cache
def recorded(name: str) -> Run:
    """Return a run."""
    folder = RUNS / name
    (truth,) = table(name, "truth")
    begin_ms = int(truth["begin_ms"])
    tables = {path.stem: rows(path) for path in folder.glob("*.jsonl")}
    tables["cluster_events"] = [e for e in tables["cluster_events"] if e["event_ms"] < begin_ms]
    (history,) = histories(tables | {"queue_offsets": [], "committed_offsets": []})
    arrivals = arrivals_by_topic(read_arrivals(str(folder / "arrivals.csv")).to_pylist())
    service_ms = float(truth["service_ms"])
    service = Service((service_ms,) * 3, int(truth["threads"]))
    scaled = Workload(arrivals, {}, service).of(deployed_group(history), [])
    assert scaled.reason is None, scaled.reason
    stated = parse_policy((folder / "policy.toml").read_text(), "policy.toml")
    steps = tuple(
        Step(int(row["second"]), int(row["before"]), int(row["after"]))
        for row in table(name, "decisions")
        if row["before"] != row["after"]
    )
    numbers = {key: float(value) for key, value in truth.items() if key not in ("run", "ordered")}
    took_ms = tuple(
        int(pod["joined_ms"]) - _decided_ms(steps, created_ms)
        for pod in table(name, "pods")
        if pod["joined_ms"] and (created_ms := int(pod["created_ms"])) > 0
    )
    policy = replace(stated, start=MeasuredStart(max(took_ms, default=0), took_ms=took_ms))
    replicas = [policy.begin] * int(truth["seconds"])
    for step in steps:
        replicas[step.at_s :] = [step.after] * (len(replicas) - step.at_s)
    return Run(name, policy, scaled, steps, numbers, tuple(replicas))


def _decided_ms(steps: Sequence[Step], created_ms: int) -> int:
    return max(s.at_s * SECOND_MS for s in steps if s.at_s * SECOND_MS <= created_ms)


def table(run: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of a run."""
    with (RUNS / run / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))
