"""Every name that a docstring, a comment or a page points to exists.

In docstrings and comments single backticks are names that exist; code, data and foreign names
have double ones. In pages single backticks are also data and names of RocketMQ's: there only
what looks like a path, a command or a name of Python is looked up.
"""

import ast
import builtins
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import pytest

from rebalance_core.audit.rules import rules_by_id
from rebalance_core.cli.jobs import JOBS, option_names
from rebalance_core.contracts.dictionary import SECTIONS
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.contracts.run_names import RUN_NAME
from rebalance_core.contracts.snapshot_tables import CLUSTER_TABLES, GROUP_TABLES
from rebalance_core.ingest.rows import FINDING_IDS
from tests.docs.pages import PAGES
from tests.tree import TREE

TABLES = (GROUP_TABLES, CLUSTER_TABLES, *(tables for _, tables in SECTIONS))
FOLDERS = ("rebalance_core", "scripts", "tests")
ROOTS = ("rebalance_core.", "scripts.", "tests.")
BESIDE = {".html", ".java", ".js", ".sh", ".sql", ".toml", ".yaml", ".yml"}
"""Suffixes of files whose words pages use as names, as those of Python."""
OWN_TEST = {"rocketmq.md", "audit-rules.md", "rules.zh.md"}
"""Names in snake_case there are RocketMQ's, or generated and held by a test of their own."""
WRITTEN = {"csv", "html", "json", "jsonl", "parquet", "toml"}
"""Suffixes of what a job writes or reads: ``diffs.jsonl`` is no column of a table."""

TARGETS = set(re.findall(r"^([a-z-]+):", (TREE / "Makefile").read_text("utf-8"), re.MULTILINE))
SETTINGS = tomllib.loads((TREE / "rebalance_core/cli/defaults.toml").read_text("utf-8"))
MADE = {line.strip("/") for line in (TREE / ".gitignore").read_text("utf-8").splitlines()}
"""What jobs and tools leave in a checkout, as ``out``: nothing there need exist."""
TOPS = {path.name for top in (TREE, TREE / "rebalance_core") for path in top.iterdir()} - MADE

SINGLE = re.compile(r"(?<!`)`(?!`)([^`]+)`(?!`)")
DOUBLE = re.compile(r"``.+?``", re.DOTALL)
FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
COMMENT_WITH_NAME = re.compile(r"#.*`")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
CALL = re.compile(r"\(.*\)$", re.DOTALL)
PATH = re.compile(r"\.?[\w*-][\w.*-]*(?:/[\w.*-]+)*/?")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]+")
SNAKE = re.compile(r"_?[a-z][a-z0-9]*(?:_[a-z0-9]+)+|_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""What a page cannot mean for a name of Java's: snake_case, and constants."""


class Module:
    """A file of Python: what it defines, every word of its code, what its texts say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text("utf-8")
        parts = path.relative_to(TREE).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.package = ".".join(parts[:-1])

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def words(self) -> set[str]:
        """All names in the code, and the strings in it that look like one."""
        words, nodes = set[str](), list[ast.AST]([self.tree])
        while nodes:
            for value in vars(nodes.pop()).values():
                for each in value if isinstance(value, list) else (value,):
                    if isinstance(each, ast.AST):
                        nodes.append(each)
                    elif isinstance(each, str) and DOTTED.fullmatch(each):
                        words.update((each, *each.split(".")))
        return words

    @cached_property
    def top(self) -> dict[str, ast.AST]:
        """What stands at the top of the module, by name."""
        return dict(definitions(self.tree.body))

    @cached_property
    def near(self) -> set[str]:
        """What the modules of its package define at the top, and those that it imports from."""
        sources = {node.module for node in self.top.values() if isinstance(node, ast.ImportFrom)}
        return {
            name
            for module in modules().values()
            if module.package == self.package or module.name in sources
            for name, node in module.top.items()
            if not isinstance(node, ast.Import | ast.ImportFrom)
        }

    def texts(self) -> Iterator[tuple[int, str]]:
        """Docstrings, also of attributes, and blocks of comments, by the line they begin in."""
        bodies = [self.tree.body] if "`" in self.text else []
        while bodies:
            for statement in bodies.pop():
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text
                    case _:
                        bodies.append(getattr(statement, "body", []))
                        bodies.append(getattr(statement, "orelse", []))
        if COMMENT_WITH_NAME.search(self.text):
            yield from self.comments()

    def comments(self) -> Iterator[tuple[int, str]]:
        """Comments in lines that follow each other, together."""
        first, block = 0, list[str]()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                if token.start[0] != first + len(block):
                    yield first, "\n".join(block)
                    first, block = token.start[0], []
                block.append(token.string.lstrip("# "))
        yield first, "\n".join(block)


def definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """What statements define, by name; those under an ``if`` or ``try`` too."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name, statement
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    yield alias.asname or alias.name.partition(".")[0], statement
            case ast.If() | ast.Try() | ast.With() | ast.For():
                yield from definitions(statement.body + getattr(statement, "orelse", []))
            case _:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id, statement


@cache
def modules() -> dict[str, Module]:
    """Every module of the tree by its dotted name."""
    paths = [path for folder in FOLDERS for path in sorted((TREE / folder).rglob("*.py"))]
    return {module.name: module for module in map(Module, paths)}


@cache
def packages() -> set[str]:
    return {module.package for module in modules().values()}


@cache
def tables() -> dict[str, set[str]]:
    """The columns of every table, by its name."""
    declared = [table for group in TABLES for table in group.values()]
    return {table.name: set(table.column_names) for table in declared}


@cache
def declared() -> set[str]:
    """Tables, columns, kinds of facts, rules, jobs, recordings; and what Python itself has."""
    columns, rules = tables().values(), (*rules_by_id(), *FINDING_IDS)
    recordings = [path.name for path in (TREE / "tests/recordings/data").iterdir()]
    return set(tables()).union(*columns, FACT_KINDS, rules, JOBS, recordings, dir(builtins))


def exists(name: str, module: Module) -> bool:
    """Whether a name in a text of a module is that of something.

    It is a name in the code of the module or begins with one; a definition of a module that it
    imports from, or of its package; declared; or it begins in its package, in one around that, or
    at the root of the tree. The text of a package has no code: its names are modules, or of some.
    """
    first, *rest = name.split(".")
    of_package = module.path.name == "__init__.py"
    if name in module.near or (not of_package and (name in module.words or name in declared())):
        return True
    if first in module.top:
        return has(module, [first, *rest])
    parts = module.package.split(".")
    around = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    if any(found(f"{place}.{name}") for place in (*around, "rebalance_core")) or found(name):
        return True
    return first in tables() and rest != [] and rest[0] in tables()[first]


def found(name: str) -> bool:
    """Whether a name that begins at the root is that of a package, or of something in a module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = modules().get(".".join(parts[:length]))
        if module is not None:
            return has(module, parts[length:])
    return name in packages()


def has(module: Module, parts: list[str]) -> bool:
    """Whether a module defines, imports or exports what the parts of a name say."""
    if not parts:
        return True
    first, *rest = parts
    match module.top.get(first):
        case None:
            return module.path.name == "__init__.py" and f'"{first}"' in module.text and not rest
        case ast.ClassDef() as node:
            return not rest or is_member(rest[0], node, module)
        case ast.ImportFrom() | ast.Import() as statement:
            source = imported(first, statement)
            return not source.startswith(FOLDERS) or found(".".join([source, *rest]))
        case _:
            return True


def imported(name: str, statement: ast.Import | ast.ImportFrom) -> str:
    """The full name of what an import calls by a name."""
    alias = next(each for each in statement.names if name in (each.asname, each.name))
    package = f"{statement.module}." if isinstance(statement, ast.ImportFrom) else ""
    return package + alias.name


def is_member(name: str, node: ast.ClassDef, module: Module) -> bool:
    """Whether a class, or one of ours that it derives from, has an attribute."""
    for inner in ast.walk(node):
        match inner:
            case ast.FunctionDef(name=known) | ast.Name(id=known) | ast.Attribute(attr=known):
                if known == name:
                    return True
    bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
    return any(exists(f"{base}.{name}", module) for base in bases)


def is_path(path: str, place: Path) -> bool:
    """Whether a path exists from the root, the package or where it is mentioned; ``*`` is any.

    Each run writes its record.
    """
    path = path.rstrip("/")
    if "/" not in path and "." in path:
        return path == RUN_NAME or any(name.endswith("/" + path) for name in paths())
    starts = (TREE, TREE / "rebalance_core", place.parent, place.parent.parent)
    return any(next(start.glob(path), None) for start in starts)


@cache
def paths() -> list[str]:
    """Every file at the root and in the folders that texts point to."""
    folders = [TREE / name for name in (*FOLDERS, "conf", "docs", "notebooks")]
    found = [path for folder in folders for path in folder.rglob("*")]
    return ["/" + path.relative_to(TREE).as_posix() for path in (*TREE.iterdir(), *found)]


@cache
def all_options() -> set[str]:
    return {option for job in JOBS.values() for option in option_names(job)}


def missing_in_command(text: str) -> Iterator[str]:
    """What a command of ours names that does not exist."""
    match text.split():
        case ["make", target, *_] if target.islower() and target not in TARGETS:
            yield target
        case ["python", "-m", name, *_] if name.startswith(ROOTS) and not found(name.rstrip(".…")):
            yield name
        case ["rebalance", job, *_] if job.islower() and job not in JOBS:
            yield job
        case ["rebalance", job, *_] if job in JOBS:
            known = option_names(JOBS[job])
            yield from (option for option in OPTION.findall(text) if option not in known)


def stands_in_code(text: str, module: Module) -> bool:
    """Whether a text in single backticks in a docstring or comment names what exists."""
    name = CALL.sub("", text)
    if DOTTED.fullmatch(name):
        return exists(name, module) or ("." in text and is_path(text, module.path))
    if PATH.fullmatch(text) and "/" in text:
        return is_path(text, module.path)
    if OPTION.fullmatch(text):
        return text in all_options()
    return not list(missing_in_command(text))


def test_names_in_docstrings_and_comments_exist() -> None:
    stale = [
        f"{module.path.relative_to(TREE)}:{line}: {name}"
        for module in modules().values()
        for line, text in module.texts()
        for name in SINGLE.findall(DOUBLE.sub("", text))
        if not stands_in_code(name, module)
    ]
    assert not stale, "\n".join(stale)


@cache
def words() -> set[str]:
    """The words of all files of Python, and of those beside them."""
    named = [TREE / path[1:] for path in paths() if not path.startswith("/tests/recordings/data/")]
    beside = [path.read_text("utf-8") for path in named if path.suffix in BESIDE and path.is_file()]
    texts = [*beside, *(module.text for module in modules().values())]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def stands_in_page(text: str, page: Path) -> bool:
    """Whether a text in single backticks in a page is foreign, or names what exists."""
    name = CALL.sub("", text)
    first, *rest = name.split(".")
    if PATH.fullmatch(text) and (text.endswith(".py") or text.partition("/")[0] in TOPS):
        return is_path(text, page)
    if SNAKE.fullmatch(name):
        return page.name in OWN_TEST or name in words()
    if not rest or not DOTTED.fullmatch(name) or rest[-1] in WRITTEN or first in SETTINGS:
        return not list(missing_in_command(text))
    if first in tables():
        return rest[0] in tables()[first]
    ours = first in FOLDERS or f"rebalance_core.{first}" in packages()
    return not ours or found(name) or found(f"rebalance_core.{name}")


def test_names_in_pages_exist() -> None:
    stale = [
        f"{page.relative_to(TREE)}: {name}"
        for page in PAGES
        for name in SINGLE.findall(FENCED.sub("", page.read_text("utf-8")))
        if not stands_in_page(name, page)
    ]
    assert not stale, "\n".join(stale)


@pytest.mark.parametrize(
    "gone",
    [
        "Roster.by_client",  # of a module that this one does not import from
        "roster.Roster.by_nobody",
        "protocol.gone",
        "nothing_here",
        "tests/unit/gone.py",
        "make gone",
        "rebalance plan --gone",
        "--gone",
        "python -m tests.bench.gone",
    ],
)
def test_what_is_gone_is_found_in_code(gone: str) -> None:
    assert not stands_in_code(gone, modules()["rebalance_core.model.queue"])


@pytest.mark.parametrize(
    "gone", ["rebalance_core/gone.py", "diffs.gone", "replay.gone", "rebalance audit --gone"]
)
def test_what_is_gone_is_found_in_a_page(gone: str) -> None:
    assert not stands_in_page(gone, TREE / "CONTRIBUTING.md")
