import pytest

from rebalance_core.cli.run.jvm import explain_spark_failure, is_spark_failure

IN_A_WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/tmp/rebalance_core/kernels/avg.py", line 3, in kernel
    raise InputRefused("no broker")
rebalance_core.model.errors.{0}: {1}

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: java.io.IOException: stream
"""


@pytest.mark.parametrize(
    ("text", "line", "exit_code"),
    [
        (IN_A_WORKER.format("InputRefused", "no broker"), "InputRefused: no broker", 4),
        (IN_A_WORKER.format("KeyError", "'x'"), "KeyError: 'x'", 1),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x.\nmore", "[PATH_NOT_FOUND] Path does", 4),
        (
            "An error occurred while calling o5.load.\n: java.lang.OutOfMemoryError: heap\n\tat x",
            ": java.lang.OutOfMemoryError: heap"[2:],
            1,
        ),
        ("java.io.IOException: No space left on device", "java.io.IOException: No space", 2),
        ('No FileSystem for scheme "s3"', 'No FileSystem for scheme "s3"', 2),
        ("java.net.UnknownHostException: nn", "java.net.UnknownHostException: nn", 2),
        ("", "Spark gave no message", 1),
    ],
)
def test_the_one_line_that_matters(text: str, line: str, exit_code: int) -> None:
    failure = explain_spark_failure(Exception(text))
    assert failure.line.startswith(line)
    assert failure.exit_code == exit_code


def test_what_the_operator_reads() -> None:
    text = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a.gz. SQLSTATE"
    refused = explain_spark_failure(Exception(f"{text}\nCaused by: java.io.EOFException"))
    assert (str(refused), refused.exit_code) == ("/a.gz cannot be read: truncated gzip", 4)
    died = explain_spark_failure(Exception("Error while sending or receiving"))
    assert str(died).splitlines() == [
        "Spark failed: Error while sending or receiving",
        "  hint: the JVM died; was it killed for memory?",
    ]


def test_other_errors_are_not_sparks() -> None:
    assert not is_spark_failure(ValueError("x"))
