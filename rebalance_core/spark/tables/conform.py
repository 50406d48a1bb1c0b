"""Any DataFrame as a contract table: types, missing columns, and what could not be read."""

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf

from rebalance_core.checks.columns import SHOWN_CHARACTERS
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import ISSUES_TYPE
from rebalance_core.contracts.technical_columns import RAW, READ_ISSUES, SOURCE, TECHNICAL
from rebalance_core.model.errors import InputRefused

# pandas writes the integers of a column that has gaps as 4.0
_WHOLE = r"^\s*([+-]?\d+)\.0+\s*$"


def conform(table: Table, frame: DataFrame) -> DataFrame:
    """The frame with exactly the columns of ``table`` in order and type, and `TECHNICAL`.

    Missing nullable columns are added as null, unknown ones dropped. A value that is not of the
    contract's type becomes null and a ``BAD_TYPE`` in ``_read_issues``; nothing is nulled
    silently. NaN (a gap, for pandas) is null. A conformed frame is returned as it is.

    Raises:
        InputRefused: columns that may not be null are missing; all of them are named.
    """
    present = {field.name: field.dataType for field in frame.schema.fields}
    missing = [c.name for c in table.columns if not c.nullable and c.name not in present]
    if missing:
        raise InputRefused(
            f"{table.name} lacks the column(s) {', '.join(missing)}; "
            f"it has {', '.join(present) or 'none'}; needed are "
            + ", ".join(c.name for c in table.columns if not c.nullable)
        )
    wanted = {c.name: _data_type(c.type) for c in table.columns}
    if set(TECHNICAL) <= set(present) and all(present.get(n) == t for n, t in wanted.items()):
        return frame.select(*table.column_names, *TECHNICAL)
    values, issues = [], []
    for column in table.columns:
        read = sf.lit(None) if column.name not in present else sf.col(f"`{column.name}`")
        given = present.get(column.name, types.NullType())
        value = _typed(read, given, column.type)
        values.append(value.alias(column.name))
        if given != wanted[column.name] or "<" in column.type:
            bad = read.isNotNull() & ~_is_nan(read, given) & value.isNull()
            issues.append(sf.when(bad, _bad_type(column.name, column.type, read, given)))
    return frame.select(*values, *_technical(frame, present, issues))


def issue(code: str, *message: Column | str) -> Column:
    """One element of an ``issues`` array; null parts of the message read as ``null``."""
    parts = [
        sf.lit(part) if isinstance(part, str) else sf.coalesce(part.cast("STRING"), sf.lit("null"))
        for part in message
    ]
    return sf.struct(sf.lit(code).alias("code"), sf.concat(*parts).alias("message"))


def found_issues(issues: list[Column]) -> Column:
    """The issues that are not null, as an array; empty where there is none."""
    return sf.array_compact(sf.array(*issues).cast(ISSUES_TYPE) if issues else no_issues())


def no_issues() -> Column:
    """An empty ``issues`` array."""
    return sf.array().cast(ISSUES_TYPE)


def json_text_array(text: Column) -> Column:
    """``ARRAY<STRING>`` from JSON text; null if the text is anything else or has a null element."""
    # Spark's parser ignores what follows the first value; inside brackets it cannot
    wrapped = sf.from_json(sf.concat(sf.lit("["), text, sf.lit("]")), "ARRAY<ARRAY<STRING>>")
    return sf.when(sf.size(wrapped) == 1, _without_null_elements(sf.get(wrapped, sf.lit(0))))


def _without_null_elements(array: Column) -> Column:
    return sf.when(~sf.exists(array, lambda element: element.isNull()), array)


def _technical(
    frame: DataFrame, present: dict[str, types.DataType], issues: list[Column]
) -> list[Column]:
    own_source = sf.col("source").cast("STRING") if "source" in present else sf.lit(None)
    source = sf.col(SOURCE) if SOURCE in present else own_source.cast("STRING")
    data = [sf.col(f"`{name}`") for name in present if name not in TECHNICAL]
    raw = sf.col(RAW) if RAW in present else sf.to_json(sf.struct(*data))
    earlier = sf.col(READ_ISSUES) if READ_ISSUES in present else no_issues()
    read_issues = sf.concat(earlier, found_issues(issues))
    return [source.alias(SOURCE), raw.alias(RAW), read_issues.alias(READ_ISSUES)]


def _typed(value: Column, given: types.DataType, sql_type: str) -> Column:
    """The value as the contract's type, null where it is not one."""
    nested = isinstance(given, (types.ArrayType, types.StructType, types.MapType))
    if isinstance(given, types.NullType):
        return sf.lit(None).cast(sql_type)
    if sql_type == "ARRAY<STRING>":
        if isinstance(given, types.ArrayType):
            return _without_null_elements(value.cast(sql_type))
        return sf.lit(None).cast(sql_type) if nested else json_text_array(value.cast("STRING"))
    if sql_type == "MAP<STRING, STRING>":
        if isinstance(given, types.MapType):
            return value.cast(sql_type)
        return sf.lit(None).cast(sql_type) if nested else sf.from_json(value, sql_type)
    if nested:
        return sf.lit(None).cast(sql_type)
    if sql_type == "STRING" or given == _data_type(sql_type):
        return value.cast(sql_type)
    if isinstance(given, types.FractionalType) and sql_type in ("INT", "BIGINT"):
        whole = value.try_cast(sql_type)
        return sf.when(whole == value, whole)
    text = value.cast("STRING")
    if sql_type in ("INT", "BIGINT"):
        text = sf.regexp_replace(text, _WHOLE, "$1")
    return text.try_cast(sql_type)


def _is_nan(value: Column, given: types.DataType) -> Column:
    fractional = isinstance(given, (types.DoubleType, types.FloatType))
    return sf.isnan(value) if fractional else sf.lit(False)


def _bad_type(name: str, sql_type: str, value: Column, given: types.DataType) -> Column:
    nested = isinstance(given, (types.ArrayType, types.StructType, types.MapType))
    text = sf.to_json(value) if nested else value.cast("STRING")
    shown = sf.substring(text, 1, SHOWN_CHARACTERS)
    return issue("BAD_TYPE", f"{name} is '", shown, f"', which is no {sql_type}")


def _data_type(sql_type: str) -> types.DataType:
    # the contracts' few types; comparing with a frame's schema must not depend on null flags
    return {
        "STRING": types.StringType(),
        "BIGINT": types.LongType(),
        "INT": types.IntegerType(),
        "BOOLEAN": types.BooleanType(),
        "DOUBLE": types.DoubleType(),
        "ARRAY<STRING>": types.ArrayType(types.StringType()),
        "MAP<STRING, STRING>": types.MapType(types.StringType(), types.StringType()),
    }[sql_type]
