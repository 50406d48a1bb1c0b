"""A history of which nothing can be told is no history without changes."""

import json
from pathlib import Path
from typing import Any

import pytest

import rebalance_core
from rebalance_core.cli.main import main
from rebalance_core.model.errors import InputRefused
from tests.recordings.tables import DATA
from tests.tree import TREE

DEMO = TREE / "rebalance_core/bundled/demo/join-leave/tables"
NIGHTLY = DATA / "nightly" / "tables"
NAMES = ("cluster_events", "consumer_groups", "queue_offsets", "committed_offsets")
Rows = Any


def rows_of(folder: Path) -> Rows:
    return {
        name: [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        for name in NAMES
        if (folder / f"{name}.jsonl").exists()
    }


def ended(tables: Rows, folder: Path, *words: str, job: str = "simulate") -> int:
    folder.mkdir()
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return main(
        None,
        [job, "--input", str(folder), "--output", f"{folder}-out", "--run-on", "process", *words],
    )


@pytest.mark.parametrize("with_offsets", [True, False])
@pytest.mark.parametrize("folder", [DEMO, NIGHTLY], ids=["join-leave", "nightly"])
def test_a_history_that_lacks_its_beginning_is_refused_in_one_sentence(
    folder: Path, with_offsets: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = rows_of(folder)
    events = tables["cluster_events"]
    configured = [row["event_ms"] for row in events if row["event_type"] == "TOPIC_CONFIG"]
    cut = min(configured) if with_offsets else max(configured)
    tables["cluster_events"] = [row for row in events if row["event_ms"] > cut]
    if not with_offsets:
        tables = {name: tables[name] for name in ("cluster_events", "consumer_groups")}
    for job, words in (
        ("simulate", ()),
        ("simulate", ("--dry-run",)),
        ("plan", ()),
        ("propagate", ("--seeds", "2")),
    ):
        code = ended(tables, tmp_path / f"{job}{len(words)}", *words, job=job)
        said = capsys.readouterr()
        assert code == 4
        assert "cluster_events lacks its first events: groups subscribe" in said.err + said.out
        assert (said.err + said.out).count("TOPIC_CONFIG configures") == 1
    with pytest.raises(InputRefused, match="lacks its first events"):
        rebalance_core.simulate(tables)


@pytest.mark.parametrize("folder", [DEMO, NIGHTLY], ids=["join-leave", "nightly"])
def test_a_history_that_lacks_the_joins_of_most_members_is_refused_in_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = rows_of(folder)
    events = tables["cluster_events"]
    joins = [row["event_ms"] for row in events if row["event_type"] == "CONSUMER_JOIN"]
    tables["cluster_events"] = [
        row
        for row in events
        if not row["event_type"].startswith("CONSUMER_") or row["event_ms"] > sorted(joins)[-2]
    ]
    for words in ((), ("--dry-run",)):
        assert ended(tables, tmp_path / f"t{len(words)}", *words) == 4
        said = capsys.readouterr()
        assert (said.err + said.out).count("without an earlier CONSUMER_JOIN") == 1
    with pytest.raises(InputRefused, match="lacks its first events"):
        rebalance_core.simulate(tables)


def test_few_strays_beside_many_joins_are_bad_rows(tmp_path: Path) -> None:
    events = rows_of(DEMO)["cluster_events"]
    gone = ("CONSUMER_LEAVE", "CONSUMER_LOST")
    kept = [row for row in events if row["event_type"] not in gone]
    stray = next(row for row in events if row["event_type"] in gone) | {"client_id": "x@1"}
    assert sum(row["event_type"] == "CONSUMER_JOIN" for row in kept) > 2
    assert ended({"cluster_events": [*kept, stray]}, tmp_path / "t") == 0


@pytest.mark.parametrize("event_type", ["BROKER_DOWN", "TOPIC_DELETED"])
def test_events_on_brokers_that_never_were_are_refused_in_one_sentence(
    event_type: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {"cluster_events": rows_of(DEMO)["cluster_events"]}
    last = tables["cluster_events"][-1]
    few = {name: last[name] for name in ("cluster", "event_ms")}
    strays = [
        few
        | {
            "sequence": 1000 + n,
            "event_type": event_type,
            "broker_name": f"gone-{n}",
            **({"topic": "T"} if event_type == "TOPIC_DELETED" else {}),
        }
        for n in range(9)
    ]
    whole = tables["cluster_events"]
    tables["cluster_events"] = [*whole, *strays]
    assert ended(tables, tmp_path / "many") == 4
    said = capsys.readouterr().err
    assert "names 9 broker(s) that other events mention (gone-0, gone-1" in said
    tables["cluster_events"] = [*whole, strays[0]]
    assert ended(tables, tmp_path / "one") == 0


def test_a_topic_that_does_not_exist_may_be_subscribed(tmp_path: Path) -> None:
    tables = {name: rows_of(DEMO)[name] for name in ("cluster_events", "consumer_groups")}
    joins = [row for row in tables["cluster_events"] if row["event_type"] == "CONSUMER_JOIN"]
    joins[-1]["subscriptions"] = [*(joins[-1].get("subscriptions") or []), "no-such-topic"]
    assert ended(tables, tmp_path / "t") == 0


def test_but_not_if_there_are_offsets_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = rows_of(DEMO)
    joins = [row for row in tables["cluster_events"] if row["event_type"] == "CONSUMER_JOIN"]
    joins[-1]["subscriptions"] = [*(joins[-1].get("subscriptions") or []), "cut-off"]
    tables["queue_offsets"].append(tables["queue_offsets"][0] | {"topic": "cut-off"})
    assert ended(tables, tmp_path / "t") == 4
    assert "TOPIC_CONFIG configures (cut-off on broker-" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_run_whose_joins_are_all_rejected_is_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = rows_of(DEMO)
    good = [row for row in tables["cluster_events"] if "client_id" not in row]
    assert good
    rows = [
        row | {"strategy": "CONFIG(queues=T/a/0;T/a/1)"}
        for row in tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN"
    ]
    base = {
        "cluster": good[0]["cluster"],
        "event_type": "TOPIC_CONFIG",
        "broker_name": "b",
        "topic": "U",
        "read_queue_nums": 1,
        "write_queue_nums": 1,
    }
    more = [base | {"event_ms": 1795231700000 + n, "sequence": n} for n in range(20)]
    code = ended({"cluster_events": good + rows + more}, tmp_path / "joins", *words)
    said = capsys.readouterr()
    assert code == 4
    assert "no consumer event to simulate: all of its rows are bad" in said.err + said.out
    assert "BAD_STRATEGY" in said.err + said.out

    leaves = [
        {
            "cluster": good[0]["cluster"],
            "event_ms": 1795231800000 + n,
            "sequence": 100 + n,
            "event_type": "CONSUMER_LEAVE",
            "consumer_group": "order-service",
            "client_id": "x@1",
        }
        for n in range(3)
    ]
    code = ended({"cluster_events": good + rows + more + leaves}, tmp_path / "leaves", *words)
    said = capsys.readouterr()
    assert code == 4
    assert "no member is left to simulate" in said.err + said.out
