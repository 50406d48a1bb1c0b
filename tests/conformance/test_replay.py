"""Every pass of the bundled replay vectors (recorded on the released client classes)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.replay_vectors import compare
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors" / "replay-vectors-dev.jsonl"
SCENARIOS = 150
PASSES = 5172

Scenario = dict[str, Any]


def test_every_pass_agrees() -> None:
    with VECTORS.open(encoding="utf-8") as lines:
        assert sum(1 for _ in lines) == SCENARIOS
    assert compare(VECTORS) == (PASSES, [])


def first_pass(scenario: Scenario) -> Any:
    return next(iter(scenario["epochs"][0]["consumers"].values()))


def first_topic(scenario: Scenario) -> Any:
    return next(t for t in first_pass(scenario)["topics"].values() if "added" in t)


CORRUPTIONS: dict[str, Callable[[Scenario], Any]] = {
    "balanced": lambda s: first_pass(s).update(balanced=False),
    "heartbeats": lambda s: first_pass(s).update(heartbeats=7),
    "pull_threshold_for_queue": lambda s: first_pass(s).update(pull_threshold_for_queue=8),
    "new_field": lambda s: first_pass(s).update(new_field=1),
    "queues": lambda s: first_topic(s)["queues"].append(["broker-z", 0]),
    "added": lambda s: first_topic(s)["added"].pop(),
    "removed": lambda s: first_topic(s).update(removed=[["broker-z", 0]]),
    "persisted": lambda s: first_topic(s).update(persisted=[["broker-z", 0, 5]]),
    "locks": lambda s: first_topic(s).update(locks=[["broker-z", 0, True]]),
    "changed": lambda s: first_topic(s)["changed"].update(mq_all_size=99),
    "subscribed": lambda s: first_pass(s)["topics"].update(other={"queues": []}),
}


def corrupted(tmp_path: Path, corrupt: Callable[[Scenario], Any]) -> Path:
    with VECTORS.open(encoding="utf-8") as lines:
        scenario = json.loads(next(lines))
    corrupt(scenario)
    path = tmp_path / "corrupted.jsonl"
    path.write_text(json.dumps(scenario) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("field", CORRUPTIONS)
def test_a_corrupted_field_is_a_mismatch_of_its_pass(tmp_path: Path, field: str) -> None:
    _, mismatches = compare(corrupted(tmp_path, CORRUPTIONS[field]))
    assert len(mismatches) == 1
    assert mismatches[0].startswith("corrupted.jsonl:1: dev-0000-4.9.7 epoch 0 ")
    assert f"{field}: " in mismatches[0]


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda s: s.pop("epochs"),
        lambda s: s["epochs"][0]["consumers"].popitem(),
        lambda s: s["config"]["consumers"][0].update(strategy="AVERAGE"),
    ],
    ids=["no epochs", "a pass is missing", "unknown strategy"],
)
def test_a_scenario_that_cannot_be_replayed_is_a_mismatch(
    tmp_path: Path, corrupt: Callable[[Scenario], Any]
) -> None:
    _, mismatches = compare(corrupted(tmp_path, corrupt))
    assert len(mismatches) == 1
    assert "cannot be replayed" in mismatches[0]
