"""A process that prints what readers see, and publishes the run that they do not see.

    python -m tests.spark.publishing_child FOLDER DATABASE RUN RUN

`tests.spark.test_killed_publish` kills it. It prints the rows of each view by run, ``begun`` and,
after the publish, ``ended`` with the seconds that it took.
"""

import json
import sys
import time
from pathlib import Path

from rebalance_core.cli.run.session import open_session
from rebalance_core.contracts.published import CURRENT
from rebalance_core.spark.catalogs import publish
from tests.conftest import SESSION_SETTINGS


def main(folder: str, database: str, *runs: str) -> None:
    """Look, and publish."""
    metastore = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    settings = {
        "spark.sql.warehouse.dir": f"{folder}/tables",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
        "spark.sql.codegen.factoryMode": "FALLBACK",  # rows of `listTables` need code
    }
    settings = SESSION_SETTINGS | settings
    session = open_session("killed", master="local[2]", settings=settings)
    shown: dict[str, dict[str, int]] = {}
    if session.catalog.databaseExists(database):
        for table in session.catalog.listTables(database):
            if table.name.startswith(CURRENT):
                rows = session.table(f"{database}.{table.name}").groupBy("run_id").count()
                counts = {row["run_id"]: row["count"] for row in rows.collect()}
                shown[table.name.removeprefix(CURRENT)] = counts
    print(json.dumps(shown), flush=True)
    seen = {run_id for counts in shown.values() for run_id in counts}
    (other, *_) = (
        run for run in runs if json.loads(Path(run, "_run.json").read_text())["run_id"] not in seen
    )
    print("begun", flush=True)
    began = time.monotonic()
    publish(session, other, database)
    print(f"ended {time.monotonic() - began:.1f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
