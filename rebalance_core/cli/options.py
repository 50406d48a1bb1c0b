"""Declares options once, as fields of a dataclass with metavar, help, reader and group.

To argparse, all options are optional text: `read` checks all values and reports all mistakes at
once. The module imports no optional package.
"""

import argparse
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

from rebalance_core.model.errors import RebalanceError, UsageError, did_you_mean
from rebalance_core.model.times import INSTANT_FORM, MOST_DIGITS, read_instant

AUTO, PROCESS, SPARK = RUN_ON = ("auto", "process", "spark")
INPUT_FORMATS = {"json": "json", "jsonl": "json", "csv": "csv", "parquet": "parquet"}
"""The values of ``--input-format``, and the format of each."""
LAST_MS = 2**63 - 1  # the largest BIGINT
PATHS = ("DIR", "FILE", "PATH")
"""Metavars of options that name files and folders."""

# TopicValidator.isTopicOrGroupIllegal (5.x), VALID_PATTERN_STR (4.9): valid characters in group
# names.
_NO_GROUP_PATTERN = re.compile(r"[^%|a-zA-Z0-9_\-*?]")

_DATABASE = re.compile(r"[\w-]+(\.[\w-]+)*")
# SparkSubmit: "Master must either be yarn or start with spark, k8s, or local"; sc is Connect's.
_LOCAL = re.compile(r"local(-cluster\[\s*\d+\s*(,\s*\d+\s*){2}\]|\[(\d+|\*)(\s*,\s*\d+)?\])?")
_REMOTE = re.compile(r"yarn|(spark|k8s|sc)://.+")


@dataclass(frozen=True)
class Option:
    """The declaration of an option, stored with the default of its field."""

    metavar: str | None
    """None for a flag."""
    text: str
    name: str | None
    group: str | None
    read: Callable[[str], Any]
    required: bool
    many: Literal["append", "extend"] | None
    """Whether it may be repeated, with ``extend`` for several values each time; the value is then a
    tuple.
    """
    listed: bool


def option(
    metavar: str,
    text: str,
    *,
    default: Any = None,
    read: Callable[[str], Any] = str,
    group: str | None = None,
    name: str | None = None,
    required: bool = False,
    many: Literal["append", "extend"] | None = None,
    listed: bool = True,
) -> Any:
    """Declare a field as an option with a value.

    Args:
        metavar: the value in ``--help``.
        text: the sentence in ``--help``, which includes any default.
        default: the value if the option is not given.
        read: converts the typed text; raises ValueError with the valid values.
        group: heading in ``--help``.
        name: the option's name if it differs from the field's.
        required: whether a run needs it.
        many: whether it may be repeated.
        listed: False for an old spelling or an option that this job accepts but ignores.
    """
    declared = Option(
        metavar=metavar,
        text=text,
        name=name,
        group=group,
        read=read,
        required=required,
        many=many,
        listed=listed,
    )
    return field(default=() if many else default, metadata={"option": declared})


def flag(text: str, *, group: str | None = None) -> Any:
    """Declare a field as an option without a value, off by default."""
    declared = Option(None, text, None, group, str, required=False, many=None, listed=True)
    return field(default=False, metadata={"option": declared})


def one_of(words: Collection[str]) -> Callable[[str], str]:
    """Return a reader that accepts only these words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}{did_you_mean(text, words)}")
        return text

    return read


def number(text: str) -> int | None:
    """Return the number in a string of ASCII digits, or None for any other string.

    >>> number("-5"), number("--5"), number("5.0")
    (-5, None, None)
    """
    digits = text.removeprefix("-")
    plain = digits.isdecimal() and digits.isascii() and len(digits) <= MOST_DIGITS
    return int(text) if plain else None


def whole(least: int, most: int, valid: str) -> Callable[[str], int]:
    """Return a reader for integers in a range, which ``valid`` describes."""

    def read(text: str) -> int:
        value = number(text)
        if value is None or not least <= value <= most:
            raise ValueError(f"expected a whole number {valid}")
        return value

    return read


def share(text: str) -> float:
    """Read a share from 0 to 1.

    >>> share("0.25")
    0.25
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError("expected a share from 0 to 1")
    return value


def instant(text: str) -> int:
    """Return the epoch milliseconds of a time as operators write it; a ValueError states the valid
    forms.

    >>> instant("2026-11-21T03:30:00+08:00")
    1795203000000
    """
    digits = number(text)
    time = read_instant(text if digits is None else digits)
    if abs(time) > LAST_MS:
        raise ValueError(f"expected {INSTANT_FORM}")
    return time


def group_pattern(text: str) -> str:
    """Read a pattern of group names."""
    wrong = _NO_GROUP_PATTERN.search(text)
    if not text:
        raise ValueError("expected a group name, or a pattern with * and ?")
    if wrong:
        raise ValueError(
            f"group names cannot contain {wrong[0]!r}; patterns use * (any text) and ? (one "
            "character)"
        )
    return text


def strategy_text(text: str) -> str:
    """Read the text of a strategy for all groups."""
    from rebalance_core.strategies import parse_strategy

    parse_strategy(text)
    return text


def plugin_package(text: str) -> str:
    """Read the name of a package that may contain plugins."""
    from rebalance_core.strategies.plugin_modules import package_name

    return package_name(text)


def file_format(text: str) -> str:
    """Read the format of input files."""
    return INPUT_FORMATS[one_of(INPUT_FORMATS)(text)]


def database_name(text: str) -> str:
    """Read the name of a catalog's database."""
    if not _DATABASE.fullmatch(text):
        raise ValueError("expected CATALOG.DATABASE, or DATABASE")
    return text


def mounted_folder(text: str) -> str:
    """Read a folder on this machine."""
    from rebalance_core.contracts.paths import is_local

    if not is_local(text):
        raise ValueError("must be a folder on this machine; copy the input there first")
    return text


def spark_master(text: str) -> str:
    """Read a Spark master, because Spark itself would report a mistake only after starting."""
    if not (_LOCAL.fullmatch(text) or _REMOTE.fullmatch(text)):
        raise ValueError(
            "expected local, local[N], local[*], spark://HOST:PORT, sc://HOST:PORT, yarn or "
            "k8s://URL"
        )
    return text


BAD_ROWS, EVERY_JOB = _LAST = ("bad rows", "options of every job")
"""The headings that follow the job's own, in order."""


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The options of every job. `argv` is the command line as typed, for the record."""

    MEANINGLESS: ClassVar[tuple[str, ...]] = ()
    """Fields that the job ignores; every job accepts them, but its help does not list them."""
    DECIDING: ClassVar[tuple[str, ...]] = ()
    """Fields that determine which rows an input yields, and so are part of a run's id."""

    argv: tuple[str, ...] = ()
    config: tuple[str, ...] = option(
        "FILE",
        "TOML file with settings; later files override earlier ones; default: the package's own "
        "settings",
        many="append",
        group=EVERY_JOB,
    )
    set: tuple[str, ...] = option(
        "KEY=VALUE",
        "a single setting that overrides the files, e.g. max_bad_share=0.1; default: none",
        many="append",
        group=EVERY_JOB,
    )
    allow_plugins: tuple[str, ...] = option(
        "PACKAGE",
        "packages from which the settings may load plugins; default: those in "
        "REBALANCE_ALLOW_PLUGINS, or else none",
        many="extend",
        read=plugin_package,
        group=EVERY_JOB,
    )
    json: bool = flag("print one JSON object to stdout; default: text", group=EVERY_JOB)
    dry_run: bool = flag(
        "write nothing, print what a run would do, and exit with its code; default: run",
        group=EVERY_JOB,
    )
    overwrite: bool = flag("replace an earlier result; default: exit 5", group=EVERY_JOB)
    break_lock: bool = flag(
        ("take over the output folder of a dead run; default: exit 5"), group=EVERY_JOB
    )
    debug: bool = flag(
        "print full stack traces and Spark's output; default: one line", group=EVERY_JOB
    )
    master: str | None = option(
        "URL",
        "Spark master, e.g. local[4], or Connect server, sc://HOST; default: SPARK_REMOTE, or "
        "else Spark's own configuration",
        read=spark_master,
        group=EVERY_JOB,
    )
    run_on: str = option(
        "WHERE",
        "|".join(RUN_ON) + "; default auto: Spark for large inputs, under spark-submit "
        "and with SPARK_REMOTE",
        default=AUTO,
        read=one_of(RUN_ON),
        group=EVERY_JOB,
    )

    @classmethod
    def complete(cls, values: dict[str, Any], mistakes: list[str]) -> None:
        """Check combinations of options and derive values from them.

        Args:
            values: the values by field, with defaults in place of invalid values; may be changed.
            mistakes: messages, to which further ones may be added.
        """

    @classmethod
    def add_to(cls, parser: argparse.ArgumentParser) -> None:
        """Declare the options to argparse, with common options last."""
        groups: dict[str, Any] = {}
        for name, declared in sorted(_options(cls), key=_place_in_help):
            target: Any = parser
            if declared.group is not None:
                target = groups.get(declared.group) or parser.add_argument_group(declared.group)
                groups[declared.group] = target
            listed = declared.listed and name not in cls.MEANINGLESS
            text = declared.text.replace("%", "%%") if listed else argparse.SUPPRESS
            keywords: dict[str, Any] = {"dest": name, "help": text}
            if declared.metavar is None:
                keywords["action"] = "store_true"
            else:
                keywords |= {"metavar": declared.metavar, "action": declared.many or "store"}
                keywords |= {"nargs": "+"} if declared.many == "extend" else {}
            typed = _typed(name, declared)
            if not typed.startswith("-"):  # an optional positional word
                nargs = "*" if declared.many else "?"
                keywords = {"help": text, "metavar": declared.metavar, "nargs": nargs}
                typed = name
            target.add_argument(typed, **keywords)

    @classmethod
    def read(cls, arguments: argparse.Namespace, argv: tuple[str, ...]) -> Self:
        """Return the options from argparse's result.

        Raises:
            UsageError: options are invalid; the message lists every mistake.
        """
        values: dict[str, Any] = {"argv": argv}
        mistakes: list[str] = []
        for name, declared in _options(cls):
            argument = getattr(arguments, name)
            if declared.required and not argument:
                mistakes.append(f"{_typed(name, declared)} {declared.metavar} is missing")
            if declared.metavar is None:
                values[name] = argument
            elif declared.many:
                texts = [_value(name, declared, text, mistakes) for text in argument or ()]
                values[name] = tuple(text for text in texts if text is not None)
            elif argument is not None and (argument or not declared.required):
                values[name] = _value(name, declared, argument, mistakes)
        defaults = {field.name: field.default for field in fields(cls)}
        values = defaults | {name: value for name, value in values.items() if value is not None}
        if values["run_on"] == PROCESS and values["master"] is not None:
            mistakes.append(f"--run-on process and --master {values['master']} exclude each other")
        cls.complete(values, mistakes)
        if mistakes:
            raise UsageError("\n".join(mistakes))
        return cls(**{field.name: values[field.name] for field in fields(cls)})


@dataclass(frozen=True, kw_only=True)
class RowOptions(JobOptions):
    """The options of a job that checks rows; None leaves the value to the settings."""

    on_bad_rows: str | None = option(
        "HOW", "quarantine|fail; default: the setting on_bad_rows, quarantine", group=BAD_ROWS
    )
    max_bad_share: str | None = option(
        "X",
        "refuse an input with a larger share of bad rows, 0 to 1; default: the setting "
        "max_bad_share, 0.5",
        group=BAD_ROWS,
    )


def _options(cls: type[JobOptions]) -> Iterator[tuple[str, Option]]:
    for option in fields(cls):
        if "option" in option.metadata:
            yield option.name, option.metadata["option"]


def _place_in_help(named_option: tuple[str, Option]) -> int:
    group = named_option[1].group
    return 0 if group not in _LAST else 1 + _LAST.index(group)


def _typed(name: str, declared: Option) -> str:
    return declared.name or "--" + name.replace("_", "-")


def _value(name: str, declared: Option, text: str, mistakes: list[str]) -> Any:
    """Return the value of a string; if it is invalid, add a mistake and return None."""
    try:
        if declared.metavar in PATHS and text.startswith("~"):
            raise ValueError(
                "the shell did not expand ~; write $HOME, or ./~ for a name that begins with it"
            )
        return declared.read(text)
    except (ValueError, RebalanceError) as error:
        option_text = (
            f"{_typed(name, declared)} {text}" if text else f"{_typed(name, declared)} is empty"
        )
        mistakes.append(f"{option_text}: {error}")
        return None
