"""One table into a fresh folder, counted and fingerprinted while it is written."""

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf

from rebalance_core.checks.digest import TableWritten, table_written
from rebalance_core.contracts import ALL_TABLES, Table
from rebalance_core.model.errors import OutputExists
from rebalance_core.spark.tables.task_files import RowsTask, TaskFiles
from rebalance_core.storage.locations import object_store


def write_table(frame: DataFrame, path: str, table_name: str) -> TableWritten:
    """Write the frame as Parquet into ``path/table_name``: the contract's columns in order.

    Count and digest are taken in the pass that writes, on what is written.

    Into an object store tasks write themselves; other places are Spark's.

    Raises:
        OutputExists: the folder is there already.
    """
    table = ALL_TABLES[table_name]
    rows = frame.select(*(sf.col(f"`{c.name}`").cast(c.type) for c in table.columns))
    store = object_store(path)
    if store is not None:
        with TaskFiles(store, [table_name]) as files:
            files.write(rows, RowsTask(files.attempts, table_name))
            return files.close()[table_name]
    target = f"{str(path).rstrip('/')}/{table_name}"
    observation = Observation()
    observed = rows.observe(
        observation,
        sf.count(sf.lit(1)).alias("rows"),
        # the sum of 64-bit hashes of 10^11 rows fits; order and partitioning do not matter
        sf.sum(row_hash(table).cast("DECIMAL(20, 0)")).alias("total"),
    )
    try:
        observed.write.mode("errorifexists").parquet(target)
    except AnalysisException as error:
        if error.getCondition() == "PATH_ALREADY_EXISTS":
            raise OutputExists(f"{target} exists already; write into a fresh folder") from error
        raise
    seen = observation.get
    return table_written(seen["rows"], int(seen["total"] or 0))


def row_hash(table: Table) -> Column:
    """A 64-bit hash of all columns of the table."""
    parts: list[Column] = []
    for column in table.columns:
        value = sf.col(column.name)
        parts.append(value.isNull())  # xxhash64 passes over a null
        if column.type.startswith("MAP"):
            value = sf.array_sort(sf.map_entries(value))  # the order of entries means nothing
        if "<" in column.type:
            # the hash of an array does not tell [null, a] from [a, null]; its JSON does
            value = sf.to_json(value, {"ignoreNullFields": "false"})
        parts.append(value)
    return sf.xxhash64(*parts)
