"""The pictures cost nothing to those who do not draw."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rebalance_core.report
from tests.tree import TREE


def test_the_package_needs_no_matplotlib() -> None:
    code = "import sys; sys.modules['matplotlib'] = sys.modules['pandas'] = None\n"
    code += "import rebalance_core.report, rebalance_core.report.plots"
    done = subprocess.run([sys.executable, "-c", code], cwd=TREE, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_no_picture_needs_pyplot_which_keeps_every_figure_it_makes() -> None:
    for path in (TREE / "rebalance_core/report/plots").glob("*.py"):
        assert "import matplotlib.pyplot" not in path.read_text("utf-8"), path.name


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="draw_pie"):
        rebalance_core.report.draw_pie  # noqa: B018
