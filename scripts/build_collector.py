"""Compile the collector's Java for each form of RocketMQ's admin client: ``make collector``.

A class file names the packages of the jars that it was compiled against, and RocketMQ moved its
classes twice. Each form works for the releases that its comment names: compiled against any of
them it is the same bytes. The files are Java 8's: any Java runs them, and hosts need no compiler.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCES = Path(__file__).resolve().parent.parent / "rebalance_core/bundled/collect"
CLASSES = SOURCES / "classes"
DIGESTS = CLASSES / "sources.sha256"
"""Of what the class files were compiled from, as sha256sum writes it."""
FORMS = {
    "4.9": "4.9.8",  # 4.9.4 to 4.9.8; older ones lack questions that it asks
    "5.0": "5.0.0",
    "5.1": "5.5.0",  # 5.1.0 to 5.5.0
}
"""Folder of class files, and the release that they are compiled against."""
PACKAGES = [
    f"org.apache.rocketmq.{where}"
    for where in (
        "common.admin",
        "common.protocol.body",
        "common.protocol.heartbeat",
        "remoting.protocol.admin",
        "remoting.protocol.body",
        "remoting.protocol.heartbeat",
    )
]
"""Packages that the sources import whole; a release has only some of them."""
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>collector</groupId><artifactId>jars</artifactId><version>1</version>
<packaging>pom</packaging><dependencies><dependency><groupId>org.apache.rocketmq</groupId>
<artifactId>rocketmq-tools</artifactId><version>{version}</version></dependency></dependencies>
</project>
"""


def fetch(version: str, folder: Path) -> Path:
    """Return a folder with the jars of a release, which Maven fetches."""
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(POM.format(version=version))
    words = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    subprocess.run(words, cwd=folder, check=True, timeout=500)
    return folder / "lib"


def compile_for(jars: Path, folder: Path) -> None:
    """Compile the collector against jars into a folder."""
    with TemporaryDirectory() as own:
        absent = []
        for package in PACKAGES:  # a package without a class cannot be imported
            path = Path(own, *package.split("."), "Absent.java")
            path.parent.mkdir(parents=True)
            path.write_text(f"package {package};\n\ninterface Absent {{}}\n")
            absent.append(str(path))
        words = ["javac", "--release", "8", "-nowarn", "-Xlint:-options", "-XDsuppressNotes"]
        words += ["-g:source,lines", "-d", str(folder), "-cp", f"{jars}/*", *absent]
        subprocess.run([*words, *map(str, sources())], check=True, timeout=100)
    shutil.rmtree(folder / "org")


def sources() -> list[Path]:
    """Return what is compiled, in order."""
    return sorted(SOURCES.glob("*.java"))


def digests() -> str:
    """Return the content of `DIGESTS` for the sources as they are."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sources()
    )


def main() -> int:
    """Write the class files anew."""
    with TemporaryDirectory() as own:
        for form, version in FORMS.items():
            compile_for(fetch(version, Path(own, version)), Path(own, form))
        shutil.rmtree(CLASSES, ignore_errors=True)
        for form in FORMS:
            shutil.copytree(Path(own, form), CLASSES / form)
    DIGESTS.write_text(digests())
    print(f"{len(list(CLASSES.rglob('*.class')))} class files in {CLASSES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
