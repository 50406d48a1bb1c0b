"""Sixty trials of fixed seeds; `make degraded TRIALS=5000` runs more."""

import pytest

from tests.degraded.judge import OTHERWISE, queues_named
from tests.degraded.trials import run_trial
from tests.recordings.tables import Row


@pytest.mark.parametrize("seed", range(1, 61))
def test_a_damaged_collection_is_judged_honestly_and_not_mute(seed: int) -> None:
    trial = run_trial(seed)
    assert not trial.failed, trial.told()


def test_a_finding_of_another_rule_counts_only_where_it_states_as_much() -> None:
    def row(rule: str, first_ms: int | None = None, client: str = "x", **evidence: str) -> Row:
        told = {"rule_id": rule, "first_ms": first_ms, "client_id": client}
        return told | {"evidence": [*evidence.items()]}

    rare, differing = OTHERWISE["RARE_HEARTBEATS"], OTHERWISE["INCONSISTENT_SUBSCRIPTION"]
    expired = row("EXPIRED_WHILE_ALIVE", interval_ms="200000")
    assert rare("", expired, row("RARE_HEARTBEATS", interval_ms="200000"))
    assert not rare("", expired, row("RARE_HEARTBEATS", interval_ms="130000"))
    assert not rare("", expired, row("RARE_HEARTBEATS", client="y", interval_ms="200000"))
    unsubscribed = row("UNSUBSCRIBED_SHARE", 9)
    assert differing("", unsubscribed, row("INCONSISTENT_SUBSCRIPTION"))
    assert not differing("", unsubscribed, row("INCONSISTENT_SUBSCRIPTION", 5))
    deleted = {"consumer_group": "notify-push-old"}
    leftover = row("LEFTOVER_OFFSETS", topics="%RETRY%notify-push-old, notify-push")
    for behind, true in (("notify-push 836", True), ("notify-push 1673", False), ("U 8", False)):
        lag = row("OFFLINE_WITH_LAG", behind=behind) | deleted
        assert OTHERWISE["OFFLINE_WITH_LAG"]("06-deleted-group", leftover, lag) is true
    assert [*queues_named("a:0,2-3, b:1")] == [("a", 0), ("a", 2), ("a", 3), ("b", 1)]
