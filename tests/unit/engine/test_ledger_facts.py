"""What a summary counts of a ledger."""

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.table_writer import LedgerFacts


def epoch(group: str, orphaned: int) -> dict[str, object]:
    row = dict.fromkeys(LEDGER_TABLES["epochs"].column_names, 0)
    return row | {
        "cluster": "c",
        "consumer_group": group,
        "orphaned": orphaned,
        "status": "EMPTY",
        "from_ms": 5,
        "causes": [],
        "to_ms": None,
        "transient": False,
    }


def test_rocketmqs_own_groups_are_counted_and_are_no_worst_groups() -> None:
    facts = LedgerFacts()
    rows = [epoch("CID_RMQ_SYS_TRANS", 9), epoch("orders", 1), epoch("TOOLS_CONSUMER", 2)]
    batch = batch_of_rows(LEDGER_TABLES["epochs"], rows)
    assert isinstance(batch, pa.RecordBatch)
    facts.add("epochs", batch)
    totals = facts.totals(5)
    assert (totals["groups"], totals["orphaned"]) == (3, 12)
    assert [row["consumer_group"] for row in totals["worst_groups"]] == ["orders"]
