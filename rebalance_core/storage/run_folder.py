"""The folder of a run: its record, and whether its tables match it.

`_run.json` is written last, with the number of rows in every table. Every reader of such a folder
uses this module, so a partial table, a duplicate part or a missing table is refused and never read
as a result.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from rebalance_core.contracts import CONTRACT_VERSION
from rebalance_core.contracts.paths import is_utf8
from rebalance_core.contracts.run_names import LOCK_NAME, RUN_NAME, STATUS_FAILED, STATUS_OK
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.store_answers import refusal

if TYPE_CHECKING:
    from rebalance_core.contracts.run_record import StoredRun


class Folder(Protocol):
    """A folder that a run may have written: a `Place`, or a folder that only Spark can reach."""

    @property
    def url(self) -> str:
        """The folder as operators name it."""

    def __truediv__(self, name: str) -> Any: ...

    def names(self) -> list[str]:
        """Return the names directly in the folder; none if there is no such folder."""

    def read_text(self) -> str | None:
        """Return the text of a small file, or None if the file does not exist."""

    def parquet_rows(self) -> int | None:
        """Return the number of rows in a table's Parquet files according to their footers, or None
        if there is no such table.
        """


class DamagedRecord(InputRefused):
    """A `_run.json` of ours with content that no run writes."""


_OF_OURS = frozenset({"job", "status", "library_version", "contract_version"})
_MOST = 2**63 - 1
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, which `datetime` supports."""
_RUN_ID = re.compile(r"[0-9a-f]{1,64}")

Check = Callable[[str, Any], Iterator[str]]
"""Returns what is wrong with a field, given its name and value."""


def find_run(folder: Folder) -> StoredRun | None:
    """Return this library's record in the folder, of any version and status, or None if there is
    none.

    Raises:
        DamagedRecord: It is a record of this library, but with content that no run writes.
        OSError: The file cannot be read.
    """
    record = _parsed(folder)
    if not isinstance(record, dict) or not record.keys() >= _OF_OURS:
        return None
    fault = fault_of(record)
    if fault is not None:
        raise DamagedRecord(f"{folder.url}/{RUN_NAME} is damaged: {fault}")
    return cast("StoredRun", record)


def read_run(folder: Folder) -> StoredRun:
    """Return the record of a folder with a result that this version can read.

    Fields unknown to this version are passed on unchanged, because versions only add fields.

    Raises:
        InputRefused: There is no record of ours or it cannot be read, the run failed, or its tables
            have another contract version than this library's.
    """
    try:
        record = find_run(folder)
        refuse_unfinished(folder, record)
    except OSError as error:
        raise refusal(error, f"{folder.url} cannot be read", InputRefused) from error
    refuse_unreadable(record, folder.url, CONTRACT_VERSION)
    assert record is not None
    return record


def read_version(folder: Folder) -> StoredRun:
    """Return the record of readable tables, like `read_run`; only its version field is required.

    Raises:
        InputRefused: As for `read_run`.
    """
    try:
        text = (folder / RUN_NAME).read_text()
        record = None if text is None else json.loads(text)
        if text is None:
            refuse_unfinished(folder, None)
            refuse_unreadable(None, folder.url, CONTRACT_VERSION)
    except (ValueError, RecursionError) as error:
        raise DamagedRecord(f"{folder.url}/{RUN_NAME} is not JSON: {error}") from error
    except OSError as error:
        raise refusal(error, f"{folder.url} cannot be read", InputRefused) from error
    if not isinstance(record, dict) or type(record.get("contract_version")) is not int:
        raise DamagedRecord(
            f"{folder.url}/{RUN_NAME} has no contract_version; rebalance-core did not write it"
        )
    fault = next(_object({}, _FIELDS)("", record), None)
    if fault is not None:
        raise DamagedRecord(f"{folder.url}/{RUN_NAME} is damaged: {fault}")
    of_ours = cast("StoredRun", record)
    refuse_unreadable(of_ours, folder.url, CONTRACT_VERSION)
    return of_ours


def refuse_unfinished(folder: Folder, record: StoredRun | None) -> None:
    """Raise `InputRefused` for a folder with a lock and without a record."""
    if record is None and LOCK_NAME in folder.names():
        raise InputRefused(
            f"{folder.url} holds a {LOCK_NAME} but no {RUN_NAME}: a run is writing here or died "
            "here; wait until it ends, or run the job again with --break-lock --overwrite"
        )


def refuse_unreadable(record: StoredRun | None, where: str, contract_version: int) -> None:
    """Raise `InputRefused` unless this library can read the tables that the record describes.

    Args:
        record: the parsed record; None if there is none of ours.
        where: the folder, for the message.
        contract_version: this library's contract version, the only one that it reads.
    """
    if record is None:
        raise InputRefused(
            f"{where} holds no {RUN_NAME} of rebalance-core: it has no result, or its run died or "
            "is still active"
        )
    version = record["contract_version"]
    if record.get("status") == STATUS_FAILED:
        reason = record.get("error") or "the run recorded no reason"
        raise InputRefused(f"{where} is the output of a run that failed: {reason}")
    if version > contract_version:
        raise InputRefused(
            f"{where} has tables of contract version {version}, made by rebalance-core "
            f"{record.get('library_version')}; this version reads {contract_version}: upgrade "
            "rebalance-core"
        )
    if version < contract_version:
        raise InputRefused(
            f"{where} has tables of contract version {version}; this rebalance-core reads "
            f"{contract_version}: run the job again"
        )


def _parsed(folder: Folder) -> Any:
    """Return the file's JSON, or None if there is no file or it is not JSON."""
    try:
        text = (folder / RUN_NAME).read_text()
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def fault_of(record: Mapping[str, object]) -> str | None:
    """Return what is wrong with those fields of a record that readers use, or None."""
    return next(_RECORD("", record), None)


def _fault(name: str, value: object, what: str) -> str:
    return f"{name} is {reprlib.repr(value)}, {what}"


def _check(valid: Callable[[Any], object], what: str) -> Check:
    def faults(name: str, value: Any) -> Iterator[str]:
        try:
            holds = valid(value)
        except (TypeError, ValueError, OverflowError):
            holds = False
        if not holds:
            yield _fault(name, value, what)

    return faults


def _whole(least: int, most: int) -> Check:
    return _check(
        lambda value: type(value) is int and least <= value <= most,
        f"not a whole number from {least} to {most}",
    )


def _or_null(check: Check) -> Check:
    return lambda name, value: iter(()) if value is None else check(name, value)


def _list_of(check: Check) -> Check:
    def faults(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, list):
            yield _fault(name, value, "no list")
            return
        for place, item in enumerate(value):
            yield from check(f"{name}[{place}]", item)

    return faults


def _map_of(check: Check) -> Check:
    def faults(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, dict):
            yield _fault(name, value, "no object")
            return
        for key, item in value.items():
            yield from _TEXT(f"a name in {name}", key)
            yield from check(f"{name}.{key}", item)

    return faults


def _object(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    def faults(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, dict):
            yield _fault(name, value, "no object")
            return
        for key, check in required.items():
            inner = f"{name}.{key}" if name else key
            if key in value:
                yield from check(inner, value[key])
            else:
                yield f"{inner} is missing"
        for key, check in (optional or {}).items():
            if key in value:
                yield from check(f"{name}.{key}" if name else key, value[key])

    return faults


_STRING = _check(lambda value: isinstance(value, str), "no text")
"""For file names, which may not be UTF-8."""
_TEXT = _check(lambda value: isinstance(value, str) and is_utf8(value), "no text")
_SCALAR = _check(lambda value: isinstance(value, str | int), "neither text nor number")
_COUNT = _whole(0, _MOST)
_TIME = _whole(_FIRST_MS, _LAST_MS)
_ANY_TIME = _or_null(_whole(-_MOST, _MOST))
_MOMENT = _check(lambda value: datetime.fromisoformat(value).timestamp() or True, "no ISO 8601")
_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]*")
_VERDICT = _object(
    {
        "verdict": _TEXT,
        "start_ms": _TIME,
        "end_ms": _TIME,
        "groups": _map_of(_COUNT),
        "findings": _map_of(_map_of(_COUNT)),
    },
    {"night_ms": _TIME, "logged_ms": _TIME},
)


def _stretch(name: str, value: Any) -> Iterator[str]:
    """Check an audit's record of one or all clusters, including that its times are in order."""
    faults = list(_VERDICT(name, value))
    yield from faults
    if not faults and value["end_ms"] < value["start_ms"]:
        yield f"{name}.end_ms {value['end_ms']} is before start_ms {value['start_ms']}"


def _audit(name: str, value: Any) -> Iterator[str]:
    yield from _stretch(name, value)
    yield from _object({"clusters": _map_of(_stretch)}, {"only": _map_of(_SCALAR)})(name, value)


def _outputs(name: str, value: Any) -> Iterator[str]:
    """Check the tables, each of which is named after a folder directly next to the record."""
    yield from _map_of(_object({"rows": _COUNT, "digest": _TEXT}))(name, value)
    for table in value if isinstance(value, dict) else ():
        if not _TABLE_NAME.fullmatch(table):
            yield _fault(f"a table in {name}", table, "not the name of a table")


_FIELDS: Mapping[str, Check] = {
    "job": _TEXT,
    "status": _check((STATUS_OK, STATUS_FAILED).__contains__, "neither OK nor FAILED"),
    "library_version": _TEXT,
    "contract_version": _whole(0, 2**31 - 1),
    "run_id": _or_null(_check(_RUN_ID.fullmatch, "not hexadecimal")),
    "exit_code": _whole(0, 255),
    "started_at": _MOMENT,
    "clusters": _list_of(_TEXT),
    "period_from_ms": _ANY_TIME,
    "period_to_ms": _ANY_TIME,
    "config": _object({}, {"limits": _object({}, {"max_queue_nums": _COUNT})}),
    "inputs": _list_of(_object({"table": _STRING, "path": _STRING})),
    "outputs": _outputs,
    "files": _list_of(
        _object(
            {"name": _STRING, "kind": _STRING, "understood": _COUNT},
            {"status": _STRING, "reason": _STRING},
        )
    ),
    "audit": _or_null(_audit),
    "error": _or_null(_STRING),
}
_RECORD = _object({name: _FIELDS[name] for name in sorted(_OF_OURS)}, _FIELDS)


_LISTED = 5  # tables in a message


def refuse_changed(folder: Folder, tables: Iterable[str]) -> None:
    """Refuse tables that are about to be read but do not match the folder's record.

    A folder with neither a record nor a lock was made by hand and is read as it is.

    Args:
        folder: The folder that contains the tables by name.
        tables: The tables that are read if they exist.

    Raises:
        InputRefused: The run failed, died or is still running; its record is damaged or of another
            version; or a table is missing or its row count differs from the record's.
    """
    try:
        record = find_run(folder)
        if record is None:
            _refuse_torn(folder)
            refuse_unfinished(folder, None)
            return
    except OSError as error:
        raise refusal(error, f"{folder.url} cannot be read", InputRefused) from error
    refuse_unreadable(record, folder.url, CONTRACT_VERSION)
    counted_rows(folder, record, tables)


def _refuse_torn(folder: Folder) -> None:
    """Raise `DamagedRecord` if the file is a truncated copy of a valid record."""
    try:
        text = (folder / RUN_NAME).read_text()
        record = None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedRecord(f"{folder.url}/{RUN_NAME} is not JSON ({error})") from error
    if isinstance(record, dict) and record.keys() & _OF_OURS:
        missing = ", ".join(sorted(_OF_OURS - record.keys()))
        raise DamagedRecord(f"{folder.url}/{RUN_NAME} is damaged: {missing} is missing")


def counted_rows(folder: Folder, record: StoredRun, tables: Iterable[str]) -> dict[str, int]:
    """Count the rows of the tables that the record lists, from the footers of their files.

    Raises:
        InputRefused: A table is missing, or its row count differs from the record's.
        StoreFailed: The store does not answer.
    """
    recorded = record.get("outputs", {})
    rows: dict[str, int] = {}
    wrong: list[str] = []
    for name in tables:
        if name not in recorded:
            continue
        expected, counted = recorded[name]["rows"], _rows_of(folder, name)
        if counted is None:
            wrong.append(f"{name} is missing; {expected:,} rows are recorded")
        elif counted != expected:
            wrong.append(f"{name} has {counted:,} rows; {expected:,} are recorded")
        else:
            rows[name] = counted
    if wrong:
        more = f" and {len(wrong) - _LISTED} more" if len(wrong) > _LISTED else ""
        raise InputRefused(
            f"{folder.url}: its tables are not as the run wrote them ({RUN_NAME}): "
            f"{'; '.join(wrong[:_LISTED])}{more}; copy the folder again, run the job again, or "
            "put tables that you changed into a separate folder"
        )
    return rows


def _rows_of(folder: Folder, table: str) -> int | None:
    from pyarrow import ArrowException

    try:
        rows = (folder / table).parquet_rows()
    except OSError as error:
        raise refusal(error, f"{folder.url}/{table} cannot be read", InputRefused) from error
    except ArrowException as error:
        raise InputRefused(f"{folder.url}/{table} cannot be read: {error}") from error
    return None if rows is None else int(rows)
