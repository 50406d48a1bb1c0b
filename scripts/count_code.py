"""Count the package's files, folders and lines of code.

    count_code.py [FOLDER]

A line of code holds a token that is neither a comment nor part of a docstring. Imports at the head
of a file (also those for type checkers) are counted separately; their share is of both together.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "rebalance_core"
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
    """Return the lines of a statement."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def is_text(node: ast.stmt) -> bool:
    """Return True for a docstring, whatever it describes."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_import(node: ast.stmt) -> bool:
    """Return True for an import, and for a block of imports that only type checkers run."""
    typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.Import | ast.ImportFrom) or typing_only


def count(source: str) -> Counter[str]:
    """Count the lines of ``code`` and of ``imports`` in a module."""
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


def main(folder: Path = PACKAGE) -> None:
    """Print the counts."""
    files = sorted(folder.rglob("*.py"))
    total = sum((count(path.read_text("utf-8")) for path in files), Counter[str]())
    share = total["imports"] / max(1, total.total())
    print(f"{len(files):>8,} files")
    print(f"{len({path.parent for path in files}):>8,} folders")
    print(f"{total['code']:>8,} lines of code")
    print(f"{share:>8.1%} imports among code")
    print(f"{total['code'] / max(1, len(files)):>8.0f} lines of code a file")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
