"""Count the files of the package that run in a job: those that a reader opens to follow it.

    count_reader_files.py                  three jobs
    count_reader_files.py simulate --input DIR …   the words of one job; prints the files, too

A file counts if a function in it is called; module imports do not count.
"""

import contextlib
import importlib
import io
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

TREE = Path(__file__).resolve().parents[1]
PACKAGE = TREE / "rebalance_core"
EVENTS = TREE / "rebalance_core/bundled/demo/join-leave/tables"
COLLECTION = TREE / "tests/recordings/data/nightly/collection"
QUEUE = "OrderTopic/broker-a/3 --at 1795231740000"
"""Today's figures; lower them when a job passes fewer files."""


def import_all() -> None:
    """Import what a process needs, so that no import happens in a job."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(TREE).with_suffix("").parts).removesuffix(".__init__")
        with contextlib.suppress(ImportError):  # modules that need Spark
            importlib.import_module(name)


def files_run(words: list[str]) -> tuple[int, set[str]]:
    """Return the exit code of a job, and the files of the package whose functions it called."""
    sys.path.insert(0, str(TREE))
    import_all()
    from rebalance_core.cli.main import main

    seen: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        code = main(words[0], words[1:])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = {Path(name) for name in seen if name.startswith(str(PACKAGE))}
    return code, {path.relative_to(PACKAGE).as_posix() for path in inside}


def report() -> None:
    """Print how many files each of the three jobs runs."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = str(Path(folder) / "ledger")
        jobs = {
            "simulate": ["--input", str(EVENTS), "--output", ledger],
            "audit": ["--collection", str(COLLECTION), "--output", str(Path(folder) / "audit")],
            "explain": f"--ledger {ledger} --group order-service --queue {QUEUE}".split(),
        }
        for job, words in jobs.items():
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                _, files = files_run([job, *words])
            print(f"{len(files):>5} files run in {job}")


def main(words: list[str]) -> None:
    """Count for the arguments, or for the three jobs."""
    if not words:
        report()
        return
    _, files = files_run(words)
    print("\n".join([*sorted(files), f"{len(files)} files"]))


if __name__ == "__main__":
    main(sys.argv[1:])
