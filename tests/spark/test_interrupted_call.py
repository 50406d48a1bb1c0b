"""A test that the time limit interrupts leaves a session that answers."""

import pytest
from pyspark.sql import SparkSession


@pytest.mark.timeout(1, func_only=True)
@pytest.mark.xfail(reason="the limit is meant to interrupt it", raises=pytest.fail.Exception)
def test_a_call_that_is_interrupted(spark: SparkSession) -> None:
    assert spark._jvm is not None
    spark._jvm.java.lang.Thread.sleep(4000)


def test_the_next_test_gets_its_own_answers(spark: SparkSession) -> None:
    assert [spark.range(rows).count() for rows in (3, 5)] == [3, 5]
