"""Clients with timers of their own, and brokers that do not tell of changes, as recorded.

`intervals-2`: route polls of 5 and 90 s, a waitInterval of 5 s. `no-notices`: the group's
notifyConsumerIdsChangedEnable off, then the brokers' at run time.
"""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds
from rebalance_core.timing.windows import windows_of
from tests.recordings.tables import DATA, Row, Tables, histories, ledger_of
from tests.recordings.truth import RETRY, TOLERANCE_MS, Queue, read_truth

SEEDS = 1_000
WAIT_5_S = '\n[clients."10.0.0.1@*"]  # in no file of RocketMQ\nwait_interval_ms = 5000\n'
GROUPS = (("intervals-2", "mix"), ("no-notices", "quiet"), ("no-notices", "loud"))
EARLY_MS = TOLERANCE_MS
"""A join is logged when the last broker has the member; a topic when its command has ended."""

Act = tuple[str, Queue, bool]
"""Client id, queue, taken."""


@cache
def tables_of(name: str) -> Tables:
    """What ingest makes of the operators' files, and of what only they know."""
    with TemporaryDirectory() as folder:
        copy = shutil.copytree(DATA / name / "collection", Path(folder) / "collection")
        if name == "intervals-2":
            settings = copy / "collection.toml"
            settings.write_text(settings.read_text() + WAIT_5_S)
        return ingest_collection(copy).tables


def history_of(name: str, group: str) -> GroupHistory:
    return next(h for h in histories(tables_of(name)) if h.consumer_group == group)


@cache
def acts(name: str, group: str) -> tuple[tuple[int, Act], ...]:
    """What members took and gave up in their passes, and when; no first starts, no endings."""
    found: list[tuple[int, Act]] = []
    for (_, of_group), lines in read_truth(name).lines.items():
        client_id, first_ms, ending = "", 0, False
        for line in lines if of_group == group else ():
            if line["kind"] == "started":
                client_id, first_ms = line["client_id"], line["t"]
            ending |= line["kind"] == "shutdown_begin"
            if line["kind"] in ("start", "stop") and not line["topic"].startswith(RETRY):
                queue = line["topic"], line["broker"], line["queue_id"]
                if not ending and line["t"] > first_ms + TOLERANCE_MS:
                    found.append((line["t"], (client_id, queue, line["kind"] == "start")))
    return tuple(sorted(found))


def windows(name: str, group: str) -> dict[Act, list[Row]]:
    rows: dict[Act, list[Row]] = {}
    for row in ledger_of(tables_of(name))["diffs"]:
        if row["consumer_group"] == group:
            queue = row["topic"], row["broker_name"], row["queue_id"]
            rows.setdefault((row["client_id"], queue, row["action"] == "ADD"), []).append(row)
    return rows


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_every_move_lies_inside_its_window(name: str, group: str) -> None:
    rows = windows(name, group)
    outside = [
        (at_ms, act)
        for at_ms, act in acts(name, group)
        if not any(
            row["earliest_ms"] - EARLY_MS <= at_ms <= row["latest_ms"] for row in rows.get(act, ())
        )
    ]
    assert len(acts(name, group)) > 20
    assert not outside


def latencies(name: str, group: str) -> Iterator[tuple[int, str, float, np.ndarray]]:
    """(change, client, observed, simulated) from each change to a member's first act, ms."""
    timeline = build_timeline(history_of(name, group), ClockOptions())
    log = play_seeds(timeline, range(SEEDS), ClockOptions())
    change = windows_of(timeline).change_of(log.at_us)
    clients = np.array([life.client_id for life in timeline.lifetimes])[log.lifetime]
    begins = [each.change_ms - EARLY_MS for each in timeline.changes]
    first: dict[tuple[int, str], int] = {}
    for at_ms, (client_id, _, _) in acts(name, group):
        number = int(np.searchsorted(begins, at_ms, side="right")) - 1
        first.setdefault((number, client_id), at_ms)
    for (number, client_id), at_ms in first.items():
        mine = np.flatnonzero((change == number) & (clients == client_id))
        simulated = np.full(SEEDS, np.inf)
        np.minimum.at(simulated, log.seed[mine], log.at_us[mine] / 1_000)
        change_ms = timeline.changes[number].change_ms
        yield number, client_id, at_ms - change_ms, simulated - change_ms


@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_every_latency_lies_inside_the_futures(name: str, group: str) -> None:
    found = list(latencies(name, group))
    outside = [
        (number, client, observed, simulated.min(), simulated[np.isfinite(simulated)].max())
        for number, client, observed, simulated in found
        if not simulated.min() <= observed <= simulated[np.isfinite(simulated)].max(initial=0)
    ]
    assert len(found) >= 10
    assert not outside, outside
