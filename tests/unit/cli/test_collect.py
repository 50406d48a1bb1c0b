"""`collect` as a command: what is missing ends with 3, and redaction."""

import json
import stat
from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.collection_settings import read_settings
from rebalance_core.ingest.redaction import Key
from tests.recordings.tables import DATA
from tests.unit.collect.machines import machines

COLLECTION = str(DATA / "join-leave/collection")


def collect(*words: str) -> int:
    return main("collect", list(words))


def test_what_is_missing_ends_with_3_and_stands_in_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = machines(tmp_path)
    sources.write_text(f"{sources.read_text()}client gone {tmp_path}/nowhere\n")
    words = ["--sources", str(sources), "--no-admin", "--json"]
    assert collect(*words, "--output", f"{tmp_path}/out") == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["complete"] is False
    (failed,) = answer["failed"]
    assert failed["what"] == "clients/gone"
    assert "nowhere" in failed["why"]
    assert collect(*words, "--output", f"{tmp_path}/out") == 2  # not empty


def test_a_collection_is_redacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, output = tmp_path / "key.json", tmp_path / "out"
    words = ["--redact", str(key), "--input", COLLECTION, "--output", str(output)]
    assert collect(*words, "--dry-run") == 0
    assert not key.exists()
    assert not output.exists()
    assert collect(*words, "--json") == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["files"], answer["key"]) == (60, str(key))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "10.0.0.1" in Key.read(key).hosts
    assert collect(*words) == 5
    assert collect(*words[:-1], str(tmp_path / "other")) == 5  # the key is there
    assert not (tmp_path / "other").exists()


def test_what_is_collected_is_redacted_and_nothing_else_is_left(tmp_path: Path) -> None:
    sources = machines(tmp_path)
    log = tmp_path / "app1/logs/rocketmq_client.log"
    log.write_text("2026-11-21 11:28:35,1 INFO x - clientId=10.0.0.7@12 went\n")
    words = ["--sources", str(sources), "--no-admin", "--redact", f"{tmp_path}/key.json"]
    assert collect(*words, "--output", f"{tmp_path}/new/out") == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]
    folder = tmp_path / "new/out"
    assert read_settings(folder).redacted
    assert "billing" not in "".join(file.name for file in open_collection(folder).files)
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(b"10.0.0.7" in text for text in texts)


def test_what_cannot_be_collected_leaves_no_key(tmp_path: Path) -> None:
    words = ["--sources", f"{tmp_path}/none", "--no-admin", "--redact", f"{tmp_path}/key.json"]
    assert collect(*words, "--output", f"{tmp_path}/out") == 2
    assert {path.name for path in tmp_path.iterdir()} == set()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input", COLLECTION], "--input requires --redact KEYFILE"),
        (["--init", "--redact", "k"], "--init collects nothing to redact"),
        (["--redact", "{here}/out/key", "--input", COLLECTION], "anyone who receives the folder"),
        (["--redact", "{here}/k", "--input", "{here}"], "contains the other"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    given = [word.replace("{here}", str(tmp_path)) for word in words]
    assert collect(*given, "--output", f"{tmp_path}/out") == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
