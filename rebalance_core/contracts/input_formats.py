"""The formats of input tables, by the suffix of their files."""

FORMATS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}


def format_of(name: str) -> str | None:
    """Return the format shown by a file's or folder's name, or None if it shows none.

    >>> format_of("cluster_events.jsonl.gz"), format_of("cluster_events")
    ('json', None)
    """
    plain = name.rstrip("/").removesuffix(".gz")
    return next((kind for suffix, kind in FORMATS.items() if plain.endswith(suffix)), None)


def untold_format(path: str) -> str:
    """Return the message about a table whose name does not reveal its format."""
    return (
        f"the name of {path} does not show its format; name the input format (json, csv, parquet) "
        f"or use a suffix: {', '.join(FORMATS)}"
    )
