"""The names that the package imports on first use have the types of what they stand for."""

import ast
from collections.abc import Iterator

import rebalance_core
from tests.tree import TREE


def checked_names(block: ast.If) -> Iterator[tuple[str, str]]:
    """Names that a type checker sees, each with its module and its name there."""
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    yield from imported.items()
    for node in block.body:
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            yield ast.unparse(target), imported[ast.unparse(node.value)]


def test_every_lazy_export_is_imported_for_type_checkers() -> None:
    module = ast.parse((TREE / "rebalance_core/__init__.py").read_text("utf-8"))
    (block,) = (
        node
        for node in module.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    exports = {}
    for path, names in rebalance_core._LAZY_EXPORTS.items():
        for entry in names:
            exported, _, original = entry.partition("=")
            exports[exported] = f"rebalance_core.{path}.{original or exported}"
    checked = dict(checked_names(block))
    assert {name: checked.get(name) for name in exports} == exports
