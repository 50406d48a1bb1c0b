"""Logs that an earlier run read are copied from where it ended; all others whole."""

import gzip
import hashlib
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.unit.collect.machines import Run, collect, executable

RUN = "/runs/nights/2026-11-20T031000Z/audit"
BEGIN = "".join(f"2026-11-20 10:{n // 60:02}:{n % 60:02} INFO T - line {n}\n" for n in range(900))
MORE = "2026-11-21 09:00:00 INFO T - a line of the second night\n" * 40
NEW = BEGIN.replace("2026-11-20", "2026-11-22")
TOOLS = ("sh", "find", "tar", "sort", "head", "tail", "cat", "wc", "gzip", "stat", "printf")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()[:4096]).hexdigest()


def ending(data: str | bytes) -> str:
    data = data.encode() if isinstance(data, str) else data
    return hashlib.sha256(data[-4096:]).hexdigest()


def known(text: str = BEGIN, goes_on: int = 1, packed: bytes = b"") -> str:
    """The line of a log that an earlier run read, packed as it was then."""
    read = packed or text.encode()
    fields = (digest(text), len(read), goes_on, int(bool(packed)), ending(read))
    return "\t".join(["brokers/b", *map(str, fields)]) + "\n"


def copy(root: Path, *logs: str, **environment: str) -> Run:
    """A night of the broker b, whose logs lie in `root`/logs, after a run that knew the logs."""
    (root / "store/config").mkdir(parents=True, exist_ok=True)
    for name in ("topics", "subscriptionGroup", "consumerOffset"):
        (root / f"store/config/{name}.json").write_text("{}")
    (root / "known").write_text(RUN + "\n" + "".join(logs))
    host = "host:" if "COLLECT_SSH" in environment else ""
    (root / "sources").write_text(f"broker b {host}{root}/logs {host}{root}/store\n")
    shutil.rmtree(root / "collection", ignore_errors=True)
    words = ["--sources", str(root / "sources"), "--known", str(root / "known")]
    return collect(root, *words, "--cluster", "C", "--no-admin", **environment)


def write(root: Path, name: str, text: str) -> Path:
    path = root / "logs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def copied(run: Run) -> dict[str, str]:
    """The logs of the collection, unpacked; a part as it is."""
    folder = run.output / "brokers/b"
    return {
        path.relative_to(folder).as_posix(): (
            gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        ).decode()
        for path in folder.rglob("*.log*")
    }


def continued(run: Run) -> dict[str, tuple[str, int, int, str]]:
    settings = tomllib.loads((run.output / "collection.toml").read_text())
    logs = settings.get("continued", [])
    assert settings.get("continues", RUN if not logs else "") == RUN
    return {
        log["log"].removeprefix("brokers/b/"): (
            log["head"],
            log["begins_at"],
            log["size"],
            log["ending"],
        )
        for log in logs
    }


def test_what_grew_is_copied_and_what_did_not_is_empty(tmp_path: Path) -> None:
    write(tmp_path, "broker.log", BEGIN + MORE)
    write(tmp_path, "lock.log", NEW)
    write(tmp_path, "filter.log", MORE)
    run = copy(tmp_path, known(), known(NEW))
    assert run.code == 0, run.stderr
    assert copied(run) == {"broker.log": MORE, "lock.log": "", "filter.log": MORE}
    assert continued(run) == {
        "broker.log": (digest(BEGIN), len(BEGIN), len(BEGIN + MORE), ending(BEGIN + MORE)),
        "lock.log": (digest(NEW), len(NEW), len(NEW), ending(NEW)),
    }
    assert "2 logs from where" in run.stderr


@pytest.mark.parametrize("name", ["otherdays/broker.1.log", "otherdays/broker.1.log.gz"])
def test_a_log_that_was_rotated_is_known_by_its_beginning(tmp_path: Path, name: str) -> None:
    rotated = write(tmp_path, name, BEGIN + MORE)
    write(tmp_path, "broker.log", NEW)
    run = copy(tmp_path, known())
    assert copied(run) == {name: MORE, "broker.log": NEW}
    read = rotated.read_bytes()
    assert continued(run) == {name: (digest(BEGIN), len(BEGIN), len(read), ending(read))}


def test_a_log_whose_content_was_moved_is_new(tmp_path: Path) -> None:
    """As ``copytruncate`` of logrotate does: another file has the old lines, the inode new ones."""
    log = write(tmp_path, "broker.log", BEGIN + MORE)
    shutil.copy(log, tmp_path / "logs/broker.log-20261121")
    with log.open("r+") as opened:
        opened.truncate(0)
        opened.write(NEW + NEW + MORE)
    run = copy(tmp_path, known())
    assert copied(run) == {"broker.log-20261121": MORE, "broker.log": NEW + NEW + MORE}


def test_a_log_that_was_cut_off_is_copied_whole(tmp_path: Path) -> None:
    write(tmp_path, "broker.log", BEGIN[:30_000])
    write(tmp_path, "lock.log", "")
    run = copy(tmp_path, known(), known(NEW))
    assert copied(run) == {"broker.log": BEGIN[:30_000], "lock.log": ""}
    assert continued(run) == {}


def test_a_packed_log_is_copied_once(tmp_path: Path) -> None:
    packed = write(tmp_path, "otherdays/broker.2.log.gz", BEGIN).read_bytes()
    write(tmp_path, "otherdays/broker.3.log.gz", NEW)
    run = copy(tmp_path, known(BEGIN, 0, packed), known(NEW, 0, b"other"))
    assert copied(run) == {"otherdays/broker.2.log.gz": "", "otherdays/broker.3.log.gz": NEW}
    size = len(packed)
    assert continued(run) == {
        "otherdays/broker.2.log.gz": (digest(BEGIN), size, size, ending(packed))
    }


@pytest.mark.parametrize("name", ["broker.log", "otherdays/broker.1.log.gz"])
@pytest.mark.parametrize("grew", ["", MORE])
def test_a_log_that_filled_up_behind_the_same_head_is_copied_whole(
    tmp_path: Path, name: str, grew: str
) -> None:
    """A log of the same size, or longer, whose first bytes are those that the run read."""
    other = BEGIN[:4096] + BEGIN[4096:].replace("2026-11-20", "2026-11-22") + grew
    write(tmp_path, name, other)
    packed = write(tmp_path, "before/broker.log.gz", BEGIN).read_bytes()
    (tmp_path / "logs/before/broker.log.gz").unlink()
    for before in (known(), known(BEGIN, 0, packed)):
        run = copy(tmp_path, before)
        assert copied(run) == {name: other}
        assert continued(run) == {}


def test_a_packed_log_of_the_same_size_is_told_by_its_last_bytes(tmp_path: Path) -> None:
    packed = write(tmp_path, "otherdays/broker.1.log.gz", BEGIN).read_bytes()
    run = copy(tmp_path, known(BEGIN, 0, packed[:-1] + b"?"))
    assert copied(run) == {"otherdays/broker.1.log.gz": BEGIN}


def test_a_list_without_endings_gives_whole_logs(tmp_path: Path) -> None:
    write(tmp_path, "broker.log", BEGIN + MORE)
    run = copy(tmp_path, known().rpartition("\t")[0] + "\n")
    assert (run.code, copied(run)) == (0, {"broker.log": BEGIN + MORE}), run.stderr


def test_what_cannot_be_read_from_its_middle_is_copied_whole(tmp_path: Path) -> None:
    write(tmp_path, "broker.log", BEGIN + MORE)
    write(tmp_path, "otherdays/broker.1.log.gz", NEW + MORE)
    write(tmp_path, "lock.log", MORE + BEGIN)
    cut = write(tmp_path, "otherdays/broker.2.log.gz", MORE + NEW)
    cut.write_bytes(cut.read_bytes()[:-9])
    logs = [
        known(goes_on=0),
        known(NEW, goes_on=0),
        known(MORE + BEGIN, 0, b"x"),
        known(MORE + NEW),
    ]
    run = copy(tmp_path, *logs)
    assert continued(run) == {}
    for name in (
        "broker.log",
        "otherdays/broker.1.log.gz",
        "lock.log",
        "otherdays/broker.2.log.gz",
    ):
        assert (run.output / "brokers/b" / name).read_bytes() == (
            tmp_path / "logs" / name
        ).read_bytes()


def test_a_log_of_another_host_is_another_log(tmp_path: Path) -> None:
    write(tmp_path, "broker.log", BEGIN)
    run = copy(tmp_path, known().replace("brokers/b\t", "brokers/a\t"))
    assert copied(run) == {"broker.log": BEGIN}


def test_logs_beyond_what_a_command_can_hold_are_copied_whole(tmp_path: Path) -> None:
    write(tmp_path, "broker.log", BEGIN + MORE)
    write(tmp_path, "lock.log", NEW + MORE)
    others = [known(f"{n}\n" * 4096) for n in range(1_000)]
    run = copy(tmp_path, known(), *others, known(NEW))
    assert run.code == 0, run.stderr
    assert copied(run) == {"broker.log": MORE, "lock.log": NEW + MORE}


def test_a_host_without_a_tool_gives_whole_logs(tmp_path: Path) -> None:
    write(tmp_path, "broker.log", BEGIN + MORE)
    for tool in TOOLS:
        executable(tmp_path / f"bin/{tool}", f'exec {shutil.which(tool)} "$@"\n')
    ssh = executable(tmp_path / "ssh", f'PATH={tmp_path}/bin exec sh -c "$2"\n')
    run = copy(tmp_path, known(), COLLECT_SSH=str(ssh))
    assert run.code == 0, run.stderr
    assert copied(run) == {"broker.log": BEGIN + MORE}


def test_hosts_give_what_grew(tmp_path: Path) -> None:
    write(tmp_path, "it's/broker.log", BEGIN + MORE)
    ssh = executable(tmp_path / "ssh", 'exec sh -c "$2"\n')
    run = copy(tmp_path, known(), COLLECT_SSH=str(ssh))
    assert copied(run) == {"it's/broker.log": MORE}, run.stderr


@pytest.mark.parametrize(
    "change",
    ["truncate -s 0 broker.log", "cp new broker.log", "mv broker.log x; cp new broker.log"],
)
def test_a_log_that_is_replaced_while_it_is_copied(tmp_path: Path, change: str) -> None:
    """Cut off, it is no evidence; renamed, it is the log that it was."""
    write(tmp_path, "broker.log", BEGIN + MORE)
    write(tmp_path, "new", NEW)
    of_rest = f'if [ "$2" = +{len(BEGIN) + 1} ]; then {change}; fi >&2\n'
    executable(tmp_path / "bin/tail", f'{of_rest}exec {shutil.which("tail")} "$@"\n')
    ssh = executable(tmp_path / "ssh", f'PATH={tmp_path}/bin:$PATH exec sh -c "$2"\n')
    run = copy(tmp_path, known(), COLLECT_SSH=str(ssh))
    if change.startswith("mv"):
        assert (run.code, copied(run)) == (0, {"broker.log": MORE}), run.stderr
        return
    assert run.code == 1
    assert "1 of 1 files were not copied whole (broker.log)" in run.stderr
    assert list(copied(run)) == ["broker.log.part"]
    assert continued(run) == {}


@pytest.mark.parametrize("length", [0, 40, 100, 160, 180, 200, 900, 2_300, 4_000, 9_000])
def test_a_stream_that_is_cut_leaves_whole_files(tmp_path: Path, length: int) -> None:
    write(tmp_path, "broker.log", BEGIN + MORE)
    write(tmp_path, "lock.log", NEW)
    ssh = executable(tmp_path / "ssh", f'sh -c "$2" | head -c {length}\n')
    run = copy(tmp_path, known(), COLLECT_SSH=str(ssh))
    assert run.code == 1
    for name, text in copied(run).items():
        expected = {"broker.log": MORE, "lock.log": NEW}.get(name)
        assert text == expected or name.endswith(".part"), name
    assert continued(run).keys() == copied(run).keys() & {"broker.log"}


@pytest.mark.parametrize(
    "fields",
    [
        ("../../escaped", "0" * 64, "1", "4", "0" * 64, "4", "0"),
        ("./a\tb", "0" * 64, "1", "4", "0" * 64, "4", "0"),
        ("./x", '"] #', "1", "4", "0" * 64, "4", "0"),
        ("./x", "0" * 64, "1", "4", '"] #', "4", "0"),
        ("./x", "0" * 64, "1;", "4", "0" * 64, "4", "0"),
        ("./x", "0" * 64, "0", "4", "0" * 64, "4", "0"),
        ("./x", "0" * 64, "1", "4", "0" * 64, "-4", "0"),
        ("./x", "0" * 64, "1", "4", "0" * 64, "4", "a[$(touch escaped)]"),
        ("./x", "0" * 64, "1"),
    ],
)
def test_what_a_host_makes_up_is_not_taken(tmp_path: Path, fields: tuple[str, ...]) -> None:
    frame = "\0".join([*fields, "log\nok"]) + "\0/whole\0"
    (tmp_path / "answer").write_text("./x\0/0\0" + frame)
    ssh = executable(tmp_path / "ssh", f"cat {tmp_path}/answer\n")
    run = copy(tmp_path, known(), COLLECT_SSH=str(ssh))
    assert run.code == 1
    assert continued(run) == {}
    assert copied(run) == {}
    assert not list(tmp_path.rglob("escaped"))


def test_a_list_that_is_not_there_is_refused(tmp_path: Path) -> None:
    words = ["--known", f"{tmp_path}/none", "--sources", "/dev/null", "--cluster", "C"]
    run = collect(tmp_path, *words, "--no-admin")
    assert (run.code, run.output.exists()) == (2, False)
