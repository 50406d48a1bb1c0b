"""What `explain` says of a queue in the folder of an audit, beside who owns it."""

import json
from pathlib import Path

import pytest

from rebalance_core.cli.main import main

CASE = Path(__file__).parent / "data" / "rmq-7613-commit-stands-still"
AT = "2023-12-01T15:20:00Z"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("audited") / "output"
    assert main("audit", ["--collection", str(CASE), "--output", str(output)]) == 0
    return output


def explained(ledger: Path, queue: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    capsys.readouterr()
    words = ["--ledger", str(ledger), "--group", "cg_order_sync", "--queue", queue, "--at", AT]
    assert main("explain", [*words, *more]) == 0
    return capsys.readouterr().out


def test_it_ends_with_how_far_the_group_has_read(
    audited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = explained(audited, "order_sync/broker-c/1", capsys)
    assert "committed 668047 at 2023-12-01 15:30:00Z, end 670447 at" in text
    assert ": 2,400 unread" in text
    assert "the commit has not advanced since 2023-12-01 12:10:00Z, while messages arrive" in text
    moving = explained(audited, "order_sync/broker-c/0", capsys)
    assert ": 0 unread" in moving
    assert "stands still" not in moving


def test_json_has_the_row(audited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(explained(audited, "order_sync/broker-c/1", capsys, "--json"))
    assert (facts["progress"]["unread"], facts["progress"]["client_id"]) == (
        2400,
        "10.41.3.1@1#9001",
    )


def test_a_queue_without_a_commit_states_why(
    audited: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = explained(audited, "%RETRY%cg_order_sync/broker-c/0", capsys)
    assert "unread" not in text or "no file has" in text


def test_a_lite_topic_is_not_explained_without_a_caveat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "output"
    case = Path(__file__).parent / "data" / "src-lite-topics"
    assert main("audit", ["--collection", str(case), "--output", str(output)]) == 0
    capsys.readouterr()
    where = ["--group", "exclusiveGroup", "--queue", "chat_sessions/broker-a/0"]
    words = ["--ledger", str(output), *where, "--at", "2026-05-26T02:00:00Z"]
    assert main("explain", words) == 0
    text = capsys.readouterr().out
    assert "chat_sessions is of type LITE: which of its lite topics a client reads" in text
    assert "unread unknown (the topic is of type LITE" in text
    assert "has not advanced" not in text
