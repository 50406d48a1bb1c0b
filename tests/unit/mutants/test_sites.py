"""Each kind of small mistake, where it is made and where it is not."""

import ast
from pathlib import Path

import pytest

from tests.mutants.packages import PACKAGES
from tests.mutants.sites import mutate, sites_of
from tests.tree import TREE


def mutants(source: str) -> list[str]:
    code = source.encode()
    return [mutate(code, site).decode() for site in sites_of("m.py", code)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = (a)  not  in (b)", ["x = (a)  in (b)"]),
        ("x = a and b and c", ["x = a or b and c"]),
        ("x = é + b", ["x = é - b"]),
        ("x -= y", ["x += y"]),
        ("x = not a", ["x = a"]),
        ("x = [1, True, 'one']", ["x = [2, True, 'one']", "x = [1, False, 'one']"]),
        ("x = y if z else w", ["x = y if (not (z)) else w"]),
        ("def f():\n    return x", ["def f():\n    return None"]),
        ("x = min(a, b)", ["x = max(a, b)"]),
        ("f(x)", ["pass"]),
        ("for x in y:\n    break", ["for x in y:\n    continue"]),
        ("x = (a  # a - b\n    - b)", ["x = (a  # a - b\n    + b)"]),
    ],
)
def test_a_mistake_of_each_kind(source: str, expected: list[str]) -> None:
    assert mutants(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of 1 line."""',
        "def f(x: int | None) -> int | None: ...",
        "@lru_cache(maxsize=8)\ndef f(): ...",
        "raise ValueError(f'{1 + 1} is wrong')",
        "assert x > 0",
        "x = zip(a, b, strict=True)",
        "X: TypeAlias = int | None",
        "return_ = 'a'",
    ],
)
def test_what_no_test_should_see_is_left_alone(source: str) -> None:
    assert mutants(source) == []


def test_every_mutant_of_the_project_is_python() -> None:
    files = [path for name in PACKAGES for path in (TREE / name).rglob("*.py")]
    assert files
    for path in files:
        _every_mutant_parses(path)


def _every_mutant_parses(path: Path) -> None:
    source = path.read_bytes()
    for site in sites_of(path.name, source)[::7]:  # all of them take 20 s
        ast.parse(mutate(source, site))
