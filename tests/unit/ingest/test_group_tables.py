"""What the members of one group are: releases, languages and start settings as files tell them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.group_tables import (
    client_languages,
    client_libraries,
    client_releases,
)
from rebalance_core.ingest.in_process import Ingested, ingest_collection
from rebalance_core.ingest.rows import by_name
from tests.cases.test_cases import HERE
from tests.unit.ingest.events.listing_evidence import said


def changed(folder: Path, case: str, *replaced: tuple[str, str], given: str = "") -> Ingested:
    """A case with words of its dumps and logs replaced, and a consumer_groups.jsonl."""
    shutil.copytree(HERE / "data" / case, folder)
    for path in folder.rglob("*"):
        if path.suffix in (".txt", ".log"):
            text = path.read_text()
            for old, new in replaced:
                text = text.replace(old, new)
            path.write_text(text)
    if given:
        (folder / "consumer_groups.jsonl").write_text(given + "\n")
    return ingest_collection(folder)


def found(done: Any, rule: str) -> list[dict[str, object]]:
    return [row for row in done.tables["findings"] if row["rule_id"] == rule]


def test_what_clients_of_other_languages_send_is_no_release(tmp_path: Path) -> None:
    done = changed(tmp_path / "c", "min-06-go-member")
    assert found(done, "INGEST_VERSION_NOT_MODELLED") == []
    (one,) = found(done, "INGEST_RELEASE_NOT_TOLD")
    assert one["severity"] == "INFO"
    assert "1 of the clients" in str(one["summary"])
    versions = {
        row["client_id"]: row.get("version")
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN"
    }
    assert versions == {"10.1.3.1@1#11": "5.3.3", "10.1.3.2@1#12": None}


@pytest.mark.parametrize(("language", "version"), [("CPP", "V3_1_8"), ("DOTNET", "V4_9_7")])
def test_not_even_a_version_that_java_has(language: str, version: str, tmp_path: Path) -> None:
    words = (" GO ", f" {language} "), ("V4_5_2", version), ("language=GO", f"language={language}")
    done = changed(tmp_path / "c", "min-06-go-member", *words, ("version=317", "version=407"))
    assert found(done, "INGEST_VERSION_NOT_MODELLED") == []
    (one,) = found(done, "INGEST_RELEASE_NOT_TOLD")
    assert f"({language})" in str(one["summary"])


def test_an_old_java_client_is_still_named(tmp_path: Path) -> None:
    words = (" GO ", " JAVA "), ("language=GO", "language=JAVA")
    done = changed(tmp_path / "c", "min-06-go-member", *words)
    assert found(done, "INGEST_VERSION_NOT_MODELLED")
    assert found(done, "INGEST_RELEASE_NOT_TOLD") == []


def test_languages_by_logs_and_dumps() -> None:
    pieces = [
        said(1, "consumer_connected", client_id="go", language="GO", version=317),
        said(2, "member", client_id="node", language="JAVA", version="V3_4_9"),
        said(3, "consumer_connected", client_id="node too", language="JAVA", version=121),
        said(4, "consumer_connected", client_id="java", language="JAVA", version=479),
        said(5, "member", client_id="proxied", language="GO", version="V5_3_3"),
        said(6, "member", client_id="untold", language=None, version="V5_3_3"),
    ]
    languages = client_languages(pieces, {"proxied": "PROXY"})
    assert languages == {"go": "GO", "node": "NODE", "node too": "NODE", "java": "JAVA"}
    libraries = {"go": "GO", "node": "ali-ons", "node too": "ali-ons"}
    assert client_libraries(languages) == libraries


def test_a_language_that_no_broker_prints_is_known_by_what_the_client_reports() -> None:
    pieces = [
        said(1, "client", client_file="10.0.0.1@7", version="v2.1.1"),
        said(2, "client", client_file="10.0.0.2@7", version="v2.1.0"),
        said(3, "client", client_file="10.0.0.3@7#1", version="V5_3_3"),
        said(4, "heartbeat", client_id="10.0.0.4@7#1"),
        said(5, "consumer_connected", client_id="18023-127.0.0.1@DEFAULT", language=None,
             version=None),
        said(6, "consumer_connected", client_id="new", language="KOTLIN", version=479),
        said(7, "heartbeat", client_id="go"),
        said(8, "consumer_connected", client_id="go", language="GO", version=317),
        said(9, "client_language", client_id="by log", language="CPP"),
        said(10, "client_language", client_id="go", language="CPP"),  # another's log
    ]  # fmt: skip
    languages = client_languages(pieces, {})
    assert languages == {
        "10.0.0.1@7": "GO",
        "10.0.0.2@7": "GO",
        "10.0.0.4@7#1": "JAVA",
        "18023-127.0.0.1@DEFAULT": "CPP",
        "new": "OTHER",
        "go": "GO",
        "by log": "CPP",
    }
    assert client_releases(pieces, languages) == {"10.0.0.1@7": "2.1.2"}


GO_LOG = (
    'time="2025-11-10T04:00:00Z" level=info msg="MessageQueue do balance done" '
    'clientID=10.1.3.2@1#12 consumerGroup=G1 rebalanceResultSet="[]" topic=T\n'
)
CPP_LOG = (
    "[2025-Nov-10 04:00:00.663768](info):Allocation result for [Consumer Group: G1, Topic: T, "
    "Current Consumer ID: 10.1.3.2@1#12] is\n"
)


@pytest.mark.parametrize(("text", "language"), [(GO_LOG, "GO"), (CPP_LOG, "CPP"), ("", "OTHER")])
def test_the_language_of_a_client_by_its_own_log(
    text: str, language: str | None, tmp_path: Path
) -> None:
    """Where no broker has a name for it, neither in its log nor in a dump."""
    shutil.copytree(HERE / "data" / "min-06-go-member", tmp_path / "given")
    log = tmp_path / "given" / "clients" / "c2" / "rocketmq_client.log"
    log.parent.mkdir(parents=True)
    log.write_text(text)
    for dump in (tmp_path / "given" / "mqadmin").glob("*-consumerConnection-*"):
        dump.unlink()
    for path in (tmp_path / "given" / "brokers").rglob("broker.log"):
        path.write_text(path.read_text().replace("language=GO", "language=null"))
    done = ingest_collection(tmp_path / "given")
    languages = {
        row["client_id"]: row.get("language")
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN"
    }
    assert languages == {"10.1.3.1@1#11": "JAVA", "10.1.3.2@1#12": language}


def test_a_language_of_which_nothing_is_known_is_said_once(tmp_path: Path) -> None:
    words = (" GO ", " KOTLIN "), ("language=GO", "language=KOTLIN")
    done = changed(tmp_path / "c", "min-06-go-member", *words)
    (one,) = found(done, "INGEST_LANGUAGE_NOT_MODELLED")
    assert "1 of the members (OTHER)" in str(one["summary"])


def test_every_join_has_the_language_of_its_client(tmp_path: Path) -> None:
    done = changed(tmp_path / "c", "min-06-go-member")
    languages = {
        row["client_id"]: row.get("language")
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN"
    }
    assert languages == {"10.1.3.1@1#11": "JAVA", "10.1.3.2@1#12": "GO"}


LITE = '{"consumer_group": "lite_group", "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}'


@pytest.mark.parametrize(
    ("given", "group", "assumed"),
    [(LITE, "CONSUME_FROM_FIRST_OFFSET", False), ("", "CONSUME_FROM_LAST_OFFSET", True)],
)
def test_heartbeats_of_lite_pull_consumers_do_not_tell_where_they_start(
    given: str, group: str, assumed: bool, tmp_path: Path
) -> None:
    """DefaultLitePullConsumerImpl sends CONSUME_FROM_LAST_OFFSET whatever it is set to."""
    done = changed(tmp_path / "c", "13-lite-pull-na", given=given)
    (row,) = done.tables["consumer_groups"]
    assert (row["consumer_type"], row["consume_from_where"]) == ("LITE_PULL", group)
    joins = [row for row in done.tables["cluster_events"] if row["event_type"] == "CONSUMER_JOIN"]
    assert [row.get("consume_from_where") for row in joins] == [None]
    evidence = [str(row["evidence"]) for row in found(done, "INGEST_ASSUMED")]
    assert any("consume_from_where" in text for text in evidence) is assumed


def test_heartbeats_of_push_consumers_outrank_what_is_given(tmp_path: Path) -> None:
    given = '{"consumer_group": "G1", "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}'
    done = changed(tmp_path / "c", "min-01-healthy", given=given)
    (row,) = done.tables["consumer_groups"]
    assert row["consume_from_where"] == "CONSUME_FROM_LAST_OFFSET"


def of_go(folder: Path, *messages: str) -> Ingested:
    """Ingest the log of one Go client beside a broker's list of it."""
    at = 'time="2026-11-21T03:28:54.663Z" level=info msg='
    log = folder / "clients" / "go-1" / "rocketmq.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"{at}{message}\n" for message in messages))
    (folder / "collection.toml").write_text('cluster = "C"\n[expected]\nbrokers = ["b"]\n')
    dump = folder / "mqadmin" / "1795231735000-consumerConnection-hook-b.txt"
    dump.parent.mkdir()
    dump.write_text(
        "#ClientId  #ClientAddr  #Language  #Version\n1.1.1.1@7  1.1.1.1:5  GO  V4_5_2\n\n"
        "Below is subscription:\n#Topic  #SubExpression\nT  *\n\n"
        "ConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\n"
        "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\n"
    )
    return ingest_collection(folder)


def test_a_go_client_without_a_member_list_is_of_the_group_that_it_names(tmp_path: Path) -> None:
    failed = '"do balance in group failed, get consumer id list failed"'
    done = of_go(
        tmp_path, f"{failed} consumerGroup=hook topic=T", f"{failed} consumerGroup=h2 topic=T"
    )
    named = {
        row["consumer_group"]
        for rows in by_name(done.tables).values()
        for row in rows
        if row.get("consumer_group")
    }
    assert named == {"hook", "h2"}


def test_no_version_is_taken_for_members_that_have_none(tmp_path: Path) -> None:
    done = of_go(
        tmp_path, '"MessageQueue do balance done" clientID=1.1.1.1@7 consumerGroup=hook topic=T'
    )
    assumed = [row["evidence"] for row in found(done, "INGEST_ASSUMED")]
    assert assumed
    assert not [evidence for evidence in assumed if "client_version" in str(evidence)]
