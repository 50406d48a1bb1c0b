"""Substitutes for what older Spark versions lack, so that all other code treats 3.5 to 4.3 as a
single platform.

Other code uses only features that all versions support; code that must differ is here. A client may
be connected to a server of a different version, so what the server runs depends on the session's
`version`, not on the methods of the client's frames.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rebalance_core.model.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

try:
    from py4j.protocol import Py4JJavaError
except ModuleNotFoundError:  # pyspark-client, which has no JVM
    JVM_ERRORS: tuple[type[Exception], ...] = ()
else:
    JVM_ERRORS = (Py4JJavaError,)

OLDEST = (3, 5)
SUPPORTED = "3.5 to 4.3"

_BY_ID = (4, 1)
"""The first version with `DataFrame.repartitionById`."""


def refuse_too_old(version: str | None = None) -> None:
    """Raise `UsageError` for a Spark below `OLDEST`.

    Args:
        version: The version of a session; None for the installed pyspark, which is not imported,
            because an old pyspark may fail on this Python.
    """
    installed = version or _installed()
    if installed is not None and _numbers(installed) < OLDEST:
        where = "pyspark is" if version is None else "the session's Spark is"
        raise UsageError(
            f"{where} {installed}, which is too old: valid is {SUPPORTED}; install such a version "
            "(pip install 'pyspark>=3.5,<4.4') or name a --master with a newer Spark"
        )


def _installed() -> str | None:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None  # the import will raise the reason
    # through its loader, because spark-submit's pyspark is in a zip; source loaders have get_data
    path = spec.origin.replace("__init__.py", "version.py")
    match = re.search(r"""["'](\d[^"']*)""", spec.loader.get_data(path).decode())  # type: ignore[union-attr]
    return match and match[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def require_connect() -> None:
    """Raise `ModuleNotFoundError` where a Connect client lacks a package.

    pyspark's own message differs by version and names one package at a time.
    """
    for name in ("google.rpc", "grpc_status"):
        import_module(name)


def context_of(session: SparkSession) -> SparkContext | None:
    """Return the session's context, or None under Spark Connect, which has none."""
    try:
        return session.sparkContext
    except (AttributeError, NotImplementedError):  # from 4.0 on, earlier
        return None


def arrow_of(frame: DataFrame) -> pa.Table:
    """Return all rows of a small frame: `DataFrame.toArrow` in 4.0 and later.

    Raises:
        PySparkException: Not all rows arrived.
    """
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    import pyarrow as pa

    old: Any = frame
    if context_of(frame.sparkSession) is None:
        client = old.sparkSession.client
        return client.to_table(old._plan.to_proto(client))[0]
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = old._collect_as_arrow()
    return pa.Table.from_batches(
        batches, batches[0].schema if batches else to_arrow_schema(frame.schema)
    )


def by_number(frame: DataFrame, tasks: int, column: str) -> DataFrame:
    """Return the frame with each row in the task of its number, modulo the number of tasks.

    This is `DataFrame.repartitionById` in 4.1 and later. Earlier versions partition by the Murmur3
    hash of a key, so a task's key is a number that Murmur3 maps to the task.

    Args:
        frame: Any frame.
        tasks: The number of tasks.
        column: Numbers from 0 on, INT.
    """
    from pyspark.sql import functions as sf

    number = sf.pmod(sf.col(column), sf.lit(tasks))
    if _numbers(frame.sparkSession.version) >= _BY_ID:
        return frame.repartitionById(tasks, number)
    keys = sf.array(*(sf.lit(key_of_task(task)) for task in range(tasks)))
    return frame.repartition(tasks, sf.element_at(keys, number + 1))


_BITS = 0xFFFFFFFF
_SEED = 42
"""The seed of Spark's HashPartitioning."""


def key_of_task(task: int) -> int:
    """Return the INT whose Murmur3 hash, by Spark's ``Murmur3_x86_32.hashInt``, is this number.

    Each step of Murmur3 on four bytes is invertible.

    >>> key_of_task(0), key_of_task(1)
    (-1693959553, -1910889132)
    """
    mixed = _unshifted(task, 16)
    mixed = _unshifted(mixed * pow(0xC2B2AE35, -1, 1 << 32) & _BITS, 13)
    mixed = _unshifted(mixed * pow(0x85EBCA6B, -1, 1 << 32) & _BITS, 16)
    mixed ^= 4  # the length in bytes
    mixed = (mixed - 0xE6546B64) * pow(5, -1, 1 << 32) & _BITS
    key = _turned(mixed, 32 - 13) ^ _SEED
    key = _turned(key * pow(0x1B873593, -1, 1 << 32) & _BITS, 32 - 15)
    key = key * pow(0xCC9E2D51, -1, 1 << 32) & _BITS
    return key - (1 << 32) if key >> 31 else key


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & _BITS


def _unshifted(number: int, bits: int) -> int:
    """Invert ``number ^ number >> bits``."""
    result = number
    for _ in range(32 // bits):
        result = number ^ result >> bits
    return result


def is_condition(error: Exception, name: str) -> bool:
    """Return True for a Spark error with this condition.

    ``PySparkException.getCondition`` exists from 4.0 on, so a 3.5 Connect client lacks it; the text
    of every error contains the condition.
    """
    return f"[{name}]" in str(error)
