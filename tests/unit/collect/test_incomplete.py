"""What is not copied whole is named, is no evidence, and nothing of it passes for complete."""

import io
import os
import stat
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.collection import open_collection
from tests.unit.collect.machines import SCRIPT, Run, collect, executable, machines, run_script

LONG = "".join(f"line {n}\n" for n in range(2_000))


def copy(root: Path, *lines: str, **environment: str) -> Run:
    root.mkdir(exist_ok=True)
    sources = root / "sources.txt"
    sources.write_text("".join(f"{line}\n" for line in lines))
    given = ["--sources", str(sources), "--cluster", "C", "--no-admin"]
    return collect(root, *given, **environment)


def failed(run: Run) -> dict[str, str]:
    settings = tomllib.loads((run.output / "collection.toml").read_text())
    return {table["what"]: table["why"] for table in settings.get("failed", [])}


def logs(root: Path) -> Path:
    folder = root / "logs"
    for name in ("broker.log", "otherdays/broker.1.log", "otherdays/broker.2.log"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n{LONG}")
    return folder


def proxy_of(root: Path) -> str:
    return f"proxy px host:{logs(root)}"


def copied(run: Run) -> dict[str, str]:
    """The whole files of the proxy, by name."""
    folder = run.output / "proxy/px"
    paths = (p for p in folder.rglob("*") if p.is_file() and p.suffix != ".part")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


@pytest.mark.parametrize("length", [0, 20, 71, 600, 9_000, 36_000, 50_000])
@pytest.mark.parametrize("code", [0, 255])
def test_a_stream_that_is_cut_leaves_whole_files_and_states_what_is_missing(
    tmp_path: Path, length: int, code: int
) -> None:
    cut = f'sh -c "$2" | head -c {length}\nexit {code}\n'
    source = proxy_of(tmp_path)
    run = copy(tmp_path, source, COLLECT_SSH=str(executable(tmp_path / "cut", cut)))
    assert run.code == 1, run.stderr
    (what,) = failed(run)
    assert what == "proxy/px"
    for name, text in copied(run).items():
        assert text == (tmp_path / "logs" / name).read_text(), name


def test_a_stream_that_ends_with_an_error_after_the_last_file_is_not_complete(
    tmp_path: Path,
) -> None:
    ssh = executable(tmp_path / "late", 'sh -c "$2"\nexit 255\n')
    run = copy(tmp_path, proxy_of(tmp_path), COLLECT_SSH=str(ssh))
    assert run.code == 1
    assert len(copied(run)) == 3
    assert "ended with 255" in failed(run)["proxy/px"]


def test_a_log_that_grows_while_it_is_copied_is_complete(tmp_path: Path) -> None:
    grown = "echo 'tar: ./broker.log: file changed as we read it' >&2\nexit 1\n"
    ssh = executable(tmp_path / "grown", f'sh -c "$2"\n{grown}')
    run = copy(tmp_path, proxy_of(tmp_path), COLLECT_SSH=str(ssh))
    assert (run.code, failed(run)) == (0, {}), run.stderr


@pytest.mark.parametrize(
    "error",
    [
        "tar: ./broker.log: File shrank by 9 bytes; padding with zeros",
        "tar: ./broker.log: Read error at byte 4096, while reading 10240 bytes: Input/output error",
    ],
)
def test_a_file_that_arrives_filled_up_is_no_evidence(tmp_path: Path, error: str) -> None:
    ssh = executable(tmp_path / "bad", f'sh -c "$2"\necho "{error}" >&2\nexit 1\n')
    run = copy(tmp_path, proxy_of(tmp_path), COLLECT_SSH=str(ssh))
    assert run.code == 1
    assert "broker.log" not in copied(run)
    assert error.split(": ", 2)[2] in failed(run)["proxy/px"]
    opened = open_collection(run.output)
    assert {file.name.rpartition("/")[2] for file in opened.files} == {
        "broker.1.log",
        "broker.2.log",
    }
    assert [(piece.source, piece.code) for piece in opened.refused] == [
        ("proxy/px/broker.log.part", "INCOMPLETE_COPY")
    ]


def with_tool(root: Path, name: str, text: str) -> dict[str, str]:
    """The environment where a tool of the source machine is another."""
    executable(root / f"bin/{name}", text)
    ssh = executable(root / "ssh-there", f'PATH={root}/bin:$PATH exec sh -c "$2"\n')
    return {"COLLECT_SSH": str(ssh)}


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    find = '/usr/bin/find "$@"\necho "find: \'./otherdays\': Permission denied" >&2\nexit 1\n'
    run = copy(tmp_path, proxy_of(tmp_path), **with_tool(tmp_path, "find", find))
    assert run.code == 1
    assert "'./otherdays': Permission denied" in failed(run)["proxy/px"]


def test_a_file_that_vanishes_before_it_is_read_is_named(tmp_path: Path) -> None:
    source = proxy_of(tmp_path)
    tar = f'rm -f {tmp_path}/logs/otherdays/broker.1.log\nexec /usr/bin/tar "$@"\n'
    run = copy(tmp_path, source, **with_tool(tmp_path, "tar", tar))
    assert run.code == 1
    assert "1 of 3 files were not copied whole (otherdays/broker.1.log)" in failed(run)["proxy/px"]


def test_a_store_that_is_replaced_meanwhile_gets_another_try(tmp_path: Path) -> None:
    machines(tmp_path)
    first = tmp_path / "first"
    tar = (
        f"if [ ! -e {first} ]; then touch {first}; mv topics.json topics.json.tmp; fi\n"
        'exec /usr/bin/tar "$@"\n'
    )
    tool = with_tool(tmp_path, "tar", tar)
    find = (
        f"[ ! -e {tmp_path}/mq1/store/config/topics.json.tmp ] || mv topics.json.tmp topics.json\n"
    )
    executable(tmp_path / "bin/find", f'{find}exec /usr/bin/find "$@"\n')
    (tmp_path / "mq1/store/config/topics.json.bak").unlink()
    source = f"broker broker-a {tmp_path}/mq1/logs host:{tmp_path}/mq1/store"
    run = copy(tmp_path, source, **tool)
    assert first.exists()
    assert (run.code, failed(run)) == (0, {}), run.stderr


def test_a_disk_that_is_full_leaves_parts_and_no_file(tmp_path: Path) -> None:
    source = tmp_path / "sources.txt"
    source.write_text(f"proxy px {logs(tmp_path)}\n")
    (tmp_path / "logs/otherdays/broker.2.log").write_text("short\n")
    limited = executable(tmp_path / "limited", f'trap "" XFSZ; ulimit -f 16\nexec {SCRIPT} "$@"\n')
    words = ("--sources", str(source), "--cluster", "C", "--no-admin")
    run = run_script(limited, tmp_path, *words)
    assert run.code == 1, run.stderr
    assert copied(run) == {"otherdays/broker.2.log": "short\n"}
    assert "2 of 3 files were not copied whole" in failed(run)["proxy/px"]


def hostile(root: Path, *members: tuple[str, dict[str, Any]]) -> dict[str, str]:
    """The environment of a machine that answers with an archive of its own."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, fields in (*members, ("./broker.log", {})):
            info = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(info, field, value)
            content = b"" if info.type != tarfile.REGTYPE else b"log\n"
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    (root / "answer").write_bytes(b"./broker.log\0/0\0" + archive.getvalue())
    return {"COLLECT_SSH": str(executable(root / "ssh", f"cat {root}/answer\n"))}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("./out", {"type": tarfile.SYMTYPE, "linkname": "/etc"}),
        ("./out/passwd", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
        ("./device", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}),
        ("./pipe", {"type": tarfile.FIFOTYPE}),
        ("./folder", {"type": tarfile.DIRTYPE, "mode": 0o777}),
        ("../../escaped", {}),
        ("./a/../../../escaped", {}),
        ("{root}/escaped", {}),
        ("./broker.log/below", {}),
        ("./broker.log.part", {}),
    ],
)
def test_an_archive_gives_plain_files_below_its_folder_and_nothing_else(
    tmp_path: Path, name: str, fields: dict[str, Any]
) -> None:
    before = set(tmp_path.iterdir()) | {tmp_path / n for n in ("collection", "sources.txt")}
    environment = hostile(tmp_path, (name.format(root=tmp_path), fields))
    run = copy(tmp_path, "proxy px host:/logs", **environment)
    assert set(tmp_path.iterdir()) <= before | {tmp_path / "answer", tmp_path / "ssh"}
    modes = [path.lstat().st_mode for path in run.output.rglob("*")]
    assert all(stat.S_ISREG(mode) or stat.S_ISDIR(mode) for mode in modes)
    plain = name.startswith("./") and ".." not in name and not fields
    assert plain or run.code == 1
    assert "proxy/px" in failed(run) or copied(run)["broker.log"] == "log\n"


def test_owners_and_modes_of_an_archive_are_not_taken(tmp_path: Path) -> None:
    member = ("./set-uid.log", {"mode": 0o6777, "uid": 12_345, "gid": 12_345})
    run = copy(tmp_path, "proxy px host:/logs", **hostile(tmp_path, member))
    assert run.code == 0, run.stderr
    status = (run.output / "proxy/px/set-uid.log").stat()
    assert (status.st_uid, status.st_mode & 0o7111) == (os.getuid(), 0)


def test_a_named_pipe_among_the_logs_or_as_sources_does_not_hang(tmp_path: Path) -> None:
    source = f"proxy px {logs(tmp_path)}"
    os.mkfifo(tmp_path / "logs/broker.9.log")
    run = copy(tmp_path, source)
    assert (run.code, len(copied(run))) == (0, 3), run.stderr
    os.mkfifo(tmp_path / "pipe")
    again = collect(tmp_path, "--sources", str(tmp_path / "pipe"), "--cluster", "C", "--no-admin")
    assert again.code == 2
    assert "is no readable plain file" in again.stderr


def test_a_host_is_no_option_of_ssh(tmp_path: Path) -> None:
    folder = logs(tmp_path)
    executable(tmp_path / "bin/ssh", f'echo "$1 $2" >>{tmp_path}/asked\nexec sh -c "$3"\n')
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    run = copy(tmp_path, f"proxy px host:{folder}", PATH=path)
    assert run.code == 0, run.stderr
    assert (tmp_path / "asked").read_text() == "-- host\n"
    for line in (f"proxy py -oProxyCommand=x:{folder}", f"broker b {folder} -w:{folder}"):
        refused = copy(tmp_path / "other", line, PATH=path)
        assert refused.code == 2
        assert "is no host: it begins with -" in refused.stderr


def test_names_that_differ_by_case_alone_are_not_one_folder(tmp_path: Path) -> None:
    folder = logs(tmp_path)
    run = copy(tmp_path, f"proxy Px {folder}", f"proxy pX {folder}")
    assert run.code == 2
    assert "proxy pX and Px differ by case alone" in run.stderr
    assert copy(tmp_path, f"proxy Px {folder}", f"client pX {folder}").code == 1  # no client's log


def test_any_bytes_of_an_error_are_a_toml_text(tmp_path: Path) -> None:
    ssh = executable(tmp_path / "odd", "printf 'a \"b\" \\\\ \\033[1m \\377 é\\n' >&2\nexit 9\n")
    run = copy(tmp_path, "proxy px host:/logs", COLLECT_SSH=str(ssh))
    assert run.code == 1
    assert 'a "b" \\ ' in failed(run)["proxy/px"]
    assert "é" in failed(run)["proxy/px"]
