"""Install the wheel in fresh environments, and run the commands of docs/tutorial.md.

Fresh environments, an empty folder: with the extra `process` the demo and every command of the
tutorial work; from the bare wheel `demo` names the missing package.
"""

import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
TUTORIAL = TREE / "docs" / "tutorial.md"
COLLECTIONS = TREE / "docs" / "two-nights.tar.xz"


def run(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command and return it with its output."""
    return subprocess.run(
        list(map(str, words)), cwd=folder, capture_output=True, text=True, check=False
    )


def environment(folder: Path, wheel: str) -> Path:
    """Return the folder of commands of a new environment with the wheel."""
    for words in (
        (sys.executable, "-m", "venv", folder),
        (folder / "bin/python", "-m", "pip", "install", "--quiet", wheel),
    ):
        done = run(*words)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return folder / "bin"


def commands() -> list[tuple[str, int]]:
    """Return the tutorial's commands that begin with `$ rebalance`, with their exit codes."""
    text = TUTORIAL.read_text("utf-8")
    pattern = r"(?:^<!-- run: exit=(\d) -->\n```\n)?^\$ (rebalance .*)$"
    return [(words, int(code or 0)) for code, words in re.findall(pattern, text, re.MULTILINE)]


def main() -> int:
    """Run everything; return 1 if a command ends differently than in the tutorial."""
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        built = run(
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-t",
            "wheel",
            "-d",
            work / "dist",
            folder=TREE,
        )
        (wheel,) = (work / "dist").glob("*.whl") if not built.returncode else [None]
        if wheel is None:
            sys.exit(built.stderr)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
        (work / "empty").mkdir()
        bare = environment(work / "bare", str(wheel))
        done = run(bare / "rebalance", "demo", folder=work / "empty")
        names = "pip install 'WHEEL[process]'" in done.stderr and done.returncode == 2
        print(f"bare: exit code {done.returncode}: {done.stderr.strip()}")
        wrong += not names or any((work / "empty").iterdir())
        bin_folder = environment(work / "process", f"{wheel}[process]")
        with tarfile.open(COLLECTIONS) as archive:
            archive.extractall(work / "empty", filter="data")
        for command, code in [("rebalance demo", 0), *commands()]:
            program, *words = shlex.split(command)
            done = run(bin_folder / program, *words, folder=work / "empty")
            print(f"{done.returncode}  {command}")
            if done.returncode != code:
                print(done.stderr)
            wrong += done.returncode != code
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
