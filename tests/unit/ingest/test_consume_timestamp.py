"""The timestamp of CONSUME_FROM_TIMESTAMP as a client writes it: local time, to the second."""

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_core.contracts.time_ranges import TIME_RANGES
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.group_settings_row import (
    FROM_TIMESTAMP,
    consume_timestamp,
    local_seconds_ms,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsGiven


@pytest.mark.parametrize(
    ("text", "zone", "at_ms"),
    [
        ("20261121030558", "UTC", 1_795_230_358_000),
        ("20261121110558", "Asia/Shanghai", 1_795_230_358_000),
        ("19700101000000", "UTC", 0),
        ("19700101000000", "Asia/Shanghai", 0),  # "from the beginning"
        ("00010101000000", "UTC", 0),
        ("99991231235959", "America/Los_Angeles", 253_402_329_599_000),
        ("2026", "UTC", None),
        (None, "UTC", None),
    ],
)
def test_a_consume_timestamp_is_one_that_the_input_may_have(
    text: str | None, zone: str, at_ms: int | None
) -> None:
    assert local_seconds_ms(text, zone) == at_ms
    good = TIME_RANGES["consume_timestamp_ms"]
    assert at_ms is None or good.first_ms <= at_ms < good.end_ms


STARTED_MS = 1_795_232_158_000


def shown(client: str, text: str | None, start_ms: int | None = STARTED_MS) -> Any:
    values = {
        "client_file": client,
        "consume_from_where": FROM_TIMESTAMP,
        "consume_timestamp": text,
        "start_ms": start_ms,
    }
    return Evidence("group", "g", "client", 1, "mqadmin", 0, "mqadmin/1:1", values)


def asked(
    *pieces: Any, members: int = 2, zone: str | None = "UTC", given_ms: int | None = None
) -> tuple[int | None, list[str]]:
    given: ConsumerGroupsGiven = {} if given_ms is None else {"consume_timestamp_ms": given_ms}
    context = ClusterContext("c", 0, STARTED_MS, group_rows={"g": given})
    at_ms, findings = consume_timestamp("g", pieces, members, lambda _: zone, context)
    return at_ms, [row["rule_id"] for row in findings]


SET = "20261121020000"
SET_MS = 1_795_226_400_000
HALF_AN_HOUR_BEFORE = "20261121030556"
ITS_MS = 1_795_230_356_000


def test_the_time_that_all_members_ask_for_is_the_group_s() -> None:
    assert asked(shown("a", SET), shown("b", SET)) == (SET_MS, [])
    assert asked(shown("a", SET), given_ms=7) == (SET_MS, [])


def test_no_time_is_right_for_members_that_ask_for_several() -> None:
    unknown = (None, ["INGEST_TIMESTAMP_UNKNOWN"])
    assert asked(shown("a", SET), shown("b", "20261121030000")) == unknown
    assert asked(shown("a", SET), shown("b", "20261121030000"), given_ms=7) == (7, [])


def test_the_default_is_another_time_for_every_process() -> None:
    """The dump shows the process that runs; those before it read from half an hour before them."""
    only = shown("a", HALF_AN_HOUR_BEFORE)
    assert asked(only, members=1) == (ITS_MS, [])
    assert asked(only, members=2) == (None, ["INGEST_TIMESTAMP_UNKNOWN"])
    assert asked(shown("a", HALF_AN_HOUR_BEFORE, start_ms=None)) == (ITS_MS, [])


def test_a_time_of_a_client_whose_zone_is_not_said_is_an_assumption() -> None:
    assert asked(shown("a", SET), zone=None) == (SET_MS, ["INGEST_ASSUMED"])
    assert asked(shown("a", SET), zone=None, given_ms=7) == (7, [])


def test_a_time_that_no_dump_shows_is_unknown_unless_it_is_given() -> None:
    assert asked(shown("a", None)) == (None, ["INGEST_TIMESTAMP_UNKNOWN"])
    assert asked(given_ms=7) == (7, [])
