"""Operators' settings files, all read in the same way: plain UTF-8 files with TOML within limits.

These are ``--config``, ``collection.toml``, scenarios, searches, models, accepted findings and
owners.
"""

import re
import tomllib
from pathlib import Path

from rebalance_core.contracts.bundled_files import bundled
from rebalance_core.contracts.paths import special_file
from rebalance_core.model.errors import RebalanceError, UsageError, did_you_mean

MOST_BYTES = 16 * 1024**2
"""A file of 100,000 accepted findings has 15 MB."""
MOST_DEEP = 100
"""The maximum nesting of tables and arrays; this program's settings have at most four levels."""
_LONGS = range(-(2**63), 2**63)
"""TOML 1.0: integers are 64 bits, signed."""


def read_settings_text(path: Path, refused: type[RebalanceError] = UsageError) -> str:
    """Return the text of a settings file, without a byte order mark.

    Args:
        path: Its path; a pipe or device is refused before it is opened.
        refused: The type of error to raise, which depends on whether the file comes from the caller
            or an input.

    Raises:
        FileNotFoundError: The file does not exist.
        RebalanceError: Of type `refused`, if the file cannot be read, is too large, or is not
            UTF-8.
    """
    try:
        status = path.stat()
        special = special_file(status.st_mode)
        if special is not None:
            raise refused(
                f"{path} cannot be read: it is {special}, not a plain file; copy it to one"
            )
        if status.st_size > MOST_BYTES:
            raise refused(
                f"{path} has {status.st_size:,} bytes; a settings file may have at most "
                f"{MOST_BYTES:,}: check that this is the right file"
            )
        with path.open("rb") as file:
            read = file.read(MOST_BYTES + 1)  # files of /proc have no size
    except FileNotFoundError:
        raise
    except OSError as error:
        raise refused(f"{path} cannot be read: {error.strerror or error}") from error
    return settings_text(read, str(path), refused)


def settings_text(read: bytes, path: str, refused: type[RebalanceError] = UsageError) -> str:
    """Return the text of a settings file, without a byte order mark.

    Args:
        read: Its first bytes, more than `MOST_BYTES` of them if it has more.
        path: Its path, for the message.
        refused: See `read_settings_text`.

    Raises:
        RebalanceError: Of type `refused`, if it is too large or is not UTF-8.
    """
    if len(read) > MOST_BYTES:
        raise refused(
            f"{path} has more than {MOST_BYTES:,} bytes: check that this is the right file"
        )
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None


def option_text(option: str, path: str) -> str:
    """Return the text of the settings file that an option names.

    Raises:
        UsageError: As in `read_settings_text`; the message names the option.
    """
    try:
        return read_settings_text(Path(path))
    except FileNotFoundError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from error
    except UsageError as error:
        raise UsageError(f"{option} {error}") from error


def named_text(path: Path, kind: str) -> str:
    """Return the text of a file, or of a bundled file named without folder and suffix.

    Raises:
        UsageError: The file does not exist (the message has the closest name), or as in
            `read_settings_text`.
    """
    examples = bundled(kind)
    try:
        if str(path) in examples and not path.exists():
            return examples[str(path)].read_text("utf-8-sig")
        return read_settings_text(path)
    except FileNotFoundError:
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        by_name = not path.suffix and path.parent == Path()
        also = f", and no bundled one of {', '.join(examples)}" if by_name else ""
        near = did_you_mean(path.name, [*examples, *beside] if by_name else beside)
        raise UsageError(f"{path}: no such file{also}{near}") from None


def toml_document(
    text: str, where: str, refused: type[RebalanceError] = UsageError
) -> dict[str, object]:
    """Return the values of a TOML text.

    Args:
        text: The file's.
        where: Its name, for messages.
        refused: The error; see `read_settings_text`.

    Raises:
        RebalanceError: Of type `refused`, if the text is not TOML, is nested deeper than
            `MOST_DEEP`, or has a number of more than 64 bits.
    """
    if _DEEP_KEY.search(text) is not None:  # tomllib's cost is quadratic in a key's parts
        raise refused(f"{where}: {_TOO_DEEP}")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refused(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise refused(f"{where}: not readable as TOML: {_TOO_DEEP}") from None
    except (ValueError, OverflowError) as error:  # from int(): more digits than Python converts
        raise refused(f"{where}: not readable as TOML: {error}") from None
    except MemoryError:
        raise refused(f"{where}: too large for the memory of this process") from None
    wrong = _beyond_limits(document)
    if wrong is not None:
        raise refused(f"{where}: {wrong}")
    return document


def toml_value(text: str) -> object:
    """Parse text as a TOML value; text that is not valid TOML is a string.

    Quotes, which shells strip, may therefore be missing. The limits are those of `toml_document`.

    >>> toml_value("7"), toml_value("true"), toml_value("fail")
    (7, True, 'fail')
    """
    try:
        return toml_document(f"value = {text}", "")["value"]
    except UsageError:
        return text


_DEEP_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MOST_DEEP}}}"""
)
_TOO_DEEP = f"its tables and arrays are nested deeper than {MOST_DEEP} levels"


def _beyond_limits(document: dict[str, object]) -> str | None:
    """Return what is wrong with the values of a document, checked level by level because it may be
    deep.
    """
    level: list[object] = [document]
    for _ in range(MOST_DEEP + 1):
        below: list[object] = []
        for value in level:
            if isinstance(value, int) and value not in _LONGS:
                return f"a number of {value.bit_length()} bits; whole numbers have up to 64"
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
        level = below
        if not level:
            return None
    return _TOO_DEEP
