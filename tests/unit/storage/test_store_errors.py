"""What stores answer, as pyarrow words it."""

import errno
import os

import pytest

from rebalance_core.model.errors import InputRefused, StoreFailed
from rebalance_core.storage.store_answers import (
    HadoopFailed,
    is_full,
    is_of_store,
    reason_of,
    refusal,
    store_failed,
)

KEYS = {"AWS_PROFILE": "nightly"}


def answer(code: str, text: str, what: str = "ListObjectsV2") -> OSError:
    return OSError(
        f"When listing objects under key 'x/' in bucket 'b': AWS Error {code} during {what} "
        f"operation: {text}"
    )


@pytest.mark.parametrize(
    ("error", "environment", "reason"),
    [
        (
            answer("NO_SUCH_BUCKET", "The specified bucket does not exist (Request ID: 1)"),
            {},
            "bucket b does not exist; a run does not create it",
        ),
        (answer("ACCESS_DENIED", "No response body."), KEYS, "bucket b is denied (ACCESS_DENIED)"),
        (
            answer("INVALID_ACCESS_KEY_ID", "It does not exist"),
            {},
            "access to bucket b is denied (INVALID_ACCESS_KEY_ID); AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY are not set",
        ),
        (
            answer("NETWORK_CONNECTION", "curlCode: 7, Could not connect to server"),
            {"AWS_ENDPOINT_URL": "http://h:1"},
            "http://h:1 does not answer (curlCode: 7, Could not connect to server); see "
            "AWS_ENDPOINT_URL",
        ),
        (
            answer("NETWORK_CONNECTION", "curlCode: 6"),
            {},
            "Amazon S3 does not answer (curlCode: 6)",
        ),
        (
            answer("SLOW_DOWN", "Please reduce your request rate."),
            KEYS,
            "the store throttles (Amazon S3: Please reduce your request rate.); try again later",
        ),
        (
            answer("UNKNOWN (HTTP status 429)", "No response body.", "HeadObject"),
            {"AWS_ENDPOINT_URL": "http://h:1"},
            "the store throttles (http://h:1: No response body.); try again later",
        ),
        (
            answer("INTERNAL_FAILURE", "We encountered an internal error"),
            {},
            "Amazon S3 reports an internal error (INTERNAL_FAILURE: We encountered an internal "
            "error); try again",
        ),
        (
            answer("UNKNOWN (HTTP status 301)", "No response body.", "HeadObject"),
            KEYS,
            "bucket b is in another region; set AWS_REGION to it",
        ),
        (
            answer("UNKNOWN (HTTP status 400)", "No response body.", "HeadObject"),
            KEYS,
            "UNKNOWN (HTTP status 400): No response body.",
        ),
    ],
)
def test_a_reason_states_what_to_do(
    error: OSError, environment: dict[str, str], reason: str
) -> None:
    assert is_of_store(error)
    assert reason in reason_of(error, environment)


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        ("NETWORK_CONNECTION", True),
        ("SLOW_DOWN", True),
        ("INTERNAL_FAILURE", True),
        ("UNKNOWN (HTTP status 503)", True),
        ("UNKNOWN (HTTP status 301)", False),
        ("NO_SUCH_BUCKET", False),
        ("ACCESS_DENIED", True),
    ],
)
def test_a_store_is_at_fault_or_who_asks(code: str, failed: bool) -> None:
    error = answer(code, "Status 500 is in no text of theirs")
    assert store_failed(error) == failed
    assert refusal(error, "x cannot be written").exit_code == (6 if failed else 2)
    assert refusal(error, "x cannot be read", InputRefused).exit_code == (6 if failed else 4)


def test_other_errors_keep_their_own_words() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x")
    assert not is_of_store(full)
    assert is_full(full)
    assert not is_full(OSError("HDFS list failed"))
    assert reason_of(full) == "No space left on device"
    assert reason_of(OSError("HDFS list failed\nmore")) == "HDFS list failed"


def test_a_store_behind_hadoop() -> None:
    error = HadoopFailed("ConnectException: Connection refused")
    assert is_of_store(error)
    assert store_failed(error)
    refused = refusal(error, "--collection abfss://c@h/f cannot be read", InputRefused)
    assert isinstance(refused, StoreFailed)
    assert str(refused).endswith("cannot be read: ConnectException: Connection refused")
    assert not store_failed(FileNotFoundError(errno.ENOENT, "no such file"))
