"""`--previous`: three nights of which one saw little, and results of another contract."""

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.changes import Changes, Earlier
from rebalance_core.cli.audit_summary import NAMED_CHANGES, render_audit
from rebalance_core.cli.main import main
from rebalance_core.contracts import CONTRACT_VERSION
from tests.history.made_nights import TOGGLED, Planted, make_nights
from tests.recordings.tables import DATA

COLLECTION = DATA / "nightly" / "collection"
OPEN = 18
"""Findings above INFO of the recording."""


def audited(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    code = main("audit", [*map(str, words), "--json"])
    out, err = capsys.readouterr()
    assert code in (0, 3), err
    facts: dict[str, Any] = json.loads(out)
    return facts


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit of the first night, which saw everything."""
    folder, said = tmp_path_factory.mktemp("nights") / "first", io.StringIO()
    words = ["--collection", str(COLLECTION), "--output", str(folder), "--json"]
    with contextlib.redirect_stdout(said):
        assert main("audit", words) == 3
    assert json.loads(said.getvalue())["changes"] is None
    return folder


def damaged(tmp_path: Path, *patterns: str) -> Path:
    collection = tmp_path / "damaged"
    shutil.copytree(COLLECTION, collection)
    for pattern in patterns:
        for path in sorted(collection.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return collection


@pytest.mark.parametrize(
    ("missing", "not_looked_at"),
    [
        # what only a log of every broker has; how topics that no dump shows there are set up
        (("brokers/broker-a",), 5),
        (("brokers/broker-b",), 6),  # the same, and TOPIC_GONE: it was deleted there
        (("brokers/*",), 9),  # lists show who is a member, and an id that stands there twice
        (("mqadmin/*",), 4),  # how some members divide, too
        (("mqadmin/*consumerStatus*", "mqadmin/*consumerProgress*"), 3),
    ],
)
def test_a_night_that_saw_little_makes_nothing_gone_nor_new(
    first: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    missing: tuple[str, ...],
    not_looked_at: int,
) -> None:
    second, third = (tmp_path / name for name in ("second", "third"))
    whole = ("--collection", COLLECTION, "--output")
    facts = audited(
        capsys,
        "--collection",
        damaged(tmp_path, *missing),
        "--output",
        second,
        "--previous",
        first,
    )
    assert facts["verdict"] == "INCOMPLETE"
    changes = counted(facts["changes"])
    assert (changes["gone"], changes["not_looked_at"]) == (0, not_looked_at)
    assert changes["still"] == OPEN - not_looked_at
    page = (second / "report.html").read_text("utf-8")
    assert (f"<b>{not_looked_at} not looked at</b>" in page) == (not_looked_at > 0)
    assert (second / "not_looked_at.jsonl").exists() == (not_looked_at > 0)

    changes = counted(audited(capsys, *whole, third, "--previous", second)["changes"])
    assert (changes["new"], changes["still"], changes["not_looked_at"]) == (0, OPEN, 0)
    assert not (third / "not_looked_at.jsonl").exists()


def test_names_of_clients_are_not_carried(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = tmp_path / "second"
    collection = damaged(tmp_path, "brokers/*")
    audited(
        capsys,
        "--collection",
        collection,
        "--output",
        second,
        "--previous",
        first,
        "--redact-clients",
    )
    carried = (second / "not_looked_at.jsonl").read_text("utf-8")
    assert "UNSUBSCRIBED_SHARE" in carried
    assert "10.0.2.42" not in carried


def test_results_of_another_contract_are_refused(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "runs" / "other"
    shutil.copytree(first, other)
    record = json.loads((other / "_run.json").read_text("utf-8"))
    (other / "_run.json").write_text(
        json.dumps(record | {"contract_version": CONTRACT_VERSION - 1}), "utf-8"
    )
    output = tmp_path / "night"
    queue = ["--group", "order-service", "--queue", "orders/broker-a/0"]
    for job, words in {
        "audit": ["--collection", COLLECTION, "--output", output, "--previous", other],
        "explain": ["--ledger", other, *queue, "--at", "2026-11-21T03:51:00Z"],
        "simulate": ["--input", other, "--output", output],
        "history": ["--runs", other.parent, "--output", output],
    }.items():
        assert main(job, list(map(str, words))) == 4, job
        said = capsys.readouterr().err
        assert f"tables of contract version {CONTRACT_VERSION - 1};" in said, job


def counted(changes: dict[str, Any]) -> dict[str, int]:
    return {s: found if isinstance(found, int) else len(found) for s, found in changes.items()}


def test_what_comes_back_is_distinguished_from_what_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its topic's line in the store a finding is gone, and with it back again."""
    there = ({"LEFTOVER_OFFSETS"}, set[str](), set(TOGGLED))
    plans = [Planted(there=rules, made=False) for rules in there]
    first, second, third = make_nights(tmp_path, plans, 1)
    capsys.readouterr()
    again = tmp_path / "again"
    for run, previous in ((second, first), (third, second)):
        words = ["--input", run / "given", "--output", again / run.name]
        last = again / previous.name if (again / previous.name).exists() else previous
        facts = audited(capsys, *words, "--previous", last, "--fail-on-new", "WARNING")
        if run == second:
            (gone,) = facts["changes"]["gone"]
            assert gone["rule"] == "LEFTOVER_OFFSETS"
            subject = f"{gone['group']} {gone['topic']}"
            assert f"\n          gone: LEFTOVER_OFFSETS {subject}\n" in render_audit(facts)
            assert facts["exit_code"] == 0
    assert [one["rule"] for one in facts["changes"]["reopened"]] == ["LEFTOVER_OFFSETS"]
    assert [one["rule"] for one in facts["changes"]["new"]] == ["OFFLINE_WITH_LAG"]
    assert facts["exit_code"] == 3
    assert main("audit", ["--input", "i", "--output", "o", "--fail-on-new", "ERROR"]) == 2


def test_each_change_names_its_subject(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: Path
) -> None:
    words = ("--collection", COLLECTION, "--previous", first, "--output", tmp_path / "second")
    facts = audited(capsys, *words)

    def lines(clusters: int) -> list[str]:
        found = dict.fromkeys(map(str, range(clusters)), next(iter(facts["clusters"].values())))
        text = render_audit(facts | {"clusters": found, "changes": changes.listed()})
        begun = text[text.index("changes   ") :].split("\n")
        return [line.strip() for line in begun[: begun.index("")] if line.startswith(" " * 10)]

    row = {"summary": "", "fingerprint": "f", "cluster": "C", "rule_id": "R"}

    def finding(group: str | None, broker: str | None, topic: str | None) -> Any:
        return row | {"consumer_group": group, "broker_name": broker, "topic": topic}

    subjects = [finding("g", "b", "t"), finding("g", None, None), finding(None, "b", "t")]
    subjects += [finding(None, None, "t"), finding(None, None, None)]
    brokers = [finding(None, f"b{n}", None) for n in range(NAMED_CHANGES + 2)]
    unseen = [Earlier(row) for row in [*brokers[:1], *brokers]]
    changes = Changes(subjects[:1], subjects[1:2], subjects, subjects[3:], unseen, subjects[2:3])
    named = ["new: R g t", "reopened: R g", "healed: R b", "gone: R t", "gone: R cluster"]
    named += ["not looked at: R b0 (2 findings)"]
    named += [f"not looked at: R b{n}" for n in range(1, NAMED_CHANGES)]
    assert lines(1)[: len(named) + 1] == [*named, "and 2 more not looked at"]
    assert lines(2)[:2] == ["new: R C g t", "reopened: R C g"]
