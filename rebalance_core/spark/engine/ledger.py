"""The result of a simulation: its tables as DataFrames by attribute."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import CONTRACT_VERSION, LEDGER_TABLES
from rebalance_core.contracts.run_record import RUN_NAME, refuse_unreadable
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.tables.hadoop_folder import HadoopFolder


@dataclass(frozen=True, eq=False)
class Ledger:
    """One DataFrame per ledger table, with the contract's columns; lazy.

    A simulation's ledger is a context manager: the rows of its tables, and the input's, are kept in
    memory and on disk until it is closed. Afterwards its tables can still be used; they are made
    anew. Ledgers of one and the same input share its checked rows, and with the same options all
    of theirs: the first one closed releases them.
    """

    epochs: DataFrame
    ownership: DataFrame
    diffs: DataFrame
    pull_starts: DataFrame
    memberships: DataFrame
    consumer_load: DataFrame
    group_metrics: DataFrame
    pop_reach: DataFrame
    pop_metrics: DataFrame
    rejected: DataFrame
    replayed: DataFrame | None = None
    """Groups the kernels left to the replay (cluster, consumer_group, reason); None if read."""
    kept: tuple[DataFrame, ...] = ()
    """What the tables are computed from and is kept until `close`."""

    @classmethod
    def read(cls, spark: SparkSession, path: str) -> Ledger:
        """The ledger a finished run wrote into ``path``.

        Columns that an older contract did not have are null, its missing tables empty.

        Raises:
            InputRefused: the folder is not a finished result, its contract is newer than this
                library's or older than the one before, or a table is missing.
        """
        folder = str(path).rstrip("/")
        written_by = _contract_version(folder, _run_record(spark, folder))
        try:
            tables: dict[str, Any] = {
                name: spark.read.schema(table.ddl).parquet(f"{folder}/{name}")
                if table.since <= written_by
                else spark.createDataFrame([], table.plain_ddl)
                for name, table in LEDGER_TABLES.items()
            }
            return cls(**tables)
        except AnalysisException as error:
            first_line = str(error).strip().splitlines()[0]
            raise InputRefused(f"{folder} lacks a table of the ledger: {first_line}") from error

    def frames(self) -> dict[str, DataFrame]:
        """The DataFrames by table name, in the contract's order."""
        return {name: getattr(self, name) for name in LEDGER_TABLES}

    def close(self) -> None:
        """Release what is kept."""
        for frame in self.kept:
            frame.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _run_record(spark: SparkSession, folder: str) -> str | None:
    """The text of the folder's ``_run.json``; None if there is none."""
    if "://" not in folder or folder.startswith("file:"):
        record = Path(unquote(folder.removeprefix("file:"))) / RUN_NAME
        return record.read_text("utf-8") if record.is_file() else None
    # Spark's own readers skip names that begin with _, so a remote one is read through Hadoop
    return HadoopFolder(folder, spark).read_text(RUN_NAME)


def _contract_version(folder: str, text: str | None) -> int:
    """What the record says, once it is known to be one that can be read."""
    try:
        record = None if text is None else json.loads(text)
    except ValueError as error:
        raise InputRefused(f"{folder}/{RUN_NAME} is not JSON: {error}") from error
    foreign = record is not None and not isinstance(record, dict)
    refuse_unreadable({} if foreign else record, folder, CONTRACT_VERSION)
    assert record is not None
    version: int = record["contract_version"]
    return version
