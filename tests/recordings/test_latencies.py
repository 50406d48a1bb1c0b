"""``latencies`` of the recordings, beside what the clients logged of the same moments."""

from statistics import median

import pytest

from rebalance_core.contracts.observed import (
    LATENCY_KINDS,
    QUEUE_TAKEN,
    REGISTRATION,
    START_UP,
    UNREGISTRATION,
)
from rebalance_core.timing.delays import REGISTRATION_STEP
from rebalance_core.timing.delays import START_UP as SIMULATED
from tests.recordings.tables import DATA, RECORDINGS, Row, ingested_recording
from tests.recordings.timings.client_logs import marks_of


def latencies(name: str, kind: str) -> list[Row]:
    rows = ingested_recording(name).tables["latencies"]
    return [dict(row) for row in rows if row["kind"] == kind]


@pytest.mark.parametrize("name", ["join-leave", "timing"])
def test_steps_of_a_join_are_as_far_apart_as_the_newcomer_is_notified(name: str) -> None:
    """A broker notifies the newcomer, too, as soon as it has registered it."""
    marks = [mark for mark in marks_of(name) if mark.what == "notify"]
    steps = latencies(name, REGISTRATION)
    assert len(steps) >= 5
    for step in steps:
        near = [
            mark.at_ms - step["at_ms"]
            for mark in marks
            if mark.fields["broker"] == step["broker_name"]
            and mark.fields["group"] == step["consumer_group"]
            and -5 <= mark.at_ms - step["at_ms"] <= 100
        ]
        assert near, step


def test_every_row_ends_at_a_line_of_a_log_and_is_of_a_known_kind() -> None:
    for name in RECORDINGS:
        for row in ingested_recording(name).tables["latencies"]:
            assert row["kind"] in LATENCY_KINDS
            assert row["ms"] >= 0
            file, _, number = row["source"].rpartition(":")
            assert number.isdigit()
            folder = DATA / name / "collection" / file
            assert folder.exists() or folder.with_name(folder.name + ".gz").exists(), row["source"]


def test_an_idle_host_takes_as_long_as_the_simulated_delays() -> None:
    steps = [row["ms"] for row in latencies("timing", REGISTRATION)]
    assert len(steps) > 15
    half = 1 << 31
    assert median(steps) == pytest.approx(REGISTRATION_STEP.delay_of(half) / 1_000, abs=15)


def test_versions_and_members_are_those_of_the_group() -> None:
    (version,) = {row["version"] for row in latencies("join-leave", REGISTRATION)}
    assert version == "5.3.3"
    leaves = latencies("join-leave", UNREGISTRATION)
    assert {row["client_id"] for row in leaves if row["client_id"]} == {
        event["client_id"]
        for event in ingested_recording("join-leave").tables["cluster_events"]
        if event["event_type"] == "CONSUMER_LEAVE"
    }
    assert len(leaves) == 2


def test_a_start_begins_where_the_client_logs_its_instance() -> None:
    created = [mark.at_ms for mark in marks_of("timing") if mark.what == "instance_created"]
    starts = latencies("timing", START_UP)
    assert len(starts) >= 5
    for start in starts:
        assert min(abs(at_ms - (start["at_ms"] - start["ms"])) for at_ms in created) <= 5
        assert SIMULATED.shortest <= start["ms"] * 1_000 <= SIMULATED.longest


def test_queues_of_a_pass_are_taken_within_milliseconds_on_a_quiet_host() -> None:
    taken = [row["ms"] for row in latencies("timing", QUEUE_TAKEN)]
    assert len(taken) > 30
    assert 1 <= median(taken) <= 6
