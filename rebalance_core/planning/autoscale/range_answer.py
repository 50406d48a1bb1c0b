"""Parses answers from Prometheus's /api/v1/query_range into checked series of samples."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.times import SECOND_MS, YEAR_2000_MS, YEAR_2201_MS, utc
from rebalance_core.planning.autoscale.hpa import Floats

NAME = "__name__"
_EXPORTED = "exported_"
"""The prefix that Prometheus adds to a target's label if its own configuration sets the same
label.
"""
_SHOWN = 200  # characters shown of a Prometheus error


@dataclass(frozen=True, eq=False)
class Series:
    """A series from one or more answers.

    Attributes:
        name: the name of the metric.
        labels: its labels without the name; labels renamed by Prometheus have their original names.
        files: the files that contain its samples.
        at_ms: (samples,) epoch ms, ascending.
        value: (samples,) finite values.
        step_ms: (samples,) the step of the answer that has the sample.
    """

    name: str
    labels: Mapping[str, str]
    files: tuple[str, ...]
    at_ms: Ints
    value: Floats
    step_ms: Ints

    @property
    def place(self) -> str:
        """The files and the series, described for error messages."""
        return f"{', '.join(self.files)}: {_text(self.name, self.labels)}"

    @property
    def apart(self) -> Bools:
        """(samples - 1,) whether samples are missing in between."""
        return np.asarray(np.diff(self.at_ms) > np.maximum(self.step_ms[:-1], self.step_ms[1:]))


@dataclass(frozen=True, eq=False)
class Answer:
    """A file that holds the answer to a range query.

    Attributes:
        series: the series of the wanted metrics.
        others: the names of other metrics.
        warnings: warnings from Prometheus, e.g. that the answer is partial.
    """

    series: tuple[Series, ...]
    others: frozenset[str]
    warnings: tuple[str, ...]


def parse_answer(text: str | bytes, file: str, wanted: Collection[str]) -> Answer:
    """Return the series of the wanted metrics.

    A sample without a finite value counts as missing. The step is the shortest time between
    samples.

    Args:
        text: the body of the HTTP answer.
        file: its name, for messages.
        wanted: names of metrics.

    Raises:
        InputRefused: the text is not a range answer, a series lacks a name, a sample is not a pair
            of a Unix time in seconds and a number, or times do not ascend. The message states the
            position.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputRefused(f"{file} is not JSON: {error}") from error
    if not isinstance(answer, Mapping) or "status" not in answer:
        raise InputRefused(
            f"{file} is not an answer from Prometheus: expected the JSON of /api/v1/query_range"
        )
    if answer["status"] != "success":
        reason = f"{answer.get('errorType', 'error')}: {answer.get('error', 'no reason')}"
        raise InputRefused(f"{file}: Prometheus refused the query: {reason[:_SHOWN]}")
    data = answer.get("data")
    kind = data.get("resultType") if isinstance(data, Mapping) else None
    results = data.get("result") if isinstance(data, Mapping) else None
    if kind != "matrix" or not isinstance(results, list):
        raise InputRefused(
            f"{file}: the answer is a {kind or 'text'}; expected the matrix of /api/v1/query_range"
        )
    made, others = list[tuple[str, dict[str, str], Ints, Floats]](), set[str]()
    for number, result in enumerate(results, 1):
        name, labels = _labels(result, f"{file}: series {number}")
        if name in wanted:
            made.append((name, labels, *_samples(result, f"{file}: {_text(name, labels)}")))
        else:
            others.add(name)
    steps = [int(np.diff(at_ms).min()) for _, _, at_ms, _ in made if len(at_ms) > 1]
    step_ms = min(steps, default=0)
    series = []
    for name, labels, at_ms, value in made:
        known = np.isfinite(value)
        if not known.any():
            raise InputRefused(f"{file}: {_text(name, labels)} has no sample with a finite value")
        at_ms, value = at_ms[known], value[known]
        series.append(Series(name, labels, (file,), at_ms, value, np.full_like(at_ms, step_ms)))
    texts = answer.get("warnings")
    warnings = tuple(map(str, texts)) if isinstance(texts, list) else ()
    return Answer(tuple(series), frozenset(others), warnings)


def merged(answers: Iterable[Answer]) -> list[Series]:
    """Merge the samples of each series from all answers.

    Raises:
        InputRefused: two answers have different values of a series at the same time.
    """
    parts: dict[tuple[str, frozenset[tuple[str, str]]], list[Series]] = {}
    for answer in answers:
        for series in answer.series:
            parts.setdefault((series.name, frozenset(series.labels.items())), []).append(series)
    return [of[0] if len(of) == 1 else _joined(of) for of in parts.values()]


def _joined(parts: list[Series]) -> Series:
    at_ms = np.concatenate([each.at_ms for each in parts])
    order = np.argsort(at_ms, kind="stable")
    at_ms = at_ms[order]
    value = np.concatenate([each.value for each in parts])[order]
    step_ms = np.concatenate([each.step_ms for each in parts])[order]
    files = tuple(dict.fromkeys(file for each in parts for file in each.files))
    same = at_ms[1:] == at_ms[:-1]
    first = parts[0]
    for at in np.flatnonzero(same & (value[1:] != value[:-1]))[:1]:
        place = f"{', '.join(files)}: {_text(first.name, first.labels)}"
        raise InputRefused(
            f"{place} has two values at {utc(int(at_ms[at]))}: {value[at]:.10g} and "
            f"{value[at + 1]:.10g}"
        )
    kept = np.append(True, ~same)
    return Series(first.name, first.labels, files, at_ms[kept], value[kept], step_ms[kept])


def _labels(result: object, place: str) -> tuple[str, dict[str, str]]:
    metric = result.get("metric") if isinstance(result, Mapping) else None
    if not isinstance(metric, Mapping) or not all(isinstance(v, str) for v in metric.values()):
        raise InputRefused(f"{place} has no labels: expected an object of strings at metric")
    labels = {str(name): str(value) for name, value in metric.items()}
    name = labels.pop(NAME, None)
    if name is None:
        raise InputRefused(
            f"{place}, {_text('', labels)}, lacks the name of its metric: query the metric itself, "
            "because rate(), sum() and other functions drop it"
        )
    for label in [label for label in labels if label.startswith(_EXPORTED)]:
        labels[label.removeprefix(_EXPORTED)] = labels.pop(label)
    return name, labels


def _samples(result: Mapping[str, Any], place: str) -> tuple[Ints, Floats]:
    """Return times in ms, and values, not all of which need be finite."""
    pairs = result.get("values")
    if not isinstance(pairs, list) or not pairs:
        raise InputRefused(f"{place} has no values; expected pairs of a time and a string")
    try:
        at_s = np.array([at for at, _ in pairs], np.float64)
        value = np.array([float(text) for _, text in pairs])
    except (TypeError, ValueError, OverflowError):
        number, pair = next((n, p) for n, p in enumerate(pairs, 1) if not _is_sample(p))
        raise InputRefused(
            f"{place}: sample {number} is {str(pair)[:_SHOWN]}; expected a Unix time in seconds "
            "and a number as a string"
        ) from None
    in_seconds = (at_s >= YEAR_2000_MS / SECOND_MS) & (at_s < YEAR_2201_MS / SECOND_MS)
    for at in np.flatnonzero(~in_seconds)[:1]:
        raise InputRefused(
            f"{place}: time {at_s[at]:.15g} of sample {at + 1} is not a Unix time in seconds"
        )
    at_ms = np.rint(at_s * SECOND_MS).astype(np.int64)
    for at in np.flatnonzero(np.diff(at_ms) <= 0)[:1]:
        raise InputRefused(
            f"{place}: {utc(int(at_ms[at + 1]))} follows {utc(int(at_ms[at]))}; times must ascend"
        )
    return at_ms, value


def _is_sample(pair: object) -> bool:
    if not isinstance(pair, list) or len(pair) != 2:
        return False
    try:
        return None not in (float(pair[0]), float(pair[1]))
    except (TypeError, ValueError, OverflowError):
        return False


def _text(name: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f"{label}={json.dumps(labels[label])}" for label in sorted(labels))
    return f"{name}{{{inside}}}"
