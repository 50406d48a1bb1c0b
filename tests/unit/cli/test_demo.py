"""The demo, the first file of a collection, bundled names."""

import json
import tomllib
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from rebalance_core.cli.demo import COLLECTION, RECORDING
from rebalance_core.cli.main import main
from tests.tree import TREE

RECORDED = TREE / "tests/recordings/data/nightly/collection"


def test_the_demo_is_the_recording_of_the_tests() -> None:
    packed = files("rebalance_core") / "bundled" / RECORDING
    with zipfile.ZipFile(str(packed)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    there = {
        f"{COLLECTION}/{path.relative_to(RECORDED).as_posix()}": path.read_bytes()
        for path in RECORDED.rglob("*")
        if path.is_file()
    }
    assert held == there, "run scripts/bundle_recording.py"


def test_the_demo_is_written_once_and_replaced_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(None, ["demo"]) == 0
    assert (tmp_path / "rebalance-demo/audit/report.html").is_file()
    assert main(None, ["demo"]) == 5
    assert "rebalance-demo exists already" in capsys.readouterr().err
    assert main(None, ["demo", "rebalance-demo", "--overwrite", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["job"], facts["exit_code"], facts["verdict"]) == ("demo", 0, "FAILED")


def test_a_first_collection_toml_is_read_and_never_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["collect", "--init", "--cluster", "c-1", "--output", str(tmp_path / "c")]
    assert main(None, [*words, "--dry-run"]) == 0
    assert not (tmp_path / "c").exists()
    assert main(None, words) == 0
    file = tmp_path / "c" / "collection.toml"
    settings = tomllib.loads(file.read_text("utf-8"))
    assert settings["cluster"] == "c-1"
    assert settings["expected"] == {"brokers": [], "name_servers": []}
    (tmp_path / "c/brokers/a").mkdir(parents=True)
    (tmp_path / "c/brokers/a/broker.log").write_text("")
    audit = ["ingest", "--collection", str(tmp_path / "c"), "--output", str(tmp_path / "o")]
    assert main(None, [*audit, "--dry-run"]) in (0, 4)  # read; what is beside it says nothing yet
    assert "collection.toml" not in capsys.readouterr().err
    before = file.read_bytes()
    assert main(None, words) == 5
    assert file.read_bytes() == before
    assert main(None, ["collect", "--init", "--cluster", 'a"b', "--output", str(tmp_path)]) == 2
    assert main(None, ["collect", "--no-admin"]) == 2
    assert "--no-admin requires --sources FILE" in capsys.readouterr().err


def test_collect_hands_its_options_to_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = tmp_path / "sources.txt"
    logs, store = tmp_path / "logs", tmp_path / "store"
    (store / "config").mkdir(parents=True)
    for name in ("topics", "subscriptionGroup", "consumerOffset"):
        (store / f"config/{name}.json").write_text("{}")
    logs.mkdir()
    (logs / "broker.log").write_text("2026-11-21 11:28:55 INFO main - x\n")
    sources.write_text(f"broker broker-a {logs} {store}\n")
    words = ["collect", "--sources", str(sources), "--cluster", "c1", "--no-admin"]
    assert main(None, [*words, "--output", str(tmp_path / "out")]) == 0
    assert "Collection in" in capsys.readouterr().out
    assert 'cluster = "c1"' in (tmp_path / "out/collection.toml").read_text()
    assert (tmp_path / "out/brokers/broker-a/broker.log").is_file()
    assert main(None, [*words, "--output", str(tmp_path / "out")]) == 2  # not empty
    sources.write_text(f"broker broker-a {tmp_path}/nowhere {store}\n")
    assert main(None, [*words, "--output", str(tmp_path / "two")]) == 3


def test_bundled_names_are_files_unless_a_file_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = ["plan", "--input", "i", "--output", "o", "--scenario"]
    assert main(None, [*plan, "ad-consumers"]) == 2
    err = capsys.readouterr().err
    assert "no such file, and no bundled one of add-broker, add-consumers, " in err
    assert err.rstrip().endswith("did you mean add-consumers?")
    (tmp_path / "add-consumers").write_text("nonsense")
    assert main(None, [*plan, "add-consumers"]) == 2
    assert "add-consumers: not TOML" in capsys.readouterr().err
    assert main(None, ["producers", "--model", "outag", "--output", "o"]) == 2
    assert "did you mean outage?" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["add-consumers"]
