"""This package as a zip, in the form that Spark's workers import; the same tree gives the same
bytes.

Executors can import a zip, but not a wheel. In cluster deploy mode only the entry script and this
zip are shipped, so it also contains the command line and the defaults.
"""

import zipfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
EPOCH_OF_ZIP = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store


def write_package(target: Path) -> int:
    """Write the zip, creating its folder if needed; return the number of files in it."""
    return write_zip(target, PACKAGE, PACKAGE.name)


def write_zip(target: Path, folder: Path, name: str) -> int:
    """Write the files of a folder under a name, without bytecode; return their number."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(f"{name}/{path.relative_to(folder).as_posix()}", EPOCH_OF_ZIP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return len(files)
