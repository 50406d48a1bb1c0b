"""Spark's exceptions, and the line that states the cause."""

from pyspark.errors import PySparkException

from rebalance_core.spark.spark_versions import JVM_ERRORS

OF_SPARK: tuple[type[Exception], ...] = (PySparkException, *JVM_ERRORS)
"""Errors raised by PySpark itself, or through its JVM."""


def cause_of(error: BaseException) -> str:
    """Return the line that states the cause, since the whole text may be a Java stack trace."""
    lines = [line.strip().lstrip(": ") for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("An error occurred while calling")]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return [type(error).__name__, *said[:1], *causes][-1].removeprefix("Caused by: ")
