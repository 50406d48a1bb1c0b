"""The tree's own rules: imports go one way, and pyspark stays where it belongs."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.tree import TREE

PACKAGE = TREE / "rebalance_core"

# What a package may import: its own modules, the packages of the rows above, and what is named
# beside it. The standard library is free.
LAYERS: tuple[dict[str, tuple[str, ...]], ...] = (
    {"version": ()},
    {"model": ()},
    {"contracts": ("pyarrow",)},
    {"storage": ("pyarrow",)},
    {"strategies": ("numpy",)},
    {"protocol": ()},
    {"client": ()},
    {
        "replay": (),
        "kernels": ("numpy", "pyarrow"),
        "checks": ("numpy", "pyarrow"),
        "ingest": ("pyarrow",),
        "producers": ("numpy", "pyarrow"),
        "synthetic": ("numpy", "pyarrow"),
    },
    {"timing": ("numpy", "pyarrow")},
    {"engine": ("numpy", "pyarrow")},
    {
        "planning": ("numpy", "pyarrow"),
        "explain": (),
        "audit": (),
        "report": ("jinja2", "markupsafe", "matplotlib", "numpy", "pandas"),
    },
    {"history": ("numpy", "pyarrow")},
    {"process": ("numpy", "pyarrow")},
    {"spark": ("numpy", "pandas", "py4j", "pyarrow", "pyspark")},
    {"cli": ("pandas", "pyarrow")},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
THIRD_PARTY = {name: set(roots) for layer in LAYERS for name, roots in layer.items()}

FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(TREE).as_posix()


def package_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0] if parts[0] != "__init__" else ""


@cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Every imported module, and whether it is imported when the file is."""
    return tuple(read_imports(path))


def read_imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = ast.parse(path.read_text("utf-8"))
    later: set[ast.AST] = set()
    for node in ast.walk(tree):
        inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if inside_function or typing_only:
            later.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node not in later) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: relative import"
            module = node.module or ""
            # `from rebalance_core import model` names the package in the alias
            names = [f"{module}.{a.name}" for a in node.names] if module == PACKAGE.name else []
            yield from ((name, node not in later) for name in names or [module])


def test_every_package_has_a_layer() -> None:
    assert {package_of(path) for path in FILES} - {""} == RANK.keys()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    package = package_of(path)
    if not package:
        return  # the package's face shows what lies below it
    for module, _ in imports(path):
        first, _, rest = module.partition(".")
        target = rest.partition(".")[0]
        if first == PACKAGE.name and target in RANK and target != package:
            assert RANK[target] < RANK[package], f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_package_imports_the_third_parties_it_names(path: Path) -> None:
    package = package_of(path)
    allowed = THIRD_PARTY.get(package, set())
    for module, _ in imports(path):
        root = module.partition(".")[0]
        if root not in sys.stdlib_module_names and root != PACKAGE.name:
            assert root in allowed, f"{name_of(path)} imports {module}"


ROWS_TO_THE_DRIVER = {"collect", "first", "head", "tail", "toLocalIterator", "toPandas"}
"""``DataFrame.collect``, and others that `spark.sources.rows_of` is there for."""


@pytest.mark.parametrize("path", [p for p in FILES if package_of(p) == "spark"], ids=name_of)
def test_rows_come_to_the_driver_whole_or_not_at_all(path: Path) -> None:
    """`collect` ends early, without an error, where the JVM cannot hand all rows over."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            where = f"{name_of(path)}:{node.lineno}"
            assert node.func.attr not in ROWS_TO_THE_DRIVER, f"{where}: use spark.sources.rows_of"


def test_no_import_runs_in_a_circle() -> None:
    modules = {module_of(path): path for path in FILES}
    graph = {
        name: {target for module, _ in imports(path) for target in known(module, modules)} - {name}
        for name, path in modules.items()
    }
    list(TopologicalSorter(graph).static_order())  # raises CycleError with the circle in it


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(TREE).with_suffix("").parts).removesuffix(".__init__")


def known(module: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """The module, or nothing; a package whose face is imported from within is no arrow."""
    if module in modules and modules[module].name != "__init__.py":
        yield module


UNTYPED = re.compile(r"(?:Mapping|dict)\[str, Any\]")


def test_rows_cross_a_package_by_the_type_of_their_table() -> None:
    imported = {
        f"{node.module}.{alias.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").split(".")[1:2] not in ([], [package_of(path)])
        for alias in node.names
    }
    names = {
        f"{module_of(path)}.{name}".removeprefix(f"{PACKAGE.name}.")
        for path in FILES
        for owner, name in untyped_names(path)
        if f"{module_of(path)}.{owner}" in imported
    }
    assert not names


def untyped_names(path: Path) -> Iterator[tuple[str, str]]:
    """The functions and public members of classes with `Mapping[str, Any]` in their types, also by
    an alias, each with the function or class that others import.
    """
    body = ast.parse(path.read_text("utf-8")).body
    aliases = {
        ast.unparse(target)
        for node in body
        if isinstance(node, ast.Assign) and UNTYPED.match(ast.unparse(node.value))
        for target in node.targets
    }
    for node in body:
        if isinstance(node, ast.FunctionDef) and is_untyped(node, aliases):
            yield node.name, node.name
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if not isinstance(member, ast.FunctionDef | ast.AnnAssign):
                    continue
                if isinstance(member, ast.FunctionDef):
                    name = member.name
                else:
                    name = ast.unparse(member.target)
                public = name == "__init__" or not name.startswith("_")
                if public and is_untyped(member, aliases):
                    yield node.name, f"{node.name}.{name}"


def is_untyped(node: ast.FunctionDef | ast.AnnAssign, aliases: set[str]) -> bool:
    if isinstance(node, ast.AnnAssign):
        signature: list[ast.AST] = [node.annotation]
    else:
        signature = [part for part in (node.args, node.returns) if part is not None]
    parts = [part for whole in signature for part in ast.walk(whole)]
    texts = {ast.unparse(n) for n in parts if isinstance(n, ast.Subscript | ast.Name)}
    return any(text in aliases or UNTYPED.match(text) is not None for text in texts)


FOLDERS = sorted({path.parent for path in FILES})


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_package_states_what_it_is_for(folder: Path) -> None:
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))


def run_without(modules: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    blocked = "import sys; " + "; ".join(f"sys.modules[{name!r}] = None" for name in modules)
    command = [sys.executable, "-c", f"{blocked}\n{code}"]
    return subprocess.run(command, cwd=TREE, capture_output=True, text=True, timeout=60)


def test_the_package_imports_without_pyspark() -> None:
    done = run_without(("pyspark", "py4j"), "import rebalance_core")
    assert done.returncode == 0, done.stderr


def test_strategies_divide_without_numpy() -> None:
    code = """
from rebalance_core import MessageQueue, allocate_group
queues = [MessageQueue("T", "a", number) for number in range(3)]
print(*allocate_group("CONSISTENT_HASH", queues, ["x"]).values())
"""
    done = run_without(("numpy", "pyarrow"), code)
    assert done.stdout.split() == ["('x',)"] * 3, done.stderr


def test_the_command_line_needs_nothing_installed() -> None:
    blocked = ("pyspark", "py4j", "pandas", "pyarrow", "numpy")
    done = run_without(blocked, "from rebalance_core.cli.main import main; main(None, ['--help'])")
    assert done.returncode == 0, done.stderr
    assert "simulate" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "simulate --input IN --output OUT --strategy AVG",
        "generate --groups 3 --output OUT",
        "ingest --collection IN --output OUT",
        "audit --input IN --output OUT",
        "explain --ledger IN --group g --queue T/a/0 --at 1795231709901",
        "read --group g FILE -",
        "plan --input IN --output OUT",
        "producers --input IN --output OUT",
        "history --runs IN --output OUT",
    ],
)
def test_a_job_is_parsed_before_pyspark_is_imported(words: str) -> None:
    code = f"""
from rebalance_core.cli.jobs import JOBS, parse_options
parse_options({words.split()!r}, JOBS)
assert not [name for name in sys.modules if name.startswith("pyspark.")]
"""
    done = run_without(("pyspark", "py4j"), code)
    assert done.returncode == 0, done.stderr


JOBS = {
    "audit", "collect", "demo", "explain", "generate", "history", "ingest", "night", "plan",
    "producers", "propagate", "read", "simulate", "size",
}  # fmt: skip
OF_ALL_JOBS = ("in_python.py", "night.py")
"""Files that run jobs: for Python's callers, one after the other."""


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if package_of(p) == "cli" and p.name not in OF_ALL_JOBS],
    ids=name_of,
)
def test_no_job_imports_another_jobs_command_line(path: Path) -> None:
    own = job_of(path.relative_to(PACKAGE / "cli").with_suffix("").parts[0])
    for module, _ in imports(path):
        parts = module.split(".")
        if parts[:2] == [PACKAGE.name, "cli"] and len(parts) > 2:
            assert job_of(parts[2]) not in JOBS - {own}, f"{name_of(path)} imports {module}"


def job_of(module: str) -> str:
    """`plan` for `plan` and `plan_summary`."""
    return module.partition("_")[0]


HEAVY = (
    "planning", "replay", "audit", "synthetic", "kernels", "engine", "ingest", "timing",
    "client", "protocol", "strategies",
)  # fmt: skip


@pytest.mark.parametrize("job", ["", *sorted(JOBS)])
def test_help_imports_none_of_what_a_job_needs(job: str) -> None:
    code = f"""
from rebalance_core.cli.main import main
main(None, {[*filter(None, [job]), "--help"]!r})
heavy = {HEAVY!r}
found = sorted(name for name in sys.modules if name.startswith("rebalance_core."))
assert not [name for name in found if name.split(".")[1] in heavy], found
"""
    done = run_without(("pyspark", "py4j", "pandas", "pyarrow", "numpy"), code)
    assert done.returncode == 0, done.stderr


def test_the_public_names_are_there() -> None:
    import rebalance_core

    pinned = {
        "MessageQueue",
        "make_strategy",
        "parse_strategy",
        "allocate_group",
        "compute_pull_from_where",
        "broker_offset_reply",
    }
    assert pinned <= set(dir(rebalance_core))
