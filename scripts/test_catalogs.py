"""Publish into, and read from, plain Parquet tables, Delta and Iceberg, each with its real jars.

    python -m scripts.test_catalogs [parquet] [delta] [iceberg]

Environments are in .venv-catalogs/, one per Spark, made from the dependency group test-catalogs;
jars come from Maven Central. Runs tests/spark/test_catalogs.py on each; exits with 1 if a test
failed.
"""

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from scripts.environments import python_with

TREE = Path(__file__).resolve().parent.parent
ENVIRONMENTS = TREE / ".venv-catalogs"
GROUP = "test-catalogs"
LIMIT = ["-o", "timeout=3600"]
"""The longest that a test may take, in seconds: Delta has several times the stages of Parquet, and
on a busy machine ten minutes are not enough for them.
"""


@dataclass(frozen=True)
class Catalog:
    """A session's catalog, and the format of its tables."""

    spark: str
    database: str
    using: str = ""
    package: str | None = None
    conf: dict[str, str] = field(default_factory=dict)


CATALOGS = {
    "parquet": Catalog("4.1", "published", "USING parquet"),
    "delta": Catalog(
        "4.0",
        "published",
        "USING delta",
        "io.delta:delta-spark_2.13:4.0.0",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
        },
    ),
    "iceberg": Catalog(
        "4.1",
        "lake.published",
        package="org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        conf={
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(TREE / "out/test-catalogs/iceberg"),
        },
    ),
}
"""Delta up to 4.2.0 cannot add a column on Spark 4.1.4: it wants a class, IgnoreCachedData, that
is no longer there.
"""


def passes(name: str) -> bool:
    """Run the tests on a catalog; return False if a test failed."""
    catalog = CATALOGS[name]
    groups = tomllib.loads((TREE / "pyproject.toml").read_text())["dependency-groups"]
    wanted = [f"pyspark=={catalog.spark}.*", *groups[GROUP]]
    python = python_with(ENVIRONMENTS / catalog.spark, wanted)
    words = [f"--conf {key}={value}" for key, value in catalog.conf.items()]
    words += [f"--packages {catalog.package}"] if catalog.package else []
    environment = os.environ | {
        "PYTHONPATH": str(TREE),
        "PYSPARK_SUBMIT_ARGS": " ".join([*words, "pyspark-shell"]),
        "TEST_DATABASE": catalog.database,
        "TEST_USING": catalog.using,
    }
    print(f"{name}: Spark {catalog.spark}, {catalog.package or 'no jar'}", flush=True)
    options = ["-q", "-o", "filterwarnings=default", "-p", "no:cacheprovider", *LIMIT]
    command = [str(python), "-m", "pytest", *options, "tests/spark/test_catalogs.py"]
    return subprocess.run(command, cwd=TREE, env=environment, check=False).returncode == 0


def main(names: list[str]) -> int:
    """Run the tests on the catalogs of these names, or on all; return 1 if a test failed."""
    unknown = set(names) - set(CATALOGS)
    if unknown:
        sys.exit(f"usage: test_catalogs.py [CATALOG…]; known: {' '.join(CATALOGS)}")
    failed = [name for name in names or CATALOGS if not passes(name)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
