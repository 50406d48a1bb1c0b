"""Environments of other Sparks, for the lanes that need them."""

import fcntl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def python_with(folder: Path, wanted: Sequence[str]) -> Path:
    """Return the Python of an environment with these requirements, and recreate it if they changed.

    Waits for any other process that makes it; the system releases the lock when that process ends.
    """
    stamp, python = folder / "wanted.txt", folder / "bin/python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != "\n".join(wanted):
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
            stamp.write_text("\n".join(wanted))
    return python
