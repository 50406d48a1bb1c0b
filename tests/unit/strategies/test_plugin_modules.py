"""Settings name code: what is imported, and from where."""

from pathlib import Path

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.strategies.custom import HASH_FUNCTIONS
from rebalance_core.strategies.plugin_modules import find_object
from rebalance_core.strategies.registry import register_plugins
from rebalance_core.strategies.texts import parse_strategy

pytestmark = pytest.mark.usefixtures("registered_plugins")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("os:system", "os is part of Python itself"),
        ("posix:system", "posix is part of Python itself"),
        ("builtins:eval", "builtins is part of Python itself"),
        ("subprocess:getoutput", "subprocess is part of Python itself"),
        ("os.path:expandvars", "os.path is part of Python itself"),
        ("__main__:main", "__main__ is part of Python itself"),
        ("acme_reexports:os.system", "os.system is defined in os, not in acme_reexports"),
        ("acme_reexports:system", "system is defined in "),
        ("acme_reexports:Popen", "Popen is defined in subprocess"),
        ("acme_reexports:SEEN.append", "SEEN.append is defined in builtins"),
        ("acme_reexports:fnv.__globals__", "__globals__ is Python's own"),
        ("acme_reexports:__builtins__.get", "__builtins__ is Python's own"),
        ("acme_reexports:json_of_others", "json_of_others is defined in json"),
    ],
)
def test_no_way_leads_to_the_standard_library(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_reexports.py").write_text(
        "import os\nfrom json import loads as json_of_others\nfrom os import system\n"
        "from subprocess import Popen\nSEEN = []\n\ndef fnv(key):\n    return len(key)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    everything = {"acme_reexports", "os", "posix", "builtins", "subprocess", "json", "__main__"}
    for allowed in (everything, None):
        with pytest.raises(UsageError) as caught:
            find_object("hash_functions: h", text, allowed)
        assert said in str(caught.value)
    assert find_object("h", "acme_reexports:fnv", ["acme_reexports"])("abc") == 3


@pytest.mark.parametrize(
    ("allowed", "found"),
    [
        (["tests"], True),
        (["tests.plugins"], True),
        (["own"], False),
        (["tests.own"], False),
        (["test"], False),
        ([], False),
        (["tests.plugins.x"], False),
    ],
)
def test_only_what_is_allowed_is_imported(allowed: list[str], found: bool) -> None:
    named = [(HASH_FUNCTIONS, "h", "tests.plugins:upstream_hash")]
    if found:
        register_plugins(named, allowed)
        assert "hash_function=h" in str(parse_strategy("CONSISTENT_HASH(hash_function=h)"))
    else:
        with pytest.raises(UsageError, match="allow it: --allow-plugins tests"):
            register_plugins(named, allowed)
