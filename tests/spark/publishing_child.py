"""A process that prints what readers see, and publishes the run that they do not see.

    python -m tests.spark.publishing_child FOLDER DATABASE RUN RUN

`tests.spark.test_killed_publish` kills it. It starts a session, which takes as long as all else and
touches no table, and waits for a line. Then it prints the rows of each view by run, ``begun`` and,
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
    }
    settings = SESSION_SETTINGS | settings
    session = open_session("killed", master="local[2]", settings=settings)
    sys.stdin.readline()
    shown: dict[str, dict[str, int]] = {}
    if session.catalog.databaseExists(database):
        names = [row["viewName"] for row in session.sql(f"SHOW VIEWS IN {database}").collect()]
        shown = {name.removeprefix(CURRENT): {} for name in names if name.startswith(CURRENT)}
        # one query: planning one for each view takes longer than the publish
        of_views = (
            f"SELECT '{name}' AS name, run_id, count(*) AS rows FROM {database}.{CURRENT}{name} "
            "GROUP BY run_id"
            for name in shown
        )
        for row in session.sql(" UNION ALL ".join(of_views)).collect() if shown else ():
            shown[row["name"]][row["run_id"]] = row["rows"]
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
