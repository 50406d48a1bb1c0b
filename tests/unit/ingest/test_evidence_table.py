"""Evidence between the tasks of a job: the same at the other end, and small there."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.evidence_table import evidence_batches, pieces_of
from rebalance_core.ingest.group_tables import group_tables
from rebalance_core.ingest.in_process import read_file, reader_of
from rebalance_core.ingest.store_copies import FILE_BITS, without_repeats
from rebalance_core.ingest.whole_cluster import context_of
from tests.unit.ingest import made_up_fact

BROKERS = ("broker-a", "broker-b")
BYTES_A_LINE = 850
"""Of the lines of one group while its tables are made, 90 of them of ``latencies``; a million have
to fit in 1 GiB."""
STAYS_MS = 900_000


def lines(clients: int) -> Iterator[Evidence]:
    """What two brokers log of so many clients, that come one after the other and leave."""
    for place in BROKERS:
        for number in range(clients):
            values = {
                "group": "g",
                "consume_type": "CONSUME_PASSIVELY",
                "message_model": "CLUSTERING",
                "channel": f"10.0.{number // 250}.{number % 250}:40{place[-1] == 'b':d}00",
                "local": "10.1.0.1:10911",
                "client_id": f"10.0.{number // 250}.{number % 250}@{number}#7302145",
                "language": "JAVA",
                "version": 479,
                "beat_ms": number * 1_000 + 17,
            }
            source = f"brokers/{place}/broker.log@134217728:{number}"
            piece = Evidence(
                GROUP, "g", "consumer_connected", number * 1_000, place, number, source, values
            )
            left_ms, position = number * 1_000 + STAYS_MS, clients + number
            topic = {"group": "g", "topic": "T", "expression": "*"}
            yield piece
            yield replace(piece, kind="group_topic", values=topic)
            yield replace(piece, kind="consumer_left", at_ms=left_ms, position=position)


def test_pieces_arrive_as_they_were_sent() -> None:
    nested = {"topics": ["T"], "expressions": {"T": "*"}, "known_ms": None, "remote": True, "n": 1}
    sent = [*lines(1_000), Evidence(GROUP, "g", "consumer_data", None, "", -1, "f", nested)]
    arrived = [*pieces_of(evidence_batches(sent))]
    assert arrived == sent
    assert arrived[-1].values["remote"] is True


def test_what_is_equal_is_one_object() -> None:
    first, second = (
        p
        for p in pieces_of(evidence_batches(lines(5_000)))
        if p.values.get("beat_ms") == 17_017 and p.kind == "consumer_connected"
    )
    assert (first.place, second.place) == BROKERS
    for name in ("group", "client_id", "version", "beat_ms"):
        assert first.values[name] is second.values[name]
    assert first.key is second.key
    assert first.at_ms is second.at_ms


def test_a_copied_log_is_one_log_for_pieces_that_travelled() -> None:
    sent = [*lines(10)]
    copied = [replace(piece, position=piece.position + (1 << FILE_BITS)) for piece in sent]
    assert without_repeats(pieces_of(evidence_batches([*sent, *copied]))) == sent


def test_a_group_s_lines_take_little_memory() -> None:
    batches = [*evidence_batches(lines(2_000))]
    context = ClusterContext("C", 0, 10_000_000, logged=dict.fromkeys(BROKERS, 10_000_000))
    tracemalloc.start()
    tables = group_tables("g", pieces_of(batches), context)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tables["cluster_events"]) == 2 * 2_000
    assert peak / (2 * 3 * 2_000) < BYTES_A_LINE


def test_what_logs_repeat_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_fact.declare(monkeypatch)
    collection = open_collection(made_up_fact.write_collection(tmp_path / "made-up"))
    (log,) = collection.files
    reader = reader_of(collection, log, Assumptions())
    pieces = read_file(reader, collection.path_of(log))
    kept = [*pieces_of(evidence_batches(pieces))]
    assert len(kept) == len(made_up_fact.LINES) - 1
    context = context_of(collection, [], [reader.stats], {}, Assumptions())
    assert {
        (row["details"]["reason"], row["first_ms"], row["last_ms"], row["times"])
        for row in group_tables("g", kept, context)["observed_facts"]
    } == made_up_fact.ROWS


def test_a_repeat_from_before_the_clock_was_set_back_is_sent() -> None:
    fields = {"group": "g", "topic": "T"}
    sent = [
        Evidence(GROUP, "g", "no_subscription", at_ms, "broker-a", n, f"log:{n}", fields)
        for n, at_ms in enumerate((500, 700, 100, 300))
    ]
    arrived = [*pieces_of(evidence_batches(sent))]
    assert [piece.at_ms for piece in arrived] == [500, 100]
