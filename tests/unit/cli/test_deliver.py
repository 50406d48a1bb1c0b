"""Deliveries of `history` and `night`: once, again after a failure, and never in the exit code."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.main import main
from tests.recordings.tables import DATA
from tests.unit.cli.webhooks import SECRET, Webhook, served

Hooks = tuple[Webhook, Webhook]
COLLECTION = DATA / "nightly/collection"
OWNERS = """
[[owner]]
pattern = "notify"
team = "mail"
channel = "#mail"

[[owner]]
pattern = "*"
team = "ops"
channel = "#ops"

[[channel]]
name = "#ops"
webhook = "OPS_WEBHOOK"
body = "slack"

[[channel]]
name = "#mail"
webhook = "MAIL_WEBHOOK"
body = '{"words": "$title|$text"}'
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one night."""
    place = tmp_path_factory.mktemp("audited")
    words = ["--collection", str(COLLECTION), "--output", str(place / "runs/night")]
    assert main("audit", [*words, "--run-on", "process"]) == 3
    return place / "runs"


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooks]:
    monkeypatch.setenv("no_proxy", "*")
    with served() as ops, served() as mail:
        monkeypatch.setenv("OPS_WEBHOOK", ops.url)
        monkeypatch.setenv("MAIL_WEBHOOK", mail.url)
        yield ops, mail


def history(runs: Path, place: Path, *words: str) -> int:
    (place / "owners.toml").write_text(OWNERS)
    options = ["--runs", str(runs), "--output", str(place / "history"), "--run-on", "process"]
    return main("history", [*options, "--owners", str(place / "owners.toml"), *words])


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_each_channel_gets_its_findings_once(
    audited: Path,
    tmp_path: Path,
    hooks: Hooks,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ops, mail = hooks
    assert history(audited, tmp_path, "--deliver", "--json") == 0
    assert [(made["channel"], made["delivered"]) for made in answer(capsys)["deliveries"]] == [
        ("#ops", True),
        ("#mail", True),
    ]
    ((_, body, _),) = ops.got
    assert "NEW ERROR crm: Members of the group subscribe to different topics" in body["text"]
    assert "notify" not in body["text"]
    ((_, body, _),) = mail.got
    assert "NEW ERROR notify: 2 processes have shared the client id" in body["words"]
    assert "follow from it" in body["words"]
    assert history(audited, tmp_path, "--deliver", "--overwrite", "--json") == 0
    assert answer(capsys)["deliveries"] == []
    assert (len(ops.got), len(mail.got)) == (1, 1)
    assert SECRET not in "".join(
        path.read_text() for path in (tmp_path / "history").iterdir() if path.is_file()
    )


def test_a_channel_that_failed_is_tried_again_alone(
    audited: Path,
    tmp_path: Path,
    hooks: Hooks,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ops, mail = hooks
    ops.status = 500
    assert history(audited, tmp_path, "--deliver") == 0
    printed = capsys.readouterr()
    assert "channel #ops (OPS_WEBHOOK): HTTP 500; the next run tries again" in printed.err
    assert "#ops: 7 findings not delivered: HTTP 500" in printed.out
    assert SECRET not in printed.out + printed.err
    ops.status = 200
    assert history(audited, tmp_path, "--deliver", "--overwrite") == 0
    assert (len(ops.got), len(mail.got)) == (2, 1)
    assert ops.got[0] == ops.got[1]


def test_what_failed_in_the_first_night_is_sent_while_it_stays_open(
    audited: Path, tmp_path: Path, hooks: Hooks
) -> None:
    """The next night has it OPEN: it is not news any more, but the channel never had it."""
    ops, mail = hooks
    runs = tmp_path / "runs"
    shutil.copytree(audited, runs)
    ops.status = 500
    assert history(runs, tmp_path, "--deliver") == 0
    later = tmp_path / "later"
    shutil.copytree(COLLECTION, later)
    (dump,) = sorted(later.glob("mqadmin/*-clusterList.txt"))[-1:]
    at_ms = int(dump.name.partition("-")[0]) + 600_000
    dump.rename(dump.with_name(f"{at_ms}-clusterList.txt"))
    words = ["--collection", str(later), "--output", str(runs / "later"), "--run-on", "process"]
    assert main("audit", [*words, "--previous", str(runs / "night")]) == 3
    ops.status = 200
    assert history(runs, tmp_path, "--deliver", "--overwrite") == 0
    assert "NEW ERROR crm: Members of the group subscribe" in ops.got[-1][1]["text"]
    assert len(mail.got) == 1


def test_nothing_is_sent_unless_asked(
    audited: Path,
    tmp_path: Path,
    hooks: Hooks,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ops, mail = hooks
    assert history(audited, tmp_path, "--json") == 0
    assert answer(capsys)["deliveries"] is None
    other = tmp_path / "other"
    other.mkdir()
    assert history(audited, other, "--deliver", "--dry-run") == 0
    printed = capsys.readouterr().out
    assert '"text": "rebalance: ' in printed
    assert "NEW ERROR crm: " in printed
    assert (ops.got, mail.got) == ([], [])
    assert not (other / "history").exists()


def test_a_damaged_note_costs_no_history(
    audited: Path,
    tmp_path: Path,
    hooks: Hooks,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ops, _ = hooks
    assert history(audited, tmp_path, "--deliver") == 0
    (tmp_path / "history/_delivered.json").write_text('{"#ops": [')
    assert history(audited, tmp_path, "--deliver", "--overwrite") == 0
    assert "_delivered.json: damaged" in capsys.readouterr().err
    assert len(ops.got) == 2


@pytest.mark.parametrize(
    ("variable", "body", "message"),
    [
        ("OPS_WEBHOOK", "slack", "environment variable OPS_WEBHOOK is not set"),
        ("OTHER", "slak", "did you mean slack?"),
    ],
)
@pytest.mark.usefixtures("hooks")
def test_mistakes_end_with_2_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    body: str,
    message: str,
) -> None:
    monkeypatch.delenv(variable, raising=False)
    file = tmp_path / "owners.toml"
    file.write_text(OWNERS.replace('"slack"', f'"{body}"'))
    words = ["--owners", str(file), "--deliver", "--runs", str(tmp_path / "runs")]
    assert main("night", [*words, "--collection", str(COLLECTION)]) == 2
    assert message in capsys.readouterr().err
    assert main("history", [*words, "--output", str(tmp_path / "history")]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["owners.toml"]


def test_deliver_needs_channels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--runs", str(tmp_path / "runs"), "--deliver"]
    assert main("night", [*words, "--collection", str(COLLECTION)]) == 2
    assert "--deliver requires --owners" in capsys.readouterr().err
    (tmp_path / "owners.toml").write_text(OWNERS.partition("[[channel]]")[0])
    words += ["--owners", str(tmp_path / "owners.toml")]
    assert main("history", [*words, "--output", str(tmp_path / "history")]) == 2
    assert "has no [[channel]] table" in capsys.readouterr().err


def test_a_night_delivers_and_ends_as_its_audit(
    tmp_path: Path, hooks: Hooks, capsys: pytest.CaptureFixture[str]
) -> None:
    ops, mail = hooks
    (tmp_path / "owners.toml").write_text(OWNERS)
    words = ["--runs", str(tmp_path / "runs"), "--collection", str(COLLECTION), "--run-on"]
    words += ["process", "--owners", str(tmp_path / "owners.toml"), "--deliver"]
    ops.status = 404
    assert main("night", words) == 3
    printed = capsys.readouterr()
    assert "channel #ops (OPS_WEBHOOK): HTTP 404" in printed.err
    assert "#ops: 7 findings not delivered: HTTP 404" in printed.out
    assert main("night", [*words, "--dry-run"]) == 0
    printed = capsys.readouterr()
    assert "to #ops: 7 findings" in printed.out
    assert "#mail" not in printed.out
    ops.status = 200
    assert main("night", words) == 3  # the same night again: #ops waits, #mail has it
    assert "#ops: 7 findings delivered" in capsys.readouterr().out
    assert (len(ops.got), len(mail.got)) == (2, 1)
    assert ops.got[0] == ops.got[1]
