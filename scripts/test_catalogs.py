"""Publish into, and read from, plain Parquet tables, Delta and Iceberg, each with its real jars.

    test_catalogs.py [parquet] [delta] [iceberg]

The environment lies in .venv-catalogs/, made of the dependency group test-catalogs; jars come from
Maven Central. Runs tests/spark/test_catalogs.py on each; 1 if a test failed.
"""

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
ENVIRONMENT = TREE / ".venv-catalogs"
GROUP = "test-catalogs"


@dataclass(frozen=True)
class Catalog:
    """How a session gets a catalog, and what its tables are made as."""

    database: str
    using: str = ""
    package: str | None = None
    conf: dict[str, str] = field(default_factory=dict)


CATALOGS = {
    "parquet": Catalog("published", "USING parquet"),
    "delta": Catalog(
        "published",
        "USING delta",
        "io.delta:delta-spark_2.13:4.2.0",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
        },
    ),
    "iceberg": Catalog(
        "lake.published",
        package="org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        conf={
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(TREE / "out/test-catalogs/iceberg"),
        },
    ),
}
"""The newest of each that run on one Spark, which is 4.1."""


def python_with_spark() -> Path:
    """The Python of the environment, which is made anew if what it needs has changed."""
    groups = tomllib.loads((TREE / "pyproject.toml").read_text())["dependency-groups"]
    wanted = "\n".join(groups[GROUP])
    stamp, python = ENVIRONMENT / "wanted.txt", ENVIRONMENT / "bin/python"
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *groups[GROUP]], check=True)
        stamp.write_text(wanted)
    return python


def passes(python: Path, name: str) -> bool:
    """Run the tests on a catalog; False if one failed."""
    catalog = CATALOGS[name]
    words = [f"--conf {key}={value}" for key, value in catalog.conf.items()]
    words += [f"--packages {catalog.package}"] if catalog.package else []
    environment = os.environ | {
        "PYTHONPATH": str(TREE),
        "PYSPARK_SUBMIT_ARGS": " ".join([*words, "pyspark-shell"]),
        "TEST_DATABASE": catalog.database,
        "TEST_USING": catalog.using,
    }
    print(f"{name}: {catalog.package or 'no jar'}", flush=True)
    options = ["-q", "-o", "filterwarnings=default", "-p", "no:cacheprovider"]
    command = [str(python), "-m", "pytest", *options, "tests/spark/test_catalogs.py"]
    return subprocess.run(command, cwd=TREE, env=environment, check=False).returncode == 0


def main(names: list[str]) -> int:
    """Run the tests on the catalogs of these names, or on all; 1 if a test failed."""
    unknown = set(names) - set(CATALOGS)
    if unknown:
        sys.exit(f"usage: test_catalogs.py [CATALOG…]; known: {' '.join(CATALOGS)}")
    python = python_with_spark()
    failed = [name for name in names or CATALOGS if not passes(python, name)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
