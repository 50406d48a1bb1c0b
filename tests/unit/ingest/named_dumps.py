"""Collections of dumps under given names."""

from pathlib import Path
from typing import Any

from rebalance_core.ingest.in_process import Ingested, ingest_collection

AT = 1795231735000
CONNECTION = f"""{"#ClientId":<36} {"#ClientAddr":<22} {"#Language":<10} #Version
{"10.0.0.1@7#2526074142185":<36} {"10.0.0.1:5":<22} {"JAVA":<10} V5_3_3

Below is subscription:
{"#Topic":<20} #SubExpression
{"T":<20} *

ConsumeType: CONSUME_PASSIVELY
MessageModel: CLUSTERING
ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET
"""
NAMED = f"{AT}-consumerConnection-order-service-b.txt"


def of_dumps(folder: Path, dumps: dict[str, str], brokers: str = '"b"') -> Ingested:
    """Ingest dumps by name."""
    folder.mkdir(exist_ok=True)
    (folder / "collection.toml").write_text(f'cluster = "C"\n[expected]\nbrokers = [{brokers}]\n')
    for name, text in dumps.items():
        path = folder / "mqadmin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ingest_collection(folder)


def groups(done: Any) -> set[str]:
    """Return every group that a table names."""
    rows = (row for table in done.tables.values() for row in table)
    return {row["consumer_group"] for row in rows if row.get("consumer_group")}
