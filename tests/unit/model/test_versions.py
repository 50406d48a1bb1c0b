"""Texts as versions: a line without a patch is its last one."""

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.versions import Version, is_known_line, parse_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4.9", (4, 9, 8)),
        ("5.0", (5, 0, 0)),
        ("5.1", (5, 1, 4)),
        ("5.2", (5, 2, 0)),
        ("5.3", (5, 3, 3)),
        ("5.4", (5, 4, 0)),
        ("5.5", (5, 5, 0)),
        ("5.9", (5, 9, 0)),  # not known
        ("4.9.0", (4, 9, 0)),
        ("5.3.0", (5, 3, 0)),
        ("5.12.10", (5, 12, 10)),
        ("V4_9", (4, 9, 8)),
        ("V4_9_7", (4, 9, 7)),
        ("v5.1.3", (5, 1, 3)),
        ("V5_3_4-SNAPSHOT", (5, 3, 4)),
        (" 5.3 ", (5, 3, 3)),
    ],
)
def test_a_version(text: str, expected: tuple[int, int, int]) -> None:
    assert parse_version(text) == expected
    assert str(parse_version(text)) == "{}.{}.{}".format(*expected)


@pytest.mark.parametrize("text", ["", "5", "5.x", "5.3.3.1", "HIGHER_VERSION", "5.3.3 or so"])
def test_no_version(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a RocketMQ version; expected e\.g\. 4\.9\.7"):
        parse_version(text)


@pytest.mark.parametrize("text", ["4.8", "4.8.0", "V3_5_8", "0.9"])
def test_lines_that_are_not_modelled(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not modelled; the oldest supported line is 4\.9"):
        parse_version(text)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("4.9.0", True),
        ("5.3.4", True),
        ("5.4", True),
        ("5.5.1", True),
        ("5.6", False),
        ("6.0.0", False),
    ],
)
def test_lines_whose_rules_are_known(text: str, known: bool) -> None:
    assert is_known_line(parse_version(text)) is known


def test_versions_compare_as_numbers() -> None:
    assert (5, 1) < Version(5, 1, 1) < (5, 2) < Version(5, 10, 0)
    assert parse_version("4.9").is_v4
    assert not parse_version("5.0").is_v4
