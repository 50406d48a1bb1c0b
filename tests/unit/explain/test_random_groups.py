"""Random groups with all that is special: what the ledger gives is what was replayed."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalance_core.explain.explainer import Explainer, queue_text
from rebalance_core.explain.view import view_of
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import GroupHistory, replay_history
from tests.unit.explain.ledgers import group_rows
from tests.unit.kernels.random_groups import groups
from tests.unit.replay.histories import strategy_for
from tests.unit.replay.test_random_histories import histories

EXAMPLES = 60
SLOW: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
AMBIGUOUS = "several lists"


def check(history: GroupHistory) -> Counter[str]:
    """Explains everything of one history; how often each reason came."""
    tables = replay_group(history, strategy_for)
    replay = replay_history(history, strategy_for)
    rows = group_rows(tables, history.consumer_group)
    explainer, codes = Explainer(rows), Counter[str]()
    for epoch, truth in zip(rows.epochs, replay.epochs, strict=True):
        view = view_of(rows, epoch)
        for queue, owners in view.holders.items():
            found = explainer.explain(queue, epoch["from_ms"])
            where = (epoch["epoch"], queue, found)
            assert found.agrees, where
            assert [h.client_id for h in found.holders] == sorted(owners), where
            if not any(AMBIGUOUS in note for note in found.notes):
                readable = truth.readable.get(queue.topic, [])
                assert found.after.mq_all == tuple(map(queue_text, readable)), where
            reasons = [holder.reason for holder in found.holders]
            codes.update(r.code for r in [*reasons, *([found.nobody] if found.nobody else [])])
            assert "UNKNOWN" not in codes, where
    return codes


@given(st.one_of(groups(), histories()))
@settings(max_examples=EXAMPLES, **SLOW)
def test_every_queue_of_every_epoch_is_explained(history: GroupHistory) -> None:
    check(history)


@pytest.mark.slow
@given(st.one_of(groups(), histories()))
@settings(max_examples=EXAMPLES * 40, **SLOW)
def test_the_same_with_many_more(history: GroupHistory) -> None:
    check(history)
