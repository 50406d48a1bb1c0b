"""What is cheap to find is told before a session is asked for, by a run and a dry run alike."""

import errno
import gzip
import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run import on_spark
from rebalance_core.contracts import CONTRACT_VERSION
from rebalance_core.contracts.run_names import LOCK_NAME
from tests.tree import TREE

TABLES = str(TREE / "tests/recordings/data/join-leave/tables")
NIGHTLY = str(TREE / "tests/recordings/data/nightly/collection")
SIMULATE = ("simulate", "--input", TABLES)
PLAN = ("plan", "--input", TABLES)
PROPAGATE = ("propagate", "--input", TABLES)
AUDIT = ("audit", "--input", TABLES)
KNOWN = "known: AVG, AVG_BY_CIRCLE, CONFIG, MACHINE_ROOM, CONSISTENT_HASH"

Ends = Callable[..., tuple[int, str]]


@pytest.fixture(params=[(), ("--dry-run",)], ids=["run", "dry-run"])
def ends(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ends:
    """Runs a job on Spark where no session can be had; its exit code and stderr."""

    def no_session(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a session was asked for")

    monkeypatch.setattr(on_spark, "open_session", no_session)

    def run(*words: object) -> tuple[int, str]:
        code = main(None, [*map(str, words), "--run-on", "spark", *request.param])
        printed = capsys.readouterr()
        assert printed.out == ""
        return code, printed.err

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SIMULATE, "--strategy", "AVERAGE"), "did you mean AVG?"),
        ((*SIMULATE, "--strategy", "AVERAGE"), KNOWN),
        ((*SIMULATE, "--strategy", "CONSISTENT_HASH(virtual_nodes=x)"), "virtual_nodes=x"),
        ((*SIMULATE, "--strategy", "AVG(x"), "the closing ')' is missing"),
        ((*SIMULATE, "--strategy", "CONSISTENT_HASH(virtual_nodes=-1)"), "virtualNodeCnt"),
        ((*SIMULATE, "--strategy", "league"), "unknown strategy"),
        ((*SIMULATE, "--group", "order-[ab]"), "group names cannot contain '['"),
        ((*SIMULATE, "--group", "order.*"), "group names cannot contain '.'"),
        ((*SIMULATE, "--group", ""), "--group is empty"),
        ((*SIMULATE, "--from=--5"), "epoch milliseconds"),
        ((*SIMULATE, "--to", "9" * 5000), "epoch milliseconds"),
        ((*SIMULATE, "--max-bad-share", "2"), "expected a number from 0 to 1"),
        ((*SIMULATE, "--on-bad-rows", "drop"), "expected one of quarantine, fail"),
        ((*SIMULATE, "--set", "max_bad_shares=1"), "did you mean max_bad_share?"),
        ((*SIMULATE, "--config", "/none.toml"), "--config /none.toml: No such file"),
        ((*SIMULATE, "--master", "localhost"), "--master localhost: expected local"),
        ((*SIMULATE, "--master", "local[two]"), "--master local[two]: expected local"),
        ((*PROPAGATE, "--seeds", "9" * 5000), "expected a whole number of 1 or more"),
        ((*PROPAGATE, "--lost-notices", "nan"), "--lost-notices nan: expected a share from 0 to 1"),
        ((*PROPAGATE, "--late-name-server", "2:5"), "2: expected a share from 0 to 1"),
        ((*PROPAGATE, "--late-name-server", "0.5:-1"), "expected SHARE:MS"),
        ((*PROPAGATE, "--group", "a b"), "group names cannot contain ' '"),
        ((*PROPAGATE, "--on-bad-rows", "drop"), "expected one of quarantine, fail"),
        ((*PLAN, "--strategy", "AVERAGE"), "did you mean AVG?"),
        ((*PLAN, "--on-bad-rows", "drop"), "expected one of quarantine, fail"),
        ((*AUDIT, "--max-bad-share", "2"), "expected a number from 0 to 1"),
        ((*PLAN, "--strategy", "STICKY"), "did you mean STICKY_BALANCED?"),
        ((*PLAN, "--strategy", "leage"), "unknown strategy"),
        ((*PLAN, "--group", "a b"), "group names cannot contain ' '"),
        (
            (*PLAN, "--scenario", f"{TREE}/rebalance_core/bundled/scenarios/add-consumer.toml"),
            "did you mean add-con",
        ),
        ((*PLAN, "--scenario", TABLES), "Is a directory"),
        ((*PLAN, "--seed", "9" * 5000), "expected a whole number from 0"),
        ((*AUDIT, "--accepted", "/none.toml"), "--accepted /none.toml: No such file"),
        ((*AUDIT, "--write-accepted", "/none/x.toml"), "no such folder"),
        ((*AUDIT, "--set", "assume.strategy=AVERAGE"), "assume.strategy: unknown strategy"),
        (("audit", "--collection", NIGHTLY, "--set", "assume.time_zone=X"), "is not a time zone"),
        (("ingest", "--collection", NIGHTLY, "--set", "assume.client_version=x"), "client_version"),
        (("generate", "--groups", "many"), "--groups many: expected a whole number"),
        (("generate", "--groups", "9" * 5000), "expected a whole number"),
        (("generate", "--groups", "5", "--days", "0"), "--days 0: not from 1"),
    ],
)
def test_a_wrong_option_ends_with_2(
    ends: Ends, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, err = ends(*words, "--output", tmp_path / "out")
    assert code == 2, err
    assert said in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]",
                                    "yarn", "spark://a:7077", "k8s://https://a"])  # fmt: skip
def test_masters_of_spark_are_none_of_our_business(ends: Ends, tmp_path: Path, master: str) -> None:
    code, err = ends(*SIMULATE, "--master", master, "--output", tmp_path / "out")
    assert (code, "a session was asked for" in err) == (1, True)


def test_a_wrong_master_is_named_with_the_jobs_own_mistakes(ends: Ends) -> None:
    _, err = ends("simulate", "--master", "localhost", "--from", "noon")
    assert len(err.splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate", "--input", "/none"), "--input /none: no such folder"),
        (
            ("plan", "--input", str(TREE / "rebalance_core/bundled/demo/steady")),
            "rebalance_core/bundled/demo/steady/tables?",
        ),
        (
            ("simulate", "--input", str(TREE / "README.md")),
            "a file; name the folder that contains it",
        ),
        (("audit", "--collection", str(TREE / "README.md")), "name the folder that contains it"),
        (("simulate", "--events", f"{TABLES}/cluster_event.jsonl"), "mean cluster_events.jsonl?"),
        (("simulate", "--events", f"{TABLES}/*.txt"), "no file matches"),
        (("simulate", "--events", str(TREE / "README.md")), "use a suffix: .jsonl"),
        (("plan", "--input", "/none"), "--input /none: no such folder"),
        ((*PLAN, "--queue-rates", "/none.csv"), "--queue-rates /none.csv: no such file"),
        (("audit", "--input", "/none"), "--input /none: no such folder"),
        (("audit", "--collection", "/none"), "--collection /none: no such folder"),
        ((*AUDIT, "--previous", TABLES), "no result"),
        (("ingest", "--collection", "/none"), "--collection /none: no such folder"),
    ],
)
def test_an_input_that_is_none_ends_with_4(
    ends: Ends, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, err = ends(*words, "--output", tmp_path / "out")
    assert code == 4, err
    assert said in err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cluster_events.jsonl.gz", b"", "truncated gzip"),
        ("cluster_events.jsonl.gz", b"\x1f", "truncated gzip"),
        ("cluster_events.csv.gz", b"cluster,event_ms\n", "not a gzip"),
        ("cluster_events.jsonl/part-0.bz2", b"{}\n", "not a bzip2"),
        ("cluster_events.txt", b"{}\n", "does not show its format"),
        ("cluster_events/part-0", b"{}\n", "does not show its format"),
    ],
)
def test_a_file_that_is_not_what_its_name_states(
    ends: Ends, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    for job in ("simulate", "plan", "audit"):
        code, err = ends(job, "--input", tmp_path, "--output", tmp_path / "out")
        assert code == 4, err
        assert said in err


def test_files_that_spark_passes_over_do_not_matter(ends: Ends, tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "cluster_events.jsonl"
    (folder / "_temporary").mkdir(parents=True)
    (folder / "_temporary" / "x.gz").write_bytes(b"")
    (folder / "part-0.gz").write_bytes(gzip.compress(b"{}\n"))
    given = ("--input", folder.parent, "--output", tmp_path / "out")
    words = ("simulate", *given, "--run-on", "spark")
    code, err = ends(*words)
    assert "a session was asked for" in err, code


def test_what_may_not_be_looked_at_or_written(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists

    def guarded(path: Path) -> bool:
        if path.parent.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return exists(path)

    output = ("--output", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", guarded)
        code, err = ends("simulate", "--events", "/closed/cluster_events.jsonl", *output)
    assert (code, "/closed/cluster_events.jsonl cannot be read: Permission" in err) == (4, True)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path and access(path, mode))
    code, err = ends(*AUDIT, "--write-accepted", tmp_path / "known.toml", *output)
    assert (code, "known.toml: Permission denied" in err) == (2, True)


def lock(folder: Path, heartbeat: str) -> None:
    folder.mkdir()
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "started_at": heartbeat,
              "heartbeat": heartbeat, "token": "t"}  # fmt: skip
    (folder / LOCK_NAME).write_text(json.dumps(holder))


def test_an_output_that_cannot_be_had(ends: Ends, tmp_path: Path) -> None:
    taken, dead, file = tmp_path / "taken", tmp_path / "dead", tmp_path / "file"
    lock(taken, datetime.now(UTC).isoformat())
    lock(dead, "2026-01-01T00:00:00+00:00")
    file.write_text("x")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    for output, exit_code, said in (
        (taken, 5, "another run holds it"),
        (dead, 5, "--break-lock takes over"),
        (file, 5, "is a file"),
        (file / "below", 2, "Not a directory"),
        (full, 5, "never overwrites"),
    ):
        code, err = ends(*SIMULATE, "--output", output)
        assert (code, said in err) == (exit_code, True), err
    assert sorted(tmp_path.rglob("*")) == before
    _, err = ends(*SIMULATE, "--output", dead, "--break-lock", "--run-on", "spark")
    assert "a session was asked for" in err


def test_a_previous_night_without_its_findings(ends: Ends, tmp_path: Path) -> None:
    record = {
        "job": "audit",
        "status": "OK",
        "library_version": "0",
        "contract_version": CONTRACT_VERSION,
    }
    (tmp_path / "_run.json").write_text(json.dumps(record))
    code, err = ends(*AUDIT, "--output", tmp_path / "out", "--previous", tmp_path)
    assert (code, "its table findings is missing" in err) == (4, True), err
