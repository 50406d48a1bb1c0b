"""Every file of a collection is accounted for once: read, no use, not understood or refused."""

import os
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.in_process import read_collection, understood
from rebalance_core.model.file_statuses import FILE_STATUSES
from rebalance_core.report.audit_report import FILES_ON_PAGE, files_by_status
from tests.recordings.tables import DATA

if TYPE_CHECKING:
    from rebalance_core.ingest.file_record import FileOutcome, FileRecord

SETTINGS = 'cluster = "C"\n'
CLIENT_LINE = (
    "2026-11-21 11:28:35,012 INFO main - [DefaultMQPushConsumer] the consumer [g] start beginning. "
    "messageModel=CLUSTERING, isUnitMode=false\n"
)
NAMES = 10_000
PLACES = (
    "",
    "clients/",
    "clients/x/",
    "clients/x/other_days/",
    "clients/x/10.0.0.1@7/g/",
    "brokers/",
    "brokers/X/",
    "brokers/X/otherdays/",
    "brokers/X/config/",
    "brokers/X/config-17/",
    "brokers/X/config-1795231766663/",
    "brokers/X/config/kvstore/",
    "brokers/X/config/topics/",
    "namesrv/",
    "namesrv/X/",
    "namesrv/X/otherdays/",
    "mqadmin/",
    "mqadmin/1795231735000-x/",
    "mqadmin/1795231735000-consumerStatus-g/",
    "proxy/",
    "proxy/X/",
    "proxies/X/",
    "odd place/",
    "tables/",
    "truth/",
    "Übersicht/",
)
STEMS = (
    "broker",
    "auth-service",
    "store-consumer",
    "pop-orders",
    "transaction-worker",
    "stats",
    "namesrv",
    "rocketmq_client",
    "lock",
    "filter",
    "proxy",
    "rmq-proxy",
    "topics",
    "offsets",
    "subscriptionGroup",
    "consumerOffset",
    "messageRequestMode",
    "delayOffset",
    "CURRENT",
    "store-files",
    "cluster",
    "events",
    "consumer_groups",
    "collection",
    "日志",
    "a b",
    ".",
    "..x",
    "~",
    "1795231735000-consumerConnection-g",
    "1795231735000-consumerProgress-g-X",
    "1795231735000-topicRoute-%RETRY%g",
    "1795231735000-clusterList",
    "1795231735000-",
    "1795231735000-consumerProgress- (1)",
    "rocketmq-client-grpc",
    "e\u0301",
    "\u202etxt",
)
ENDS = (
    "",
    ".log",
    ".log.gz",
    ".3.log",
    "-3.log.gz",
    ".log.3",
    ".log-20261121.gz",
    ".json",
    ".jsonl",
    ".txt",
    " (1).txt",
    " - Copy.json",
    ".json.bak",
    ".txt.1",
    ".part",
    ".log.part",
    ".csv",
    ".md",
    ".toml",
    ".TXT",
    ".log ",
    "..log",
    ".tar.gz",
    "~",
    ".swp",
    "\t.log",
    "\udcff.log",
    " ",
    ".",
)
CONTENTS = (
    b"",
    b"hello\n",
    CLIENT_LINE.encode(),
    b"{}",
    b"\x1f\x8b\x08",
    b"\x00" * 64,
    b"\xff\xfea\x00",
)


def fuzzed(root: Path, draw: random.Random) -> None:
    """Write files of all kinds of names, and links among them."""
    made: list[Path] = []
    while len(made) < NAMES:
        name = draw.choice(STEMS) + "".join(draw.choices(ENDS, k=draw.choice((1, 1, 1, 2))))
        if draw.random() < 0.5:
            name = f"{draw.choice(STEMS)}{draw.choice(('', '-', ' ', '%', '@'))}{name}"
        path = root / (draw.choice(PLACES) + name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path) or name in (".", ".."):
            continue
        if made and draw.random() < 0.02:
            path.symlink_to(draw.choice([*made, root, root.parent, path]))
        else:
            path.write_bytes(draw.choice(CONTENTS))
            made.append(path)


def files_below(root: Path) -> list[str]:
    """Return files, links to folders, and no folder, as ``_run.json`` writes their names."""
    found = []
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*names, *links):
            inside = (Path(folder) / name).relative_to(root).as_posix()
            found.append(inside.encode(errors="backslashreplace").decode())
    return found


def accounted(root: Path) -> "list[FileRecord]":
    collection = open_collection(root)
    return understood(collection, read_collection(collection).stats)


def test_each_of_ten_thousand_names_is_accounted_for_once(tmp_path: Path) -> None:
    fuzzed(tmp_path, random.Random(55))
    (tmp_path / "collection.toml").write_text(SETTINGS)
    rows = accounted(tmp_path)
    expected, found = Counter(files_below(tmp_path)), Counter(row["name"] for row in rows)
    assert len(expected) > NAMES
    assert found == expected
    assert {row["status"] for row in rows} == {*FILE_STATUSES}
    assert [row["name"] for row in rows if row["status"] != "READ" and not row["reason"]] == []
    dropped = [
        row["name"]
        for row in rows
        if row["name"].startswith("clients/") and row["status"] == "STATES_NOTHING"
        if "is a copy of" not in row["reason"] and "link" not in row["reason"]
        if "gRPC" not in row["reason"] and "previous generation" not in row["reason"]
    ]
    assert dropped == []


@pytest.mark.parametrize(
    "name",
    [
        "auth-service.log",
        "store-consumer.log",
        "pop-orders.log",
        "transaction-worker.log",
        "stats.log",
        "broker.log",
        "namesrv.log",
        "proxy.log",
        "remoting.log",
        "lock.log",
        "topics.json",
        "日志 1.log",
        "service",
        "catalina.out",
        "app.log.2026-11-21",
        "notes.md",
        "table.csv",
    ],
)
@pytest.mark.parametrize("before", [0, 300])
def test_a_client_s_log_may_have_any_name(tmp_path: Path, name: str, before: int) -> None:
    lines = (DATA / "join-leave/collection/clients").rglob("rocketmq_client*.log")
    text = next(iter(sorted(lines))).read_text()
    (tmp_path / "clients/x").mkdir(parents=True)
    start = "2026-11-21 11:00:00,000 INFO main - Tomcat starts, and writes of itself\n" * before
    (tmp_path / "clients/x" / name).write_text(start + text)
    (tmp_path / "collection.toml").write_text(SETTINGS)
    (row,) = (row for row in accounted(tmp_path) if row["name"] == f"clients/x/{name}")
    assert (row["kind"], row["status"]) == ("client_log", "READ")
    assert row["facts"] > 0


def test_what_became_of_a_file_has_its_reason(tmp_path: Path) -> None:
    (tmp_path / "collection.toml").write_text(SETTINGS)
    written = {
        "namesrv/namesrv.log": "",
        "brokers/a/broker.log": "no line of a broker\n",
        "brokers/a/remoting.log": "x\n",
        "brokers/a/notes.txt": "x\n",
        "brokers/a/lock.log.gz": "x\n",
        "brokers/a/config/topics.json": "{",
        "brokers/a/config/topics.json.bak": "{",
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {row["name"]: (row["status"], row["reason"]) for row in accounted(tmp_path)}
    assert {name: status for name, (status, _) in found.items()} == {
        "collection.toml": "STATES_NOTHING",
        "namesrv/namesrv.log": "READ",
        "brokers/a/broker.log": "NOT_UNDERSTOOD",
        "brokers/a/remoting.log": "STATES_NOTHING",
        "brokers/a/notes.txt": "NOT_UNDERSTOOD",
        "brokers/a/lock.log.gz": "REFUSED",
        "brokers/a/config/topics.json": "NOT_UNDERSTOOD",
        "brokers/a/config/topics.json.bak": "STATES_NOTHING",
    }
    assert found["brokers/a/lock.log.gz"][1] == "is named .gz and is not compressed by gzip"
    assert found["namesrv/namesrv.log"][1] == "it is empty"


def test_the_page_lists_some_files_of_each_status_those_with_a_reason_first() -> None:
    files: list[FileOutcome] = [
        {"name": f"{at:03}", "kind": "", "status": "READ", "reason": "cut" if at == 290 else ""}
        for at in range(300)
    ]
    files.append({"name": "x", "kind": "", "status": "REFUSED", "reason": "is a pipe"})
    shown = {one.status: one for one in files_by_status(files)}
    assert list(shown) == ["NOT_UNDERSTOOD", "REFUSED", "READ", "STATES_NOTHING"]
    assert [one.count for one in shown.values()] == [0, 1, 300, 0]
    assert len(shown["READ"].files) == FILES_ON_PAGE
    assert shown["READ"].files[0].name == "290"
    assert files_by_status([]) == ()
