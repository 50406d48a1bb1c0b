"""What a plugin cannot do to a job, run as an operator runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tree import TREE

pytestmark = pytest.mark.usefixtures("registered_plugins")

TABLES = TREE / "rebalance_core/bundled/demo/join-leave/tables"
SHELL = "10.0.0.10@x;touch PWNED;#"


PLUGIN = """
import os, sys
print("printed at import")
os.system("echo by a program at import")

def fnv(key):
    print("printed at call")
    os.write(1, b"written to the descriptor")
    return len(key) * 7919

def leaves(key):
    raise SystemExit(0)

def leaves_later(key):
    if key.startswith("10.0.0."):
        if "20078" not in key:
            sys.exit(0)
    return 7
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """The demo's tables, whose group divides by a ring with an own hash function."""
    folder = tmp_path / "t"
    folder.mkdir()
    for file in TABLES.iterdir():
        text = file.read_text().replace('"AVG"', '"CONSISTENT_HASH(hash_function=h)"')
        (folder / file.name).write_text(text.replace("10.0.0.10@19328#2043549990328", SHELL))
    return folder


def simulate(
    tables: Path, setting: str, *words: str, started: str = "-m", **environment: str
) -> subprocess.CompletedProcess[str]:
    here = tables.parent
    (here / "own.toml").write_text(f"[hash_functions]\nh = {json.dumps(setting)}\n")
    # Not by PYTHONPATH, which tests set: the current folder must not be found there.
    job = here / "job.py"
    job.write_text(
        f"import sys\nsys.path.insert(1, {str(TREE)!r})\nfrom rebalance_core.cli.main import main\n"
        "sys.exit(main('simulate'))\n"
    )
    starters = {
        "-m": ["-m", "job"],
        "script": [str(job)],
        "-c": ["-c", job.read_text()],
    }
    return subprocess.run(
        [
            sys.executable,
            *starters[started],
            "--input",
            "t",
            "--output",
            "o",
            "--config",
            "own.toml",
            "--run-on",
            "process",
            "--json",
            *words,
        ],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **environment},
    )


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--allow-plugins", "acme")])
def test_a_settings_file_and_a_client_id_run_no_shell_command(
    tables: Path, words: tuple[str, ...]
) -> None:
    ended = simulate(tables, "os:system", *words, REBALANCE_ALLOW_PLUGINS="os,posix")
    assert ended.returncode == 2
    assert "os is part of Python itself, which never contains plugins" in ended.stderr
    assert not list(tables.parent.rglob("PWNED"))
    assert not (tables.parent / "o").exists()


@pytest.mark.parametrize("started", ["-m", "script", "-c"])
def test_the_current_folder_is_no_place_of_plugins(tables: Path, started: str) -> None:
    (tables.parent / "acme_here.py").write_text(PLUGIN)
    words = ("--allow-plugins", "acme_here")
    ended = simulate(tables, "acme_here:fnv", *words, started=started)
    assert ended.returncode == 2
    assert "the current folder counts only if PYTHONPATH includes it" in ended.stderr
    empty_entry = simulate(
        tables, "acme_here:fnv", *words, started=started, PYTHONPATH=os.pathsep + "/nowhere"
    )
    assert empty_entry.returncode == 2
    named = simulate(
        tables, "acme_here:fnv", *words, started=started, PYTHONPATH=str(tables.parent)
    )
    assert named.returncode == 0, named.stderr


def test_a_plugin_prints_on_stderr(tables: Path) -> None:
    (tables.parent / "lib").mkdir()
    (tables.parent / "lib/acme_prints.py").write_text(PLUGIN)
    ended = simulate(
        tables,
        "acme_prints:fnv",
        PYTHONPATH=str(tables.parent / "lib"),
        REBALANCE_ALLOW_PLUGINS="acme_prints",
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["status"] == "OK"
    for text in ("at import", "by a program", "at call", "written to the descriptor"):
        assert text in ended.stderr


@pytest.mark.parametrize("name", ["leaves", "leaves_later", "gone"])
def test_a_plugin_does_not_end_the_job(tables: Path, name: str) -> None:
    (tables.parent / "lib").mkdir()
    (tables.parent / "lib/acme_leaves.py").write_text(PLUGIN)
    (tables.parent / "lib/acme_gone.py").write_text("raise SystemExit(0)")
    module = "acme_gone" if name == "gone" else "acme_leaves"
    ended = simulate(
        tables, f"{module}:{name}", "--allow-plugins", module, PYTHONPATH=str(tables.parent / "lib")
    )
    assert ended.returncode == 2, ended.stdout
    assert "SystemExit" in ended.stderr
    assert json.loads(ended.stdout)["status"] == "USAGE"
