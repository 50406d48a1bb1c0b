"""`python -m tests.bench.runs.empty_application DIR`: the least a Spark job on these files costs.

It starts Spark as the jobs do, reads every file once and writes one row.
"""

import sys
import tempfile
from pathlib import Path

from pyspark.sql import functions as sf

from rebalance_core.cli.run.session import open_session


def main() -> None:
    """Read all files of the folder as what they are; write how many rows there were."""
    spark = open_session("empty application", rows_in_jvm=False)  # as `simulate` does
    files = [path for path in Path(sys.argv[1]).rglob("*") if path.is_file()]
    rows = None
    for ending in sorted({path.suffix for path in files} & {".jsonl", ".parquet"}):
        paths = [f"file://{path}" for path in files if path.suffix == ending]
        # Lines as they are: nothing is parsed; every column of Parquet is read.
        text = ending == ".jsonl"
        for frame in [spark.read.text(paths)] if text else map(spark.read.parquet, paths):
            counted = frame.select(sf.count(sf.struct(*frame.columns)).alias("rows"))
            rows = counted if rows is None else rows.union(counted)
    assert rows is not None, "no file to read"
    with tempfile.TemporaryDirectory() as folder:
        rows.agg(sf.sum("rows")).coalesce(1).write.parquet(f"file://{folder}/one")
    spark.stop()


if __name__ == "__main__":
    main()
