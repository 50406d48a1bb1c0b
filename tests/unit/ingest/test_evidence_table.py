"""Evidence as it travels between the tasks of a job, and facts of dumps."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import CollectedFile, identify, open_collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.evidence import Evidence, dump_fact
from rebalance_core.ingest.evidence_table import evidence_batches, pieces_of
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import ADMIN_PARSERS
from rebalance_core.ingest.group_tables import group_tables
from rebalance_core.ingest.in_process import read_file, reader_of
from rebalance_core.ingest.store_copies import FILE_BITS, without_repeats
from rebalance_core.ingest.whole_cluster import context_of
from tests.unit.ingest import made_up_fact

# Evidence as it travels between the tasks of a job: the same at the other end, and small there.

BROKERS = ("broker-a", "broker-b")
BYTES_A_LINE = 800
"""Of the lines of one group while its tables are made; a million of them have to fit in 1 GiB."""
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
        p for p in pieces_of(evidence_batches(lines(5_000))) if p.values.get("beat_ms") == 17_017
        and p.kind == "consumer_connected"
    )  # fmt: skip
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


PROGRESS = """\
#Topic  #Broker Name                      #QID  #Broker Offset        #Consumer Offset      \
{}#Diff                #Inflight           #LastTime
T       b                                 0     3                     1                     \
{}2                    0                    N/A

Consume TPS: 0.00
Consume Diff Total: 2
Consume Inflight Total: 0
"""
NO_CLIENT, CLIENT = ("", ""), (f"{'#Client IP':<20} ", f"{'10.0.0.1':<20} ")
STACK = (
    "org.apache.rocketmq.tools.command.SubCommandException: ConsumerProgressSubCommand failed\n"
    "\tat org.apache.rocketmq.tools.command.Main(Main.java:1)\n"
    "Caused by: org.apache.rocketmq.client.exception.MQBrokerException: CODE: 17  DESC: no route\n"
)


def dump(name: str, text: str) -> dict[str, Any]:
    file = identify(f"mqadmin/1795232851000-{name}")
    assert isinstance(file, CollectedFile)
    found = ADMIN_PARSERS[file.arguments[0]](text, file.name)
    fact = dump_fact(file, found, ("b", "a-b"))
    assert fact.at_ms == 1795232851000
    return dict(fact.values)


@pytest.mark.parametrize(
    ("name", "text", "group"),
    [
        ("consumerProgress-s-config.txt", PROGRESS.format(*NO_CLIENT), "s-config"),
        ("consumerProgress-s-config.txt", PROGRESS.format(*CLIENT), "config"),
        ("consumerProgress-g.txt", "", "g"),
        ("consumerProgress-s-g.txt", "", "g"),
        ("consumerProgress-all.txt", "", None),
        ("consumerProgress.txt", "", None),
        ("consumerProgress-t-T-g.txt", "", None),
        ("consumerProgress-t-T-g.txt", PROGRESS.format(*NO_CLIENT), "g"),
        ("consumerProgress-s-t-T-g.txt", "", None),
        ("consumerStatus-g/c@1.txt", "", "g"),
        ("consumerConnection-g-a-b.txt", "", "g"),
        ("topicRoute-T.txt", "", None),
    ],
)
def test_the_group_is_told_by_the_name(name: str, text: str, group: str | None) -> None:
    assert dump(name, text)["group"] == group


def test_what_was_asked_for_is_told_by_the_name() -> None:
    assert dump("consumerConnection-g-a-b.txt", "")["broker"] == "a-b"
    assert dump("topicStatus-T.txt", "")["topic"] == "T"
    assert dump("consumerStatus-g/c@1.txt", "")["client_id"] == "c@1"


def test_rows_and_errors_are_counted_and_named() -> None:
    rows = dump("consumerProgress-g.txt", PROGRESS.format(*NO_CLIENT))
    assert (rows["rows"], rows["rejected"], rows["error"], rows["cut_off"]) == (1, 0, "", False)
    cut = dump("consumerProgress-g.txt", PROGRESS.format(*NO_CLIENT).partition("Consume TPS")[0])
    assert (cut["rows"], cut["rejected"], cut["cut_off"]) == (1, 1, True)
    nothing = dump("consumerConnection-g-b.txt", "")
    assert (nothing["rows"], nothing["rejected"], nothing["error"]) == (0, 0, "")
    failed = dump("consumerProgress-g.txt", STACK)
    assert failed["rows"] == 0
    assert failed["error"].startswith(
        "org.apache.rocketmq.client.exception.MQBrokerException CODE 17"
    )
    odd = dump_fact(
        CollectedFile("f", "mqadmin", arguments=("topicList", "")), [Unread("f", "", "", "")], ()
    )
    assert (odd.values["rows"], odd.values["rejected"]) == (0, 1)


def test_the_retry_topic_names_the_group_where_the_broker_asked_is_not_known() -> None:
    table = (
        "#ClientId                            #ClientAddr            #Language  #Version\n"
        "c@1                                  1.1.1.1:1              JAVA       V5_5_0\n\n"
        "Below is subscription:\n#Topic               #SubExpression\n"
        "%RETRY%g-x           *\nT                    *\n\nConsumeType: CONSUME_PASSIVELY\n"
    )
    for name, group, broker in (
        ("g-x-a-b", "g-x", "a-b"),
        ("g-x-host17", "g-x", None),
        ("g-x", "g-x", None),
        ("other-host17", "other-host17", None),
    ):
        values = dump(f"consumerConnection-{name}.txt", table)
        assert (values["group"], values["broker"] or None) == (group, broker), name
