"""Configuration and Java beside the package are found from anywhere in a checkout."""

from rebalance_core.cli.run.java_home import FETCHED
from rebalance_core.cli.run.session import TREE_CONF
from tests.tree import TREE


def test_sessions_take_the_checkouts_configuration() -> None:
    assert TREE_CONF == TREE / "conf"
    assert (TREE_CONF / "spark-defaults.conf").is_file()


def test_a_fetched_java_lies_in_the_checkout() -> None:
    assert FETCHED == TREE / ".java"
