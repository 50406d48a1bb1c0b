"""Count the package's files and lines of code; 1 if there are more than the limits allow.

    count_code.py [FOLDER]

A line of code holds a token that is neither a comment nor part of a docstring. Imports at the head
of a file (also those for type checkers) are counted apart; their share is of both together.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "rebalance_core"
# What there is today, with little room: lower them when the tree gets smaller. A new subject
# that needs more says so here.
MOST_FILES = 400
MOST_FOLDERS = 36
MOST_CODE = 65_200
MOST_IMPORTS = 0.09
EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def lines_of(node: ast.stmt) -> range:
    """The lines that a statement stands on."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def is_text(node: ast.stmt) -> bool:
    """True for a docstring, of whatever it describes."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_import(node: ast.stmt) -> bool:
    """True for an import, and for a block of those that only type checkers run."""
    typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.Import | ast.ImportFrom) or typing_only


def count(source: str) -> Counter[str]:
    """Lines of ``code`` and of ``imports`` in a module."""
    tree = ast.parse(source)
    texts = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and is_text(node)
        for line in lines_of(node)
    }
    imports = {line for node in tree.body if is_import(node) for line in lines_of(node)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    used = {
        line
        for token in tokens
        if token.type not in EMPTY
        for line in range(token.start[0], token.end[0] + 1)
    }
    return Counter(code=len(used - texts - imports), imports=len(used & imports))


def main(folder: Path = PACKAGE) -> int:
    """Print the counts, and which of them are above their limits."""
    files = sorted(folder.rglob("*.py"))
    total = sum((count(path.read_text("utf-8")) for path in files), Counter[str]())
    folders = len({path.parent for path in files})
    share = total["imports"] / max(1, total.total())
    figures = [
        ("files", len(files), MOST_FILES, "{:,}"),
        ("folders", folders, MOST_FOLDERS, "{:,}"),
        ("lines of code", total["code"], MOST_CODE, "{:,}"),
        ("imports among code", share, MOST_IMPORTS, "{:.1%}"),
    ]
    over = 0
    for name, value, most, form in figures:
        above = value > most
        over += above
        note = f"more than {form.format(most)}" if above else f"at most {form.format(most)}"
        print(f"{form.format(value):>8} {name} ({note})")
    print(f"{total['code'] / max(1, len(files)):>8.0f} lines of code a file")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
