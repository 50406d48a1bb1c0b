"""Files of another broker in a broker's folder."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.fact import SET_APART
from rebalance_core.ingest.in_process import read_collection, understood
from tests.recordings.audited import audit_folder
from tests.recordings.tables import DATA

OWN = DATA / "join-leave" / "collection"
OTHERS = DATA / "strategies" / "collection"  # its brokers are room1@broker-a and room2@broker-b


BROKERS = ("broker-a", "broker-b")


def copied(folder: Path) -> Path:
    return Path(shutil.copytree(OWN, folder / "join-leave"))


def put_log_of_another(collection: Path) -> str:
    """A rotated log of another cluster's broker beside broker-a's own."""
    log = min((OTHERS / "brokers").glob("room1@broker-a/broker*.log*"))
    packed = ".gz" if log.suffix == ".gz" else ""
    name = f"brokers/broker-a/broker.1.log{packed}"
    shutil.copy(log, collection / name)
    return name


@pytest.fixture(scope="module")
def whole() -> Any:
    return read_collection(open_collection(OWN)).tables["cluster_events"]


def test_a_log_that_names_another_broker_is_set_apart(
    tmp_path: Path, whole: list[dict[str, object]]
) -> None:
    folder = copied(tmp_path)
    name = put_log_of_another(folder)
    collection = open_collection(folder)
    ingested = read_collection(collection)
    assert ingested.tables["cluster_events"] == whole
    refused = [row for row in ingested.tables["rejected"] if row["source"] == name]
    assert [issue["code"] for row in refused for issue in row["issues"]] == ["OTHER_BROKER"]
    (file,) = (row for row in understood(collection, ingested.stats) if row["name"] == name)
    assert file["status"] == "REFUSED"
    assert file["reason"] == "it is of broker room1@broker-a, and its folder is of broker broker-a"


def test_an_audit_names_the_file_and_nothing_of_what_it_states(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    name = put_log_of_another(folder)
    tables = audit_folder(folder)
    groups = {row["consumer_group"]: row["verdict"] for row in tables["group_verdicts"]}
    assert groups["order-service"] == "EQUAL"
    assert not [group for group in groups if group.startswith("s-")]
    (finding,) = (r for r in tables["findings"] if r["rule_id"] == "COLLECTION_INCOMPLETE")
    assert finding["broker_name"] == "broker-a"
    assert f"({name}) was left out: it is of broker room1@broker-a" in finding["summary"]
    assert finding["remedy"].startswith("Move it to its own broker's folder")


def test_the_stores_of_another_broker_are_set_apart(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    copies = sorted((folder / "brokers").glob("broker-a/config*"))
    shutil.rmtree(copies[0])
    shutil.copytree(folder / "brokers" / "broker-b" / copies[0].name, copies[0])
    collection = open_collection(folder)
    stats = read_collection(collection).stats
    apart = {row["name"] for row in understood(collection, stats) if row["status"] == "REFUSED"}
    assert apart == {
        f"brokers/broker-a/{copies[0].name}/{name}"
        for name in ("consumerOffset.json", "subscriptionGroup.json", "topics.json")
    }


def test_a_topics_json_of_a_broker_that_no_file_names_is_set_apart(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    newest = max((folder / "brokers").glob("broker-a/config*/topics.json"))
    text = newest.read_text()
    assert '"broker-a"' in text
    newest.write_text(text.replace('"broker-a"', '"mq-north"'))
    collection = open_collection(folder)
    rows = understood(collection, read_collection(collection).stats)
    apart = {row["name"]: row["reason"] for row in rows if row["status"] == "REFUSED"}
    assert newest.relative_to(folder).as_posix() in apart
    assert {name.rpartition("/")[0] for name in apart} == {f"brokers/broker-a/{newest.parent.name}"}
    assert {*apart.values()} == {"it is of broker mq-north, and its folder is of broker broker-a"}


def test_a_folder_may_have_any_name(tmp_path: Path, whole: list[dict[str, object]]) -> None:
    folder = copied(tmp_path)
    (folder / "brokers" / "broker-a").rename(folder / "brokers" / "host-1")
    (folder / "brokers" / "broker-b").rename(folder / "brokers" / "broker-a")
    ingested = read_collection(open_collection(folder))
    codes = {issue["code"] for row in ingested.tables["rejected"] for issue in row["issues"]}
    assert not codes & SET_APART
    events = [(row["event_ms"], row["event_type"]) for row in ingested.tables["cluster_events"]]
    assert events == [(row["event_ms"], row["event_type"]) for row in whole]


def test_where_neither_name_is_known_all_files_are_read(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    shutil.rmtree(folder / "mqadmin")
    shutil.rmtree(folder / "namesrv")
    (folder / "collection.toml").write_text('cluster = "DefaultCluster"\n')
    (folder / "brokers" / "broker-a").rename(folder / "brokers" / "host-1")
    put = min((OTHERS / "brokers").glob("room1@broker-a/broker*.log*"))
    data = gzip.decompress(put.read_bytes()) if put.suffix == ".gz" else put.read_bytes()
    (folder / "brokers" / "host-1" / "broker.1.log").write_bytes(data)
    ingested = read_collection(open_collection(folder))
    codes = {issue["code"] for row in ingested.tables["rejected"] for issue in row["issues"]}
    assert not codes & SET_APART


def test_a_log_of_several_brokers_is_set_apart(tmp_path: Path) -> None:
    """A collector of logs merged them in the order of time: no line shows whose it is."""
    folder = copied(tmp_path)
    logs = [next((folder / "brokers" / name).glob("broker.log*")) for name in BROKERS]
    texts = [gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes() for p in logs]
    merged = b"".join(sorted(line for text in texts for line in text.splitlines(keepends=True)))
    for log in logs:
        log.unlink()
    (folder / "brokers" / "broker-a" / "broker.log").write_bytes(merged)
    assert "it holds the logs of broker-a and broker-b" in misnamed(folder).values()
    found = audit_folder(folder)
    (left_out,) = [row for row in found["findings"] if "was left out" in row["summary"]]
    assert left_out["remedy"].startswith("Replace it with the log of the folder's own broker")
    lost = [row for row in found["findings"] if "was not collected" in row["summary"]]
    assert not [row for row in lost if row["broker_name"] == "broker-a"]
    verdicts = {r["consumer_group"]: r["verdict"] for r in found["group_verdicts"]}
    assert verdicts["order-service"] in ("EQUAL", "UNKNOWN")


def swap(one: Path, other: Path) -> None:
    texts = one.read_bytes(), other.read_bytes()
    one.write_bytes(texts[1])
    other.write_bytes(texts[0])


def misnamed(folder: Path) -> dict[str, str]:
    """Reasons of the answers set apart, by the name after their time."""
    rows = understood(c := open_collection(folder), read_collection(c).stats)
    return {
        row["name"].partition("-")[2]: row["reason"] for row in rows if row["status"] == "REFUSED"
    }


@pytest.mark.parametrize("command", ["consumerConnection", "consumerProgress"])
def test_answers_about_each_other_s_group_are_set_apart(tmp_path: Path, command: str) -> None:
    folder = Path(shutil.copytree(DATA / "strategies" / "collection", tmp_path / "strategies"))
    end = "-room1@broker-a" if command == "consumerConnection" else ""
    one, other = (
        max((folder / "mqadmin").glob(f"*-{command}-{group}{end}.txt"))
        for group in ("s-hash", "s-near")
    )
    swap(one, other)
    assert misnamed(folder) == {
        f"{command}-s-hash{end}.txt": "it is an answer about s-near, and its name has s-hash",
        f"{command}-s-near{end}.txt": "it is an answer about s-hash, and its name has s-near",
    }


def test_a_group_whose_name_begins_another_s_is_told_apart(tmp_path: Path) -> None:
    """``%RETRY%s-hash_v2`` may be a retry topic of s-hash with POP, but it is s-hash_v2's own."""
    folder = Path(shutil.copytree(DATA / "strategies" / "collection", tmp_path / "strategies"))
    for path in (folder / "mqadmin").glob("*s-near*"):
        text = path.read_text().replace("s-near   ", "s-hash_v2") if path.is_file() else ""
        renamed = path.rename(path.with_name(path.name.replace("s-near", "s-hash_v2")))
        if text:
            renamed.write_text(text)
    one, other = (
        max((folder / "mqadmin").glob(f"*-consumerConnection-{group}-room1@broker-a.txt"))
        for group in ("s-hash", "s-hash_v2")
    )
    swap(one, other)
    assert {name.partition("-room1")[0] for name in misnamed(folder)} == {
        "consumerConnection-s-hash",
        "consumerConnection-s-hash_v2",
    }


def test_a_client_s_answer_with_another_client_s_name_is_set_apart(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "shared-later" / "collection", tmp_path / "shared"))
    answers = max((folder / "mqadmin").glob("*-consumerStatus-orders-app"))
    one, other = (answers / f"10.0.0.{n}@app.txt" for n in (1, 2))
    swap(one, other)
    assert misnamed(folder) == {
        "consumerStatus-orders-app/10.0.0.1@app.txt": (
            "it is an answer about 10.0.0.2@app, and its name has 10.0.0.1@app"
        ),
        "consumerStatus-orders-app/10.0.0.2@app.txt": (
            "it is an answer about 10.0.0.1@app, and its name has 10.0.0.2@app"
        ),
    }
    (finding,) = (
        row
        for row in audit_folder(folder)["findings"]
        if row["rule_id"] == "COLLECTION_INCOMPLETE" and "left out" in row["summary"]
    )
    assert finding["remedy"].startswith("Run the command again")


def test_the_refusal_of_another_group_s_list_is_set_apart(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    newest = max((folder / "mqadmin").glob("*-consumerConnection-order-service-broker-a.txt"))
    refusal = "CODE: 206  DESC: the consumer group[{}] not online\n"
    exception = "org.apache.rocketmq.client.exception.MQBrokerException: "
    newest.write_text(exception + refusal.format("payment-service"))
    assert not misnamed(folder)  # no other file is about that group
    newest.with_name(newest.name.replace("order-service", "payment-service")).write_text(
        exception + refusal.format("payment-service")
    )
    why = "it is an answer about payment-service, and its name has order-service"
    assert misnamed(folder) == {"consumerConnection-order-service-broker-a.txt": why}


START = """\
2026-11-21 11:00:00 INFO main - brokerClusterName={cluster}
2026-11-21 11:00:00 INFO main - brokerName=broker-a
2026-11-21 11:00:00 INFO main - brokerId=0
2026-11-21 11:00:01 INFO main - The broker[broker-a, 9.9.9.9:1] boot success. serializeType=JSON
"""


def put_broker_of(collection: Path, cluster: str) -> list[str]:
    """A second folder of broker-a, whose log prints that cluster, with its stores."""
    stores = next(path for path in (collection / "brokers/broker-a").iterdir() if path.is_dir())
    shutil.copytree(stores, collection / "brokers/stage" / stores.name)
    (collection / "brokers/stage/broker.log").write_text(START.format(cluster=cluster))
    folder = collection / "brokers/stage"
    return sorted(
        str(path.relative_to(collection)) for path in folder.rglob("*.*") if path.is_file()
    )


def test_the_folder_of_a_broker_of_another_cluster_never_speaks_for_this_one(
    tmp_path: Path, whole: list[dict[str, object]]
) -> None:
    folder = copied(tmp_path)
    names = put_broker_of(folder, "StageCluster")
    ingested = read_collection(open_collection(folder))
    assert ingested.tables["cluster_events"] == whole
    apart = {
        row["source"]
        for row in ingested.tables["rejected"]
        for issue in row["issues"]
        if issue["code"] == "OTHER_CLUSTER"
    }
    assert apart == set(names)
    (finding, *_) = (
        row for row in audit_folder(folder)["findings"] if "was left out" in row["summary"]
    )
    assert "it is of cluster StageCluster, and this collection is of cluster" in finding["summary"]
    assert finding["remedy"].startswith("Collect each cluster into its own folder")


def test_a_collection_may_have_a_name_that_no_broker_prints(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    put_broker_of(folder, "StageCluster")
    toml = folder / "collection.toml"
    lines = toml.read_text().splitlines()
    lines = ['cluster = "prod"' if one.startswith("cluster =") else one for one in lines]
    toml.write_text("\n".join(lines) + "\n")
    ingested = read_collection(open_collection(folder))
    codes = {issue["code"] for row in ingested.tables["rejected"] for issue in row["issues"]}
    assert not codes & SET_APART
