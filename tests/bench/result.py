"""What a benchmark says while it runs, and in the end."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def arguments_of(about: str | None, **numbers: int) -> argparse.Namespace:
    """``--out`` and options with these defaults, from the command line."""
    parser = argparse.ArgumentParser(description=about)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def say(text: str) -> None:
    """To stderr: stdout has the result alone."""
    print(text, file=sys.stderr, flush=True)


def show(result: dict[str, Any], out: Path | None) -> None:
    """JSON on stdout, and into a file if one is named."""
    text = json.dumps(result, indent=2)
    print(text)
    if out:
        out.write_text(text + "\n")
