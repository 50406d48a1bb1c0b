"""Lines that brokers dropped, files that were not collected, logs that begin late."""

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.ingest.in_process import Ingested, ingest_collection
from tests.recordings.audited import audit_folder, audited
from tests.recordings.tables import DATA, Row, Tables, ingested_recording, ledger_of, replayed
from tests.recordings.truth import covers, read_truth


def collection_of(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(DATA / name / "collection", folder / name))


def rewrite(path: Path, keep: Callable[[str], bool]) -> None:
    packed = path.suffix == ".gz"
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    text = "".join(line for line in data.decode().splitlines(keepends=True) if keep(line))
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())


def held_at_the_end(name: str, ledger: Tables) -> set[tuple[str, ...]]:
    end_ms = read_truth(name).end_ms - 500
    return {
        (
            row["consumer_group"],
            row["topic"],
            row["broker_name"],
            str(row["queue_id"]),
            row["client_id"],
        )
        for row in ledger["ownership"]
        if row["client_id"] and covers(row, end_ms) and not row["topic"].startswith("%")
    }


def strangers(done: Ingested) -> list[tuple[str, str, str]]:
    """Who is shown holding a queue of a topic that it is known not to subscribe then."""
    members: dict[tuple[str, str], list[Row]] = {}
    for row in ledger_of(done.tables)["memberships"]:
        members.setdefault((row["consumer_group"], row["client_id"]), []).append(row)
    found = []
    for row in done.tables["observed_ownership"]:
        there = members.get((row["consumer_group"], row["client_id"]), ())
        there = [one for one in there if covers(one, row["observed_ms"])]
        topics = [one["subscriptions"] for one in there]
        known = there and None not in topics and any(topics)  # none: its application names queues
        strange = not any(row["topic"] in (each or ()) for each in topics)
        if known and strange and not row["topic"].startswith("%"):
            found.append((row["consumer_group"], row["client_id"], row["topic"]))
    return found


def findings(done: Any, rule: str) -> list[Row]:
    return [row for row in done.tables["findings"] if row["rule_id"] == rule]


def test_joins_that_brokers_did_not_log_are_made_good_by_dumps(tmp_path: Path) -> None:
    folder = collection_of("join-leave", tmp_path)
    lost = "10.0.0.2@20078#2063471432709"
    for log in folder.glob("brokers/*/broker.log*"):
        rewrite(log, lambda line: not ("new consumer connected" in line and lost in line))
    shutil.rmtree(folder / "clients")
    done: Any = ingest_collection(folder)
    (join,) = [
        row
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN" and row["client_id"] == lost
    ]
    (assumed_event,) = findings(done, "INGEST_JOIN_NOT_LOGGED")
    assert assumed_event["client_id"] == lost
    assert "mqadmin/" in join["source"]
    assert 0 <= 1795231735207 - join["event_ms"] < 2_000  # consumerStatus prints when it started
    ledger = ledger_of(done.tables)
    assert held_at_the_end("join-leave", ledger) == held_at_the_end(
        "join-leave", replayed("join-leave")
    )


def test_a_healthy_group_stays_so_without_the_line_of_what_a_member_subscribes(
    tmp_path: Path,
) -> None:
    """Each line of one group in one second, at all brokers, as a mass reconnect loses them."""
    losses = {
        "join-leave": ("2026-11-21 11:29:59", "order-service"),
        "strategies": ("2026-11-21 11:45:35", "s-near"),
        "start-offsets": ("2026-11-21 11:47:30", "so-bcast"),
        "scale-out": ("2026-11-21 11:54:31", "click-ts"),
        "nightly": ("2026-11-21 11:47:30", "order-service"),
        # a line lost among lines: the silence after it is no unsubscription
        "pathologies": ("2026-11-21 11:38:10", "p-unsub"),
    }
    for name, (at, group) in losses.items():
        folder = collection_of(name, tmp_path)
        gone = (at, "registerConsumer info changed", f"groupName={group},")
        for log in folder.glob("brokers/*/broker*.log*"):
            rewrite(log, lambda line, gone=gone: not all(word in line for word in gone))  # type: ignore[misc]
        done = ingest_collection(folder)
        assert strangers(done) == []
        assert {row["severity"] for row in findings(done, "INGEST_SUBSCRIPTION_NOT_LOGGED")} <= {
            "INFO"
        }, name
        damaged, whole = audit_folder(folder, done), audited(name)
        for table, columns in (
            ("group_verdicts", ("consumer_group", "verdict")),
            ("findings", ("rule_id", "severity", "consumer_group")),
        ):
            said, before = (
                {tuple(row[column] for column in columns) for row in tables[table]}
                for tables in (damaged, whole)
            )
            assert {row for row in said - before if "INFO" not in row} == set(), name


@pytest.mark.parametrize("name", ["join-leave", "strategies", "nightly"])
def test_lines_dropped_at_random_make_no_error(name: str, tmp_path: Path) -> None:
    rng = random.Random(36)  # dropped alike in each run
    errors = {
        (r["rule_id"], r["consumer_group"])
        for r in audited(name)["findings"]
        if r["severity"] == "ERROR"
    }
    for share in (0.02, 0.1, 0.2):
        folder = collection_of(name, tmp_path / str(share))
        for log in sorted(folder.glob("brokers/*/broker*.log*")):
            rewrite(log, lambda _, share=share: rng.random() >= share)  # type: ignore[misc]
        done = ingest_collection(folder)
        assert strangers(done) == []
        found = audit_folder(folder, done)["findings"]
        made = {(r["rule_id"], r["consumer_group"]) for r in found if r["severity"] == "ERROR"}
        assert made - {("COLLECTION_INCOMPLETE", None)} <= errors, share


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if path.is_dir()))
def test_who_is_shown_holding_a_queue_subscribes_its_topic(name: str) -> None:
    done = ingested_recording(name)
    assert strangers(done) == []
    assert findings(done, "INGEST_SUBSCRIPTION_NOT_LOGGED") == []


def test_without_anything_that_shows_a_subscription_the_group_is_unknown(tmp_path: Path) -> None:
    """No line, no dump of the client, no log of its own, and no other member."""
    folder = collection_of("join-leave", tmp_path)
    for log in folder.glob("brokers/*/broker*.log*"):
        rewrite(log, lambda line: "registerConsumer info changed" not in line)
    shutil.rmtree(folder / "clients")
    for dump in folder.glob("mqadmin/*"):
        if any(word in dump.name for word in ("consumerStatus", "consumerConnection")):
            shutil.rmtree(dump) if dump.is_dir() else dump.unlink()
    for dump in folder.glob("mqadmin/*consumerProgress*"):
        dump.unlink()
    done = ingest_collection(folder)
    joins = [r for r in done.tables["cluster_events"] if r["event_type"] == "CONSUMER_JOIN"]
    assert joins
    assert all(row.get("subscriptions") is None for row in joins)
    (assumed_event,) = [
        row
        for row in findings(done, "INGEST_SUBSCRIPTION_NOT_LOGGED")
        if row["consumer_group"] == "order-service"
    ]
    assert assumed_event["severity"] == "WARNING"
    tables = audit_folder(folder, done)
    (verdict,) = [
        row for row in tables["group_verdicts"] if row["consumer_group"] == "order-service"
    ]
    assert (verdict["verdict"], verdict["reason"]) == ("UNKNOWN", "SUBSCRIPTION")
    errors = {row["rule_id"] for row in tables["findings"] if row["severity"] == "ERROR"}
    assert errors == {"COLLECTION_INCOMPLETE"}  # dumps are missing


def test_leaves_that_brokers_did_not_log_are_made_good_by_dumps(tmp_path: Path) -> None:
    folder = collection_of("join-leave", tmp_path)
    gone = "10.0.0.1@19750#2053455938872"
    for log in folder.glob("brokers/*/broker.log*"):
        rewrite(log, lambda line: not ("unregister a consumer" in line and gone in line))
    done = ingest_collection(folder)
    (assumed_event,) = findings(done, "INGEST_LEAVE_NOT_LOGGED")
    assert assumed_event["client_id"] == gone
    assert held_at_the_end("join-leave", ledger_of(done.tables)) == held_at_the_end(
        "join-leave", replayed("join-leave")
    )


def test_the_end_of_a_whole_group_that_no_log_has_is_seen_in_its_dumps(tmp_path: Path) -> None:
    """Its logs were copied before its last member left, its dumps were taken after."""
    folder = collection_of("nightly", tmp_path)
    gone = "10.0.2.90@31384#3172634501712"
    for log in folder.glob("brokers/*/broker.log*"):
        rewrite(log, lambda line: not ("unregister a consumer" in line and gone in line))
    done = ingest_collection(folder)
    (assumed_event,) = findings(done, "INGEST_LEAVE_NOT_LOGGED")
    assert (assumed_event["consumer_group"], assumed_event["client_id"]) == ("batch-loader", gone)
    (lost,) = [
        row
        for row in done.tables["cluster_events"]
        if row.get("client_id") == gone and row["event_type"] == "CONSUMER_LOST"
    ]
    shown_ms = min(
        int(path.name.partition("-")[0])
        for path in folder.glob("mqadmin/*-consumerProgress-s-batch-loader.txt")
    )
    assert lost["event_ms"] == shown_ms
    (verdict,) = [
        row
        for row in audit_folder(folder, done)["group_verdicts"]
        if row["consumer_group"] == "batch-loader"
    ]
    assert verdict["verdict"] == "OFFLINE"


def test_a_log_that_ended_is_not_silent(tmp_path: Path) -> None:
    """A dump half an hour after the logs were copied says nothing of who subscribes what."""
    folder = collection_of("pathologies", tmp_path)
    recorded = ingest_collection(folder).tables["cluster_events"]
    last = max(folder.glob("mqadmin/*-clusterList.txt"))
    late_ms = int(last.name.partition("-")[0]) + 30 * 60_000
    shutil.copy(last, last.with_name(f"{late_ms}-clusterList.txt"))
    assert ingest_collection(folder).tables["cluster_events"] == recorded


@pytest.mark.parametrize("name", ["join-leave", "pathologies", "scale-out-4.9", "nightly"])
@pytest.mark.parametrize("missing", ["clients", "mqadmin", "namesrv"])
def test_a_healthy_cluster_is_judged_without_some_of_the_files(
    name: str, missing: str, tmp_path: Path
) -> None:
    folder = collection_of(name, tmp_path)
    shutil.rmtree(folder / missing)
    done = ingest_collection(folder)
    found = held_at_the_end(name, ledger_of(done.tables))
    assert found == held_at_the_end(name, replayed(name))


@pytest.mark.parametrize("name", ["join-leave", "scale-out-4.9", "silent-loss", "timing"])
def test_a_log_that_begins_late_starts_with_what_it_observes(name: str, tmp_path: Path) -> None:
    changes = sorted(row["change_ms"] for row in replayed(name)["diffs"])
    begins_ms = changes[len(changes) // 2]
    folder = collection_of(name, tmp_path)
    for log in (*folder.glob("brokers/*/*.log*"), *folder.glob("namesrv/*.log*")):
        rewrite(log, lambda line: line[:1].isdigit() and server_ms(line) >= begins_ms)
    done = ingest_collection(folder)
    observed = [row for row in done.tables["cluster_events"] if row.get("detail") == "OBSERVED"]
    assert observed
    found = held_at_the_end(name, ledger_of(done.tables))
    assert found == held_at_the_end(name, replayed(name))


def server_ms(line: str) -> int:
    from rebalance_core.ingest.parse.log_lines import Clock

    return Clock().second_ms(line[:19]) or 0


@pytest.mark.parametrize("name", ["pathologies", "silent-loss", "timing"])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_whatever_lines_are_missing_the_tables_hold_together(
    name: str, share: float, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(f"{seed} {name} {share}")
    folder = collection_of(name, tmp_path)
    for log in sorted(folder.rglob("*.log*")):
        rewrite(log, lambda line: chance.random() >= share)
    done = ingest_collection(folder)
    assert done.tables["cluster_events"]
    assert ledger_of(done.tables).get("rejected", []) == []
    for table in ("cluster_events", "queue_offsets", "committed_offsets", "consumer_groups"):
        key = INPUT_TABLES[table].key
        keys = [tuple(row.get(name) for name in key) for row in done.tables[table]]
        assert len(keys) == len(set(keys)), table


@pytest.mark.parametrize("route", ["lost", "as before"])
def test_a_topic_may_have_left_a_broker_of_which_no_dump_at_the_end_shows_it(
    route: str, tmp_path: Path
) -> None:
    """A switch of roles takes topics with it, and no line tells."""
    name = "min-13-topic-gone-from-route"
    folder = Path(shutil.copytree(DATA.parents[1] / "cases/data" / name, tmp_path / name))
    before, now = sorted(folder.glob("mqadmin/*topicRoute*"))
    if route == "lost":
        for dump in (now, *folder.glob("mqadmin/17627472005*Status*")):
            dump.unlink()
    else:
        shutil.copy(before, now)
    tables = audit_folder(folder)
    (verdict,) = tables["group_verdicts"]
    assert (verdict["verdict"], verdict["reason"]) == ("UNKNOWN", "NOT_COVERED")
    assert "topicRoute -t T1" in verdict["settled_by"]
    assert not any("OWNERSHIP_DIFFERS" in row["rule_id"] for row in tables["findings"])


def test_what_an_earlier_round_proved_outlasts_a_later_one_with_gaps(tmp_path: Path) -> None:
    name = "min-03-same-strategy-named"
    folder = Path(shutil.copytree(DATA.parents[1] / "cases/data" / name, tmp_path / name))

    def differing() -> set[str]:
        rows = audit_folder(folder)["findings"]
        return {row["rule_id"] for row in rows if "OWNERSHIP_DIFFERS" in row["rule_id"]}

    proved = differing()
    assert proved
    for dump in [*folder.glob("mqadmin/*")]:
        ms, _, command = dump.name.partition("-")
        if not command.startswith(("topicRoute", "topicStatus")):
            lines = dump.read_text().splitlines(keepends=True)
            if command.startswith("consumerProgress"):
                lines = [line for line in lines if line.split()[1:2] != ["broker-b"]]
            dump.with_name(f"{int(ms) + 600_000}-{command}").write_text("".join(lines))
    assert differing() == proved


@pytest.mark.parametrize(
    ("lost", "verdict", "reason"),
    [
        (("remove name from", "channel destroyed"), "UNKNOWN", "NOT_COVERED"),
        # the line on clusterAddrTable tells the removal, too
        (("remove name from brokerAddrTable", "new broker"), "UNKNOWN", "NOT_COVERED"),
        (("remove name from brokerAddrTable",), "UNSTABLE", "BROKER_UP 55 s before"),
    ],
)
def test_a_broker_that_registers_anew_was_away_for_a_time_that_no_line_shows(
    lost: tuple[str, ...], verdict: str, reason: str, tmp_path: Path
) -> None:
    folder = collection_of("silent-loss", tmp_path)
    for log in folder.glob("namesrv/namesrv.log*"):
        rewrite(log, lambda line: not any(words in line for words in lost))
    tables = audit_folder(folder)
    (row,) = [row for row in tables["group_verdicts"] if row["consumer_group"] == "order-service"]
    assert (row["verdict"], row["reason"]) == (verdict, reason)
    errors = {row["rule_id"] for row in tables["findings"] if row["severity"] == "ERROR"}
    assert errors <= {"COLLECTION_INCOMPLETE"}
