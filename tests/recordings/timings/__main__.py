"""``python -m tests.recordings.timings``: compare recordings, for docs/fidelity-figures.md."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.recordings.timings.compared import TIMED, Compared, Given, compared
from tests.recordings.timings.page import BEGIN, END, page
from tests.tree import TREE

PAGE = TREE / "docs" / "fidelity-figures.md"


def main() -> None:
    """Run it: some five minutes of processor time with 1,000 seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.timings", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--page", type=Path, default=PAGE, help="file to change between its marks")
    options = parser.parse_args()
    found: dict[Given, list[Compared]] = {given: [] for given in Given}
    for name in TIMED:
        for given, its in found.items():
            its += compared(name, options.seeds, given=given)
        print(f"{name}: done", flush=True)
    text = options.page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = page(found, options.seeds)
    options.page.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}")


if __name__ == "__main__":
    main()
