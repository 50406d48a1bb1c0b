"""The tree's own rules: imports go one way, and pyspark stays where it belongs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
PACKAGE = TREE / "rebalance_core"

# Each row imports only from rows above it, and within its own package.
LAYERS = (
    {"model"},
    {"contracts"},
    {"strategies"},
    {"rules"},
    {"replay", "clockwork", "producers", "kernels", "ingest", "synthetic"},
    {"spark"},
    {"audit", "planning", "report"},
    {"cli"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
PYSPARK_AT_HOME = {"spark", "audit", "planning", "report"}
STDLIB_ONLY = {"model"}

FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(TREE).as_posix()


def package_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every imported module, and whether it is imported when the file is."""
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
    packages = {package_of(path) for path in FILES} - {""}
    assert packages <= RANK.keys()


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
def test_pyspark_stays_at_home(path: Path) -> None:
    package = package_of(path)
    for module, at_import in imports(path):
        root = module.partition(".")[0]
        if root not in ("pyspark", "py4j") or package in PYSPARK_AT_HOME:
            continue
        assert package == "cli", f"{name_of(path)} imports {module}"
        assert not at_import, f"{name_of(path)} imports {module} before it is needed"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_vocabulary_needs_the_standard_library_alone(path: Path) -> None:
    if package_of(path) in STDLIB_ONLY:
        roots = {module.partition(".")[0] for module, _ in imports(path)}
        assert roots <= set(sys.stdlib_module_names) | {PACKAGE.name}


def run_without(modules: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    blocked = "import sys; " + "; ".join(f"sys.modules[{name!r}] = None" for name in modules)
    command = [sys.executable, "-c", f"{blocked}\n{code}"]
    return subprocess.run(command, cwd=TREE, capture_output=True, text=True, timeout=60)


def test_the_package_imports_without_pyspark() -> None:
    done = run_without(("pyspark", "py4j"), "import rebalance_core")
    assert done.returncode == 0, done.stderr


def test_the_command_line_needs_nothing_installed() -> None:
    blocked = ("pyspark", "py4j", "pandas", "pyarrow", "numpy")
    done = run_without(blocked, "from rebalance_core.cli.main import main; main(None, ['--help'])")
    assert done.returncode == 0, done.stderr
    assert "simulate" in done.stdout


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
