"""No column of a redacted table names a client."""

import json
from typing import Any

import pyarrow as pa

from rebalance_core.audit.redact import pseudonym
from rebalance_core.contracts import LEDGER_TABLES, REJECTED, SIMULATED_TABLES
from rebalance_core.contracts.rows import RejectedRow
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.process.redacted_rows import redacted
from tests.recordings.tables import replayed

PLACES = {
    "mqadmin/5-consumerStatus-g/10.0.0.1@7.txt:8": "mqadmin/5-consumerStatus-g/(redacted):8",
    "mqadmin/5-consumerStatus-g/worker0xq7.txt:8": "mqadmin/5-consumerStatus-g/(redacted):8",
    "mqadmin/5-consumerStatus-g/a worker": "mqadmin/5-consumerStatus-g/(redacted)",
    "clients/shop-pod/rocketmq_client.log:3": "clients/(redacted)/rocketmq_client.log:3",
    "brokers/broker-a/broker.log.gz:419": "brokers/broker-a/broker.log.gz:419",
    "nodes/10.0.0.1/x.log:2": "nodes/(redacted)/x.log:2",
}


def test_the_place_of_a_rejected_row_names_no_client() -> None:
    issue = {"code": "BAD_TYPE", "message": "client_id is 'x'"}
    rows: list[dict[str, Any]] = [
        {"source": p, "raw": "text", "issues": [issue] * n} for n, p in enumerate(PLACES)
    ]
    rows.append({"source": None, "raw": None, "issues": None})
    shown: list[RejectedRow] = rows_of_arrow(redacted(batch_of_rows(REJECTED, rows), "s"))
    assert [row["source"] for row in shown] == [*PLACES.values(), None]
    assert {row["raw"] for row in shown} == {"(redacted)"}
    hidden = {"code": "BAD_TYPE", "message": "(redacted)"}
    assert [row["issues"] for row in shown] == [*([hidden] * n for n in range(len(PLACES))), None]


def test_a_redacted_ledger_names_the_clients_alike_in_every_table() -> None:
    ledger = replayed("pathologies")
    clients = {row["client_id"] for row in ledger["memberships"]}
    names = {pseudonym(client, "s") for client in clients}
    for name in SIMULATED_TABLES:
        batch = batch_of_rows(LEDGER_TABLES[name], ledger[name])
        shown = redacted(batch, "s")
        assert shown.schema.equals(batch.schema)
        text = json.dumps(rows_of_arrow(shown))
        assert [word for word in clients if word in text] == []
        if "client_id" in batch.schema.names:
            assert set(shown["client_id"].drop_null().to_pylist()) <= names
    assert len(names) == len(clients) > 3


def test_coded_names_stay_coded() -> None:
    """A task redacts rows before they are written; several rows share a name."""
    rows = batch_of_rows(
        LEDGER_TABLES["ownership"], [{"topic": "T", "client_id": c} for c in ("a", None, "b", "a")]
    )
    coded = pa.RecordBatch.from_arrays(
        [c.dictionary_encode() if c.type == pa.string() else c for c in rows.columns],
        names=rows.schema.names,
    )
    shown = redacted(coded, "s")
    assert shown.schema == coded.schema
    assert shown.to_pylist() == redacted(rows, "s").to_pylist()
    assert shown["client_id"].to_pylist()[::2] == [pseudonym("a", "s"), pseudonym("b", "s")]


def test_the_processes_that_hold_a_queue_have_no_names() -> None:
    states = [{"queue_id": n, "channel_ids": of} for n, of in enumerate(([], ["10.0.0.1:9", None]))]
    shown = redacted(batch_of_rows(LEDGER_TABLES["queue_states"], states), "s")
    assert shown["channel_ids"].to_pylist() == [[], [None, None]]
