"""Every queue in every epoch of the recordings: who has it, worked out again, is the ledger's."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from rebalance_core.explain.explainer import Explainer
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.pop import WHOLE_BROKER
from tests.recordings.tables import RECORDINGS, Tables, replayed
from tests.recordings.test_pop import ledger
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
                assert (found.no_owner is None) == bool(owners), where
                for holder in found.holders:
                    explained[holder.reason.code] += 1
                    formula = holder.reason.formula
                    assert formula is None or formula.owner == holder.client_id, where
                    assert holder.taken is not None, where
                    assert (holder.start is None) == (holder.taken.kind == "INITIAL"), where
                if found.no_owner is not None:
                    explained[found.no_owner.code] += 1
    assert explained["UNKNOWN"] == 0
    assert explained.total() > 0


def test_every_shared_queue_of_the_pop_recording_is_explained() -> None:
    tables: Tables = ledger()
    modes: dict[str, set[str | None]] = {}
    explained: Counter[str] = Counter()
    for group in sorted({row["consumer_group"] for row in tables["pop_reach"]}):
        rows = group_rows(tables, group)
        explainer = Explainer(rows)
        for epoch in rows.epochs:
            reaching = [row for row in rows.pop_reach if in_epoch(row, epoch["epoch"])]
            for queue in {entry_of(row) for row in reaching}:
                found = explainer.explain(queue, epoch["from_ms"])
                where = (group, epoch["epoch"], queue, found)
                assert found.agrees, where
                assert found.sharing is not None, where
                whole = queue._replace(queue_id=WHOLE_BROKER)
                same = {queue, whole}
                if queue == whole:
                    same |= {entry_of(r) for r in reaching if entry_of(r)[:2] == queue[:2]}
                takers = {row["client_id"] for row in reaching if entry_of(row) in same}
                assert {taker.client_id for taker in found.sharing.takers} == takers, where
                explained.update(taker.reason.code for taker in found.sharing.takers)
                modes.setdefault(group, set()).add(found.sharing.share_queue_nums)
    assert explained["UNKNOWN"] == 0
    assert explained["POP"] > 1_000
    assert explained["COMPUTED"] > 0  # c2 of pop-mixed pulls
    assert "2" in modes["pop-circ"]
    assert "1" in modes["pop-1"]
    assert "2" not in modes["pop-1"]


def in_epoch(row: Mapping[str, Any], epoch: int) -> bool:
    return row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"])


def entry_of(row: Mapping[str, Any]) -> MessageQueue:
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
