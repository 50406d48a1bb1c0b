"""Check whether this tree is fit to be released; print every reason against it.

Version, changelog and tag agree, nothing is uncommitted, the output of `make docs` is current, the
wheel and the sdist hold the right files and pass `twine check`, and an install in a fresh
environment works.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
TWINE = TREE / ".venv-release"
NEEDED_IN_SDIST = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"}


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the tree and return it with its output."""
    return subprocess.run(
        list(map(str, words)), cwd=TREE, capture_output=True, text=True, check=False
    )


def version() -> str:
    """Return the version in pyproject.toml."""
    (found,) = re.findall(
        r'LIBRARY_VERSION = "([^"]+)"', (TREE / "rebalance_core/version.py").read_text("utf-8")
    )
    return str(found)


def of_version(wanted: str) -> Iterator[str]:
    """Yield mistakes in the version, its heading in the changelog, and its tag."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", wanted):
        yield f"version {wanted} is not MAJOR.MINOR.PATCH"
    heading = re.search(
        r"^## \[?([^\]\s]+)\]?(.*)$", (TREE / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    if heading is None or heading[1] != wanted:
        yield f"the newest heading of CHANGELOG.md is not {wanted}"
    elif not re.search(r"\d{4}-\d{2}-\d{2}", heading[2]):
        yield f"CHANGELOG.md gives {wanted} no date"
    tagged = run("git", "rev-parse", "--verify", "--quiet", f"v{wanted}^{{commit}}").stdout.strip()
    if tagged and tagged != run("git", "rev-parse", "HEAD").stdout.strip():
        yield f"v{wanted} is the tag of another commit, {tagged[:10]}: raise the version"
    if run("git", "status", "--porcelain").stdout.strip():
        yield "the tree has uncommitted changes"


def of_documents() -> Iterator[str]:
    """Yield whether generated files are outdated."""
    done = run(sys.executable, "-m", "pytest", "-q", "tests/unit/test_generated_docs.py")
    if done.returncode:
        yield f"generated files are outdated: make docs\n{done.stdout[-500:]}"


def of_packages(folder: Path, wanted: str) -> Iterator[str]:
    """Yield mistakes in the wheel and the sdist, which are built into the folder."""
    built = run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    if built.returncode:
        yield f"the packages cannot be built: {built.stderr}"
        return
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    for package in (wheel, sdist):
        print(f"{package.name}: {package.stat().st_size:,} bytes")
        if f"-{wanted}" not in package.name:
            yield f"{package.name} is not of version {wanted}"
    with zipfile.ZipFile(wheel) as archive:
        foreign = {name for name in archive.namelist() if name.split("/")[0] != "rebalance_core"}
        foreign = {name for name in foreign if ".dist-info/" not in name}
        packed = {name for name in archive.namelist() if name.startswith("rebalance_core/")}
    if foreign:
        yield f"the wheel holds {sorted(foreign)[:5]}"
    tracked = run("git", "ls-files", "rebalance_core").stdout.split()
    if missing := sorted(set(tracked) - packed):
        yield f"the wheel lacks {missing[:5]}"
    with tarfile.open(sdist) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    if missing := sorted(NEEDED_IN_SDIST - names):
        yield f"the sdist lacks {missing}"
    if not TWINE.exists():
        venv.create(TWINE, with_pip=True)
        run(TWINE / "bin/python", "-m", "pip", "install", "--quiet", "twine")
    checked = run(TWINE / "bin/python", "-m", "twine", "check", "--strict", wheel, sdist)
    print(checked.stdout.strip())
    if checked.returncode:
        yield f"twine check: {checked.stdout}{checked.stderr}"


def of_install() -> Iterator[str]:
    """Yield whether an install in a fresh environment fails."""
    done = run(sys.executable, "scripts/test_wheel.py")
    if done.returncode:
        yield f"an install fails (make test-wheel): {done.stdout[-500:]}{done.stderr[-500:]}"


def main() -> int:
    """Check everything; return 1 if something is wrong."""
    wanted = version()
    with tempfile.TemporaryDirectory() as name:
        wrong = [*of_version(wanted), *of_documents(), *of_packages(Path(name), wanted)]
        wrong += of_install()
    for reason in wrong:
        print(f"not fit: {reason}", file=sys.stderr)
    if not wrong:
        print(f"{wanted} is fit to be released: git tag v{wanted}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
