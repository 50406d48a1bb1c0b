"""Run notebooks/*.py: write the .ipynb of each and the pictures of docs/planning.md.

The same data give the same bytes, so a run without changes leaves nothing to commit.
"""

import os
import sys
from pathlib import Path

import jupytext
from nbclient import NotebookClient

TREE = Path(__file__).resolve().parent.parent
PICTURES = TREE / "docs/pictures"
MOST_BYTES = 1_500_000
SECONDS_PER_CELL = 600


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    # The kernel is a child process: its environment names the pictures' folder and this
    # interpreter.
    os.environ["PLAN_PICTURES"] = str(PICTURES)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    for source in sorted((TREE / "notebooks").glob("*.py")):
        run(source)


def run(source: Path) -> None:
    copy = source.with_suffix(".ipynb")
    notebook = jupytext.read(source)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(source.parent)}},
    )
    client.execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
        if cell.cell_type == "code":
            # The JVM's start-up messages differ between machines.
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)
    jupytext.write(notebook, copy, fmt="ipynb")
    size = copy.stat().st_size
    print(f"{copy.relative_to(TREE)}: {size:,} bytes", file=sys.stderr)
    if size > MOST_BYTES:
        sys.exit(f"the notebook is larger than {MOST_BYTES:,} bytes: draw less")


if __name__ == "__main__":
    main()
