"""The class files of the collector belong to its sources, and any Java from 8 on reads them."""

import pytest

from scripts.build_collector import CLASSES, DIGESTS, FORMS, digests, sources

JAVA_8 = 52
"""Major version of class files, JVMS table 4.1-A."""


def test_the_class_files_are_compiled_from_the_sources() -> None:
    assert DIGESTS.read_text() == digests(), "the sources changed: make collector"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_all_class_files_and_needs_java_8(form: str) -> None:
    files = {path.name: path.read_bytes() for path in (CLASSES / form).iterdir()}
    assert files.keys() >= {path.with_suffix(".class").name for path in sources()}
    for name, content in files.items():
        assert content[:4] == b"\xca\xfe\xba\xbe", name
        assert int.from_bytes(content[6:8], "big") == JAVA_8, name


def test_there_is_nothing_else() -> None:
    assert {path.name for path in CLASSES.iterdir()} == {*FORMS, DIGESTS.name}
    assert len({path.name for path in CLASSES.glob("*/*.class")}) * len(FORMS) == len(
        list(CLASSES.glob("*/*"))
    )
