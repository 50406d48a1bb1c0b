"""Times and durations as the page shows them."""

from markupsafe import Markup

from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, utc, utc_time


def time_tag(time_ms: int | None) -> Markup:
    """Return a ``<time>`` element that shows seconds and has milliseconds as its machine-readable
    value; "–" for None.
    """
    if time_ms is None:
        return Markup("–")
    if utc_time(time_ms) is None:
        return Markup("<span>{} ms</span>").format(time_ms)
    exact = utc(time_ms, "%Y-%m-%dT%H:%M:%S") + f".{time_ms % SECOND_MS:03d}Z"
    return Markup('<time datetime="{}">{}</time>').format(exact, utc(time_ms))


def duration(span_ms: int) -> str:
    """Return a duration in its two largest units.

    >>> duration(29_400_000), duration(90_000), duration(450)
    ('8 h 10 min', '1 min 30 s', '450 ms')
    """
    units = (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS))
    parts = []
    for name, size in units:
        if span_ms >= size:
            parts.append(f"{span_ms // size:,} {name}")
        elif parts:
            parts.append("")
        span_ms %= size
    return " ".join(part for part in parts[:2] if part) or f"{span_ms} ms"
