"""The released jars of RocketMQ and Kafka: fetched once by their coordinates, held to checksums.

Ivy, which pyspark ships for ``spark.jars.packages``, fetches them; they are kept outside the tree.
"""

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

LOCK = Path(__file__).with_name("jars.lock")
FETCH_SECONDS = 180


class NotToBeHad(Exception):
    """The jars, or a compiler, are not to be had on this machine; says why."""


@dataclass(frozen=True)
class Jar:
    """A coordinate and the SHA-256 of its jar."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the cache."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"


def locked_jars() -> list[Jar]:
    """The jars of ``jars.lock``."""
    lines = (line for line in LOCK.read_text().splitlines() if not line.startswith("#"))
    found = (line.replace(":", " ").split() for line in lines)
    return [Jar(*words) for words in found]


def cache_folder() -> Path:
    """Where fetched jars are kept: ``$XDG_CACHE_HOME``, or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "rebalance-bench"


def class_path(java: Path) -> list[Path]:
    """All jars, fetched if need be.

    Args:
        java: A Java to run Ivy with.

    Raises:
        NotToBeHad: No registry is reached, or a jar is not the one that was locked.
    """
    folder, jars = cache_folder(), locked_jars()
    paths = [folder / jar.file_name for jar in jars]
    if not all(path.exists() for path in paths):
        _fetch(java, jars, folder)
    for jar, path in zip(jars, paths, strict=True):
        if not path.exists():
            raise NotToBeHad(f"{jar.group}:{jar.artifact}:{jar.version} was not found")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != jar.sha256:
            raise NotToBeHad(f"{path} has SHA-256 {found}, not {jar.sha256}: remove it")
    return paths


def _fetch(java: Path, jars: list[Jar], folder: Path) -> None:
    import pyspark

    ivy = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-2*.jar"))
    if not ivy:
        raise NotToBeHad("this pyspark ships no Ivy to fetch jars with")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / "ivy.xml"
    wanted.write_text(_ivy_file(jars))
    pattern = f"{folder}/[organisation]_[artifact]-[revision].[ext]"
    command = [
        str(java),
        "-jar",
        str(ivy[-1]),
        "-cache",
        str(folder / "ivy"),
        "-ivy",
        str(wanted),
        "-retrieve",
        pattern,
        "-types",
        "jar",
        "bundle",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"the registry did not answer within {FETCH_SECONDS} s") from None
    if done.returncode:
        raise NotToBeHad(f"the registry was not reached: {_last_line(done.stdout + done.stderr)}")


def _ivy_file(jars: list[Jar]) -> str:
    """Ivy's own format: these jars alone, not what they depend on."""
    rows = "\n".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} "
        f'rev={quoteattr(jar.version)} transitive="false" conf="default->master,default"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="bench" module="jars"/>'
        f'<configurations><conf name="default"/></configurations>'
        f"<dependencies>{rows}</dependencies></ivy-module>\n"
    )


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
