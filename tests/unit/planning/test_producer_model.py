from pathlib import Path

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.versions import Version
from rebalance_core.planning.producer_model import parse_model, read_model
from rebalance_core.producers.latencies import FixedLatency, UniformLatency
from rebalance_core.producers.model import BrownOut, Outage
from tests.tree import TREE

EXAMPLES = TREE / "rebalance_core/bundled/producers"
TOP = 'name = "n"\ndescription = "d"\nseconds = 60\n'
BROKER = '[[broker]]\nname = "a"\nqueues = 4\nlatency = { distribution = "fixed", ms = 3 }\n'
GROUP = '[[producers]]\ngroup = "g"\ntopic = "t"\nclients = 2\nsends_per_second = 10\n'
SLOW = "latency = { distribution = 'uniform', low_ms = 500, high_ms = 900 }\n"
BROWN_OUT = f"[[brown_out]]\nbroker = 'a'\nfrom_second = 10\nto_second = 20\n{SLOW}"
GOOD = TOP + BROKER + GROUP


def test_a_file_is_read() -> None:
    text = GOOD + BROWN_OUT + "errors = 0.5\n"
    text += '[[outage]]\nbroker = "a"\nfrom_second = 30\nto_second = 60\nanswer = "timeout"\n'
    model = parse_model(text, "f.toml")
    assert (model.name, model.length_ms, model.slice_ms, model.producers) == (
        "n",
        60_000,
        60_000,
        2,
    )
    assert model.brokers[0].latency == FixedLatency(3)
    assert model.disturbances == (
        BrownOut("a", 10_000, 20_000, UniformLatency(500, 900), 0.5),
        Outage("a", 30_000, 60_000, "timeout", False),
    )
    (group,) = model.groups
    assert (group.retries, group.timeout_ms) == (2, 3000)
    assert group.variant.version == Version(5, 3, 3)
    assert not group.variant.fault_tolerance


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_examples_are_models(path: Path) -> None:
    assert read_model(path).name == path.stem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "f.toml: not TOML"),
        (GOOD.replace("seconds", "secs"), "f.toml:3: unknown key secs; did you mean seconds?"),
        (GOOD.replace("seconds = 60\n", ""), "f.toml:1: seconds is missing"),
        (GOOD.replace("seconds = 60", "seconds = 0"), "f.toml:3: seconds = 0: expected a whole"),
        (TOP + BROKER, "there is no [[producers]]; add at least one"),
        (TOP + GROUP, "there is no [[broker]]; add at least one"),
        (TOP + "broker = 5\n" + GROUP, "f.toml:4: broker must be tables that begin"),
        (GOOD + "[[brownout]]\n", "unknown key brownout; did you mean brown_out?"),
        (GOOD.replace('"fixed"', '"fixd"'), "expected one of fixed, uniform, lognormal; did you"),
        (GOOD.replace("ms = 3", "msec = 3"), "unknown key msec of fixed; did you mean ms?"),
        (GOOD.replace(", ms = 3", ""), "fixed needs ms"),
        (GOOD.replace("ms = 3", "ms = -3"), "ms = -3: expected a number above 0"),
        (GOOD.replace('= { distribution = "fixed", ms = 3 }', "= 3"), "expected a table such as"),
        (GOOD + BROWN_OUT.replace("900", "400"), "high_ms must be above low_ms"),
        (GOOD + BROWN_OUT + "errors = 1.5\n", "f.toml:18: errors = 1.5: expected a number"),
        (GOOD + BROWN_OUT.replace("'a'", "'aa'"), "f.toml:14: unknown broker 'aa'; did you"),
        (GOOD + BROWN_OUT.replace("= 20", "= 61"), "f.toml:16: to_second = 61: expected more"),
        (GOOD + BROWN_OUT.replace("= 20", "= 10"), "to_second = 10: expected more than"),
        (GOOD + BROWN_OUT * 2, "f.toml:21: a is already disturbed for part of this period"),
        (TOP + BROKER * 2 + GROUP, "f.toml:9: name = 'a' is used twice"),
        (GOOD + GROUP, "f.toml:14: group = 'g' is used twice"),
        (GOOD + "client_version = '3.2'\n", "f.toml:13: client_version = '3.2': RocketMQ"),
        (GOOD + "fault_tolerance = 1\n", "f.toml:13: fault_tolerance = 1: expected true or false"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_model(text, "f.toml")
    assert said in str(caught.value)


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_model("seconds = 'x'\nseeed = 1\n" + BROKER + GROUP, "f.toml")
    assert len(str(caught.value).splitlines()) == 4


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "outage.toml").write_text("")
    with pytest.raises(UsageError, match=r"no such file; did you mean outage\.toml"):
        read_model(tmp_path / "outrage.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_model(tmp_path / "bytes.toml")
