"""Classes named in a configuration: from a file of a client to a verdict."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import rebalance_core
from rebalance_core import MessageQueue
from rebalance_core.cli.main import main
from tests.plugins import OwnAverage
from tests.recordings.tables import DATA
from tests.unit.process.own_strategy import FOLDER, GREY, rows

pytestmark = pytest.mark.usefixtures("registered_plugins")
ALLOWED = ("--allow-plugins", "tests.plugins")
NAMED = ("--set", f"strategies.{GREY}=tests.plugins:OwnAverage", *ALLOWED)


def renamed(folder: Path, name: str) -> Path:
    """A recording whose clients, their logs and dumps say, divide by an own class."""
    found = folder / "collection"
    copytree(DATA / "broker-loss-4.9" / "collection", found)
    (found / "consumer_groups.jsonl").unlink()
    for path in found.rglob("*"):
        if path.name.startswith("rocketmq_client.log"):
            text = gzip.decompress(path.read_bytes())
            new = f"allocateMessageQueueStrategyName={name}".encode()
            path.write_bytes(
                gzip.compress(text.replace(b"allocateMessageQueueStrategyName=AVG", new))
            )
        elif "consumerStatus" in str(path) and path.is_file():
            text = path.read_bytes()
            was = b"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
            path.write_bytes(text.replace(was, GREY.encode()))
    return found


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return renamed(tmp_path_factory.mktemp("renamed"), "GREY")


def test_a_class_that_is_not_named_is_unknown_with_a_hint(collection: Path) -> None:
    audit = rebalance_core.audit_collection(collection)
    verdicts = {row["consumer_group"]: row["verdict"] for row in audit.group_verdicts.to_pylist()}
    assert verdicts["GID_trade"] == "UNKNOWN"
    assert 'name it in the configuration: [strategies] "GREY" =' in " ".join(audit.text.split())


def test_a_class_that_is_named_is_compared_like_any_other(collection: Path, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(
        f'[strategies]\n"{GREY}" = "tests.plugins:OwnAverage"\nGREY = "tests.plugins:OwnAverage"\n'
    )
    audit = rebalance_core.audit_collection(collection, config=config, allow_plugins=["tests"])
    original = rebalance_core.audit_collection(DATA / "broker-loss-4.9" / "collection")
    assert rows({"verdicts": audit.group_verdicts}) == rows({"verdicts": original.group_verdicts})
    rules = [sorted(one.findings["rule_id"].to_pylist()) for one in (audit, original)]
    assert rules[0] == rules[1]
    assert set(audit.memberships["strategy"].to_pylist()) == {GREY}


def test_a_named_class_that_throws_is_reported_with_its_reason(collection: Path) -> None:
    rebalance_core.register_strategy("GREY", Crowd())
    audit = rebalance_core.audit_collection(collection)
    (finding,) = [r for r in audit.findings.to_pylist() if r["rule_id"] == "FROZEN_GROUP"]
    assert "GREY throws ValueError: three are a crowd" in finding["summary"]


class Crowd(OwnAverage):
    """Three of the recording are too many; the check when it is named has other ids."""

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if len(client_ids) == 3 and client_ids[0].startswith("172."):
            raise ValueError("three are a crowd")
        return super().allocate(client_id, queues, client_ids)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def simulate(*words: str) -> tuple[int, str]:
        code = main(
            None,
            [
                "simulate",
                "--input",
                str(FOLDER),
                "--run-on",
                "process",
                "--output",
                str(tmp_path / "out"),
                *words,
            ],
        )
        assert (tmp_path / "out").exists() == (code == 0)
        return code, capsys.readouterr().err

    return simulate


def test_an_option_may_name_what_the_settings_name(run: Any) -> None:
    assert run(*NAMED, "--strategy", GREY)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--strategy", GREY), "name a custom strategy in [strategies] of the configuration"),
        (("--set", "strategies.A=acme"), "strategies: A = 'acme': expected module:attribute"),
        (
            ("--set", "strategies.A=no_such:It", "--allow-plugins", "no_such"),
            "no_such cannot be imported (ModuleNotFoundError",
        ),
        (("--set", "strategies.A=no_such:It"), "allow it: --allow-plugins no_such"),
        (("--allow-plugins", "os"), "--allow-plugins os: part of Python itself"),
        (("--allow-plugins", "./acme"), "--allow-plugins ./acme: expected the name of a Python"),
        (("--set", "strategies.A=3"), "--set: strategies.A = 3: expected module:attribute"),
        (("--set", "strategies=3"), "strategies = 3: is a section, not a setting"),
        (
            ("--set", "strategies.AVG=tests.plugins:Sticky", *ALLOWED),
            "AVG is already a name in RocketMQ or in plans",
        ),
        (("--set", "strategis.A=x:y"), "did you mean strategies"),
        (("--set", "hash_functions.h=tests.plugins:Sticky", *ALLOWED), "has no (key)"),
        (("--set", "room_resolvers.r=tests.plugins:Sticky", *ALLOWED), "has no broker_room"),
    ],
)
def test_a_mistake_is_reported_before_anything_starts(
    run: Any, words: tuple[str, ...], said: str
) -> None:
    code, printed = run(*words)
    assert code == 2
    assert said in printed
    assert "simulating" not in printed


def test_all_mistakes_are_reported_at_once(run: Any) -> None:
    code, printed = run("--set", "strategies.A=acme", "--set", "strategies.B=no_such:It")
    assert code == 2
    assert "strategies: A" in printed
    assert "strategies: B" in printed
