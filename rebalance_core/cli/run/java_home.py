"""The Java that Spark runs on, checked before Spark fails with a stack trace."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from rebalance_core.model.errors import UsageError

OLDEST_JAVA = 17  # Spark 4's own minimum


INSTALLED = Path("/usr/lib/jvm")


FETCHED = Path(__file__).resolve().parents[3] / ".java"  # put there by `make setup`


_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_version(home: Path) -> int | None:
    """Return the major version of the Java in `home`, or None if no working Java is there."""
    launcher = home / "bin" / "java"
    if not launcher.is_file():
        return None
    try:
        answer = subprocess.run(
            [launcher, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def java_candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield homes to try, in order: JAVA_HOME, PATH, the system's, and the `make setup` copy."""
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    if INSTALLED.is_dir():
        yield from sorted(path for path in INSTALLED.iterdir() if path.is_dir())
    yield FETCHED


def find_java_home(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the first candidate with version 17 or newer, or None."""
    for home in java_candidates(environment):
        version = java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return home
    return None


def require_java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the result of `find_java_home`, or raise `UsageError` with a one-line remedy."""
    home = find_java_home(environment)
    if home is not None:
        return home
    stated = environment.get("JAVA_HOME")
    wrong_version = (
        f" (JAVA_HOME={stated} has version {java_version(Path(stated))})" if stated else ""
    )
    raise UsageError(
        f"Spark needs Java {OLDEST_JAVA} or newer and none was found{wrong_version}; "
        "install one (Debian: apt-get install default-jre-headless), set JAVA_HOME, or run "
        "`make setup`"
    )
