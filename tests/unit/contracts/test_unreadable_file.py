"""Texts as Spark 4 words them, shortened: the condition, the file, the causes, outermost first."""

import pytest

from rebalance_core.contracts.packed_files import unreadable_file, wrong_head

TEXT = """An error occurred while calling o12.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed
org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
{uri}.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecution.scala:8)
Caused by: {cause}
\tat org.apache.hadoop.io.compress.DecompressorStream.decompress(DecompressorStream.java:1)
"""


@pytest.mark.parametrize(
    ("uri", "cause", "said"),
    [
        ("file:///a/b.jsonl.gz", "java.io.EOFException: Unexpected end of input stream",
         "/a/b.jsonl.gz cannot be read: truncated gzip"),
        ("file:///a/b.jsonl.gz", "java.io.EOFException",
         "/a/b.jsonl.gz cannot be read: truncated gzip"),
        ("s3a://b/x%20y%25.csv.gz", "java.io.IOException: not a gzip file",
         "s3a://b/x y%.csv.gz cannot be read: not a gzip"),
        ("file:///a.gz", "java.io.IOException: gzip stream CRC failure",
         "/a.gz cannot be read: damaged gzip (gzip stream CRC failure)"),
        ("file:///p.bz2", "java.io.IOException: unexpected end of stream",
         "/p.bz2 cannot be read: truncated bzip2"),
        ("file:///p.deflate", "java.io.EOFException: Unexpected end of input stream",
         "/p.deflate cannot be read: truncated deflate"),
        ("file:///p.zst", "java.lang.RuntimeException: native zStandard library not available",
         "/p.zst cannot be read: damaged zstd (native zStandard library not available)"),
        ("hdfs://n/part-0", "org.apache.hadoop.hdfs.BlockMissingException: Could not obtain block",
         "hdfs://n/part-0 cannot be read: Could not obtain block"),
        ("file:///p.snappy.parquet", "java.io.EOFException: Reached the end of stream",
         "/p.snappy.parquet cannot be read: truncated file"),
    ],
)  # fmt: skip
def test_the_file_and_what_is_wrong_with_it(uri: str, cause: str, said: str) -> None:
    assert unreadable_file(TEXT.format(uri=uri, cause=cause)) == said


def test_other_failures_are_about_no_file() -> None:
    assert unreadable_file("java.io.EOFException: Unexpected end of input stream") is None
    assert unreadable_file("") is None


@pytest.mark.parametrize(
    ("name", "head", "said"),
    [
        ("a.gz", b"\x1f\x8b\x08\x00", None),
        ("a.gz", b"", "truncated gzip"),
        ("a.gz", b"\x1f", "truncated gzip"),
        ("a.gz", b"{", "not a gzip"),
        ("a.bz2", b"BZh9", None),
        ("a.bz2", b"{}", "not a bzip2"),
        ("a.jsonl", b"", None),
        ("gz", b"", None),
    ],
)
def test_the_first_bytes(name: str, head: bytes, said: str | None) -> None:
    assert wrong_head(name, head) == said
