"""Every queue in every epoch of the recordings: the owner worked out again is the ledger's."""

from collections import Counter

import pytest

from rebalance_core.explain.explainer import Explainer
from rebalance_core.model.queue import MessageQueue
from tests.recordings.tables import RECORDINGS, replayed
from tests.unit.explain.ledgers import group_rows


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_queue_of_every_epoch_is_explained(recording: str) -> None:
    tables = replayed(recording)
    explained: Counter[str] = Counter()
    for group in sorted({row["consumer_group"] for row in tables["epochs"]}):
        rows = group_rows(tables, group)
        explainer = Explainer(rows)
        for epoch in rows.epochs:
            held: dict[MessageQueue, Counter[str]] = {}
            for row in rows.ownership:
                to_epoch = row["to_epoch"]
                if row["from_epoch"] <= epoch["epoch"] and (
                    to_epoch is None or epoch["epoch"] < to_epoch
                ):
                    queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
                    owners = held.setdefault(queue, Counter())
                    if row["client_id"] is not None:
                        owners[row["client_id"]] += row["holders"]
            for queue, owners in held.items():
                found = explainer.explain(queue, epoch["from_ms"])
                where = (group, epoch["epoch"], queue, found)
                assert found.agrees, where
                assert {c: (n, n) for c, n in owners.items()} == dict(found.expected), where
                assert [h.client_id for h in found.holders] == sorted(owners), where
                assert (found.nobody is None) == bool(owners), where
                for holder in found.holders:
                    explained[holder.reason.code] += 1
                    formula = holder.reason.formula
                    assert formula is None or formula.owner == holder.client_id, where
                    assert holder.taken is not None, where
                    assert (holder.start is None) == (holder.taken.kind == "INITIAL"), where
                if found.nobody is not None:
                    explained[found.nobody.code] += 1
    assert explained["UNKNOWN"] == 0
    assert explained.total() > 0
