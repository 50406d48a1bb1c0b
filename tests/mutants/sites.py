"""Where a source file can be changed by one small mistake, and what the mistake looks like.

Left alone, because no test should see them: docstrings and other strings, annotations, decorators
(caches, slots), what is raised (its words), assertions, and ``zip``'s ``strict=``.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNMUTATED_FIELDS = {"annotation", "returns", "decorator_list", "type_params"}


@dataclass(frozen=True)
class Site:
    """One change: the bytes from ``start`` to ``end`` of the file become ``after``.

    ``text`` is the line where it begins, without indent.
    """

    path: str
    line: int
    text: str
    operator: str
    start: int
    end: int
    before: str
    after: str

    @property
    def key(self) -> str:
        """Unique within a version of the file."""
        return f"{self.path}:{self.line}:{self.start}-{self.end}:{self.operator}"


def mutate(source: bytes, site: Site) -> bytes:
    """The file with this one change."""
    return source[: site.start] + site.after.encode() + source[site.end :]


def sites_of(path: str, source: bytes) -> list[Site]:
    """Every site of a Python file, in the order of the file."""
    return sorted(_Finder(path, source).find(), key=lambda site: (site.start, site.operator))


class _Finder:
    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        self._lines = source.splitlines(keepends=True)
        self._line_starts = list(accumulate(map(len, self._lines), initial=0))

    def find(self) -> Iterator[Site]:
        yield from self._walk(ast.parse(self._source))

    def _walk(self, node: ast.AST) -> Iterator[Site]:
        if _left_alone(node):
            return
        yield from self._of_operators(node)
        yield from self._of_values(node)
        yield from self._of_statements(node)
        for name, value in ast.iter_fields(node):
            if name in UNMUTATED_FIELDS:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._walk(child)

    def _of_operators(self, node: ast.AST) -> Iterator[Site]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield self._between("comparison", left, right, *COMPARISONS[type(op)])
            case ast.BoolOp(op=op, values=[first, second, *_]):
                swap = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield self._between("boolean", first, second, *swap)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                yield self._between("arithmetic", left, right, *ARITHMETIC[type(op)])
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in ARITHMETIC:
                before, after = ARITHMETIC[type(op)]
                yield self._between("assignment", target, value, f"{before}=", f"{after}=")
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                text = self._text(operand)
                yield self._whole("negation", node, f"({text})" if "\n" in text else text)

    def _of_values(self, node: ast.AST) -> Iterator[Site]:
        match node:
            case ast.Constant(value=bool() as flag):
                yield self._whole("constant", node, str(not flag))
            case ast.Constant(value=int() as number):
                yield self._whole("constant", node, str(number + 1))
            case ast.Call(func=ast.Name(id=name) as func) if name in CALLS:
                yield self._whole("call", func, CALLS[name])

    def _of_statements(self, node: ast.AST) -> Iterator[Site]:
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield self._whole("condition", test, f"(not ({self._text(test)}))")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._whole("return", value, "None")
            case ast.Expr(value=ast.Call()):
                yield self._whole("statement", node, "pass")
            case ast.Break() | ast.Continue():
                swapped = "continue" if isinstance(node, ast.Break) else "break"
                yield self._whole("loop", node, swapped)

    def _between(
        self, operator: str, left: ast.expr, right: ast.expr, before: str, after: str
    ) -> Site:
        """The operator that stands between two operands, parentheses and line breaks aside."""
        start, end = self._offset(left, end=True), self._offset(right, end=False)
        gap = re.sub(rb"#[^\n]*", lambda m: b" " * len(m[0]), self._source[start:end])
        words = rb"\s+".join(re.escape(word).encode() for word in before.split())
        found = re.search(words, gap)
        assert found is not None, f"{self._path}:{left.lineno}: no {before!r}"
        return self._site(operator, start + found.start(), start + found.end(), after)

    def _whole(self, operator: str, node: ast.AST, after: str) -> Site:
        start, end = self._offset(node, end=False), self._offset(node, end=True)
        return self._site(operator, start, end, after)

    def _site(self, operator: str, start: int, end: int, after: str) -> Site:
        before = self._source[start:end].decode()
        line = bisect_right(self._line_starts, start)
        text = self._lines[line - 1].strip().decode()
        return Site(self._path, line, text, operator, start, end, before, after)

    def _text(self, node: ast.AST) -> str:
        start, end = self._offset(node, end=False), self._offset(node, end=True)
        return self._source[start:end].decode()

    def _offset(self, node: ast.AST, *, end: bool) -> int:
        prefix = "end_" if end else ""
        line, column = getattr(node, f"{prefix}lineno"), getattr(node, f"{prefix}col_offset")
        return self._line_starts[line - 1] + int(column)


def _left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr():
            return True
        case ast.keyword(arg="strict"):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case _:
            return False
