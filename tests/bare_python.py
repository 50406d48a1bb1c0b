"""An interpreter that has everything installed but this package: what ships it is then on trial."""

import subprocess
import sys
import sysconfig
from pathlib import Path


def bare_python(folder: Path) -> Path:
    """Write the interpreter into the folder, for PYSPARK_PYTHON.

    Without `-S`, the editable install's .pth file would put this tree on every worker's path.
    """
    python = folder / "bare-python"
    packages = ":".join(sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    python.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{packages}"\nexec "{sys.executable}" -S "$@"\n'
    )
    python.chmod(0o755)
    looked_up = (
        "from importlib.util import find_spec as f; print(f('pyarrow'), f('rebalance_core'))"
    )
    found = subprocess.run(
        [python, "-c", looked_up], cwd=folder, env={}, capture_output=True, text=True, check=True
    ).stdout
    assert "pyarrow" in found
    assert "None" in found, f"the tree is on the path of {python}: {found}"
    return python
