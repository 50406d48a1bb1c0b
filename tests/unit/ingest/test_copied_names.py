"""Files whose names a download, a backup or an archive changed make up no group and no client."""

from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.collection import identify
from tests.unit.ingest.named_dumps import AT, CONNECTION, NAMED, groups, of_dumps

RUNNING = """#Consumer Properties#
consumeTimestamp                        : 20261121112854
consumerGroup                           : order-service
PROP_CLIENT_VERSION                     : V4_9_7
{ip}
#Consumer Subscription#
000 Topic: T                                        ClassFilter: false    SubExpression: *

#Consumer Offset#

#Consumer MQ Detail#

#Consumer RT&TPS#
"""


def clients(done: Any) -> set[str]:
    """Return every client that a table names."""
    rows = (row for table in done.tables.values() for row in table)
    return {row["client_id"] for row in rows if row.get("client_id")}


COPIES = [
    "{} (1).txt",
    "{}(2).txt",
    "{} (1) (1).txt",
    "{}[1].txt",
    "{} copy.txt",
    "{} copy 3.txt",
    "{} - Copy.txt",
    "{} - Copy (2).txt",
    "{} - Kopie.txt",
    "{} - 副本.txt",
    "{} (copy).txt",
    "Copy of {}.txt",
    "{}.txt.1",
    "{}.txt~",
    "{}.txt.bak",
    "{}.txt.bak~",
    "{}.txt (1)",
    "{}.old.txt",
    "{}.txt.orig",
    "{} (another copy).txt",
]


@pytest.mark.parametrize("form", COPIES)
def test_an_equal_copy_changes_nothing(form: str, tmp_path: Path) -> None:
    stem = NAMED.removesuffix(".txt")
    plain = of_dumps(tmp_path / "plain", {NAMED: CONNECTION})
    copied = of_dumps(tmp_path / "copied", {NAMED: CONNECTION, form.format(stem): CONNECTION})
    assert copied.tables == plain.tables


@pytest.mark.parametrize("form", COPIES)
def test_a_copy_alone_is_read_as_what_it_is_a_copy_of(form: str, tmp_path: Path) -> None:
    done = of_dumps(tmp_path, {form.format(NAMED.removesuffix(".txt")): CONNECTION})
    assert groups(done) == {"order-service"}
    assert len(done.tables["observed_members"]) == 1


@pytest.mark.parametrize("form", COPIES)
def test_a_copy_that_differs_is_said_and_not_read(form: str, tmp_path: Path) -> None:
    other = CONNECTION.replace("10.0.0.1", "10.0.0.2")
    copy = form.format(NAMED.removesuffix(".txt"))
    done = of_dumps(tmp_path, {NAMED: CONNECTION, copy: other})
    assert clients(done) == {"10.0.0.1@7#2526074142185"}
    (row,) = [r for r in done.tables["findings"] if r["rule_id"] == "INGEST_COPY_DIFFERS"]
    assert row["evidence"] == {"file": f"mqadmin/{copy}"}
    assert [r["source"] for r in done.tables["rejected"]] == [f"mqadmin/{copy}"]
    # the one that is read is whole
    assert [row["complete"] for row in done.tables["coverage"]] == [True]


@pytest.mark.parametrize(
    "name",
    [
        "10.0.0.1@7#2526074142185",
        "10.0.0.1%407%232526074142185",
        "10.0.0.1_7_2526074142185",
        "10.0.0.1_7#2526074142185",
        "10.0.0.1@7%232526074142185",
        "10.0.0.1@7#2526074142185 (1)",
        "10.0.0.1-7-2526074142185",
    ],
)
@pytest.mark.parametrize("newer", [False, True])
def test_a_client_has_its_own_id_whatever_its_file_is_called(
    name: str, newer: bool, tmp_path: Path
) -> None:
    if "@7%23" in name and not newer:
        return  # what 4.9 prints does not name the client
    ip = "clientIP                                : 10.0.0.1\n"
    ip += "instanceName                            : 7#2526074142185"
    text = RUNNING.format(ip=ip if newer else "x                                       : y")
    done = of_dumps(tmp_path, {f"{AT}-consumerStatus-order-service/{name}.txt": text})
    assert clients(done) == {"10.0.0.1@7#2526074142185"}
    assert groups(done) == {"order-service"}


def test_a_copy_of_a_folder_of_clients_is_no_group(tmp_path: Path) -> None:
    text = RUNNING.format(ip="x                                       : y")
    file = "10.0.0.1@7#1.txt"
    dumps = {
        f"{AT}-consumerStatus-g{mark}/{file}": text for mark in ("", " (1)", " copy", " - Copy")
    }
    assert groups(of_dumps(tmp_path, dumps)) == {"g"}


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("topicStatus-%25RETRY%25order-service", "%RETRY%order-service"),
        ("topicStatus-%RETRY%order-service", "%RETRY%order-service"),
        ("topicStatus-_RETRY_order-service", "%RETRY%order-service"),
        ("topicStatus-%RETRY%abc", "%RETRY%abc"),
        ("topicStatus-_RETRY_other", "_RETRY_other"),
    ],
)
def test_a_topic_of_which_a_name_has_the_escaped_form(
    name: str, topic: str, tmp_path: Path
) -> None:
    status = (
        f"{'#Broker Name':<32}  {'#QID':<4}  {'#Min Offset':<20}  {'#Max Offset':<20}    "
        f"#Last Updated\n{'b':<32}  {0:<4}  {0:<20}  {7:<20}    \n"
    )
    done = of_dumps(tmp_path, {NAMED: CONNECTION, f"{AT}-{name}.txt": status})
    assert [row["topic"] for row in done.tables["queue_offsets"]] == [topic]


@pytest.mark.parametrize("group", ["order service final", "g (see mail)", "g, h", "a;b", "g=1"])
def test_what_cannot_be_a_group_is_refused_by_name(group: str, tmp_path: Path) -> None:
    name = f"{AT}-consumerConnection-{group}-b.txt"
    done = of_dumps(tmp_path, {NAMED: CONNECTION, name: CONNECTION})
    assert groups(done) == {"order-service"}
    (row,) = done.tables["rejected"]
    assert row["source"] == f"mqadmin/{name}"
    assert row["issues"][0]["code"] == "BAD_NAME"


def test_the_suffix_of_an_answer_may_be_in_capitals() -> None:
    for end in (".TXT.bak", ".TXT", ".txt.bak", ".TXT.1"):
        file = identify(f"mqadmin/1795233095709-topicRoute-orders{end}")
        assert file is not None
        assert file.arguments == ("topicRoute", "orders")
