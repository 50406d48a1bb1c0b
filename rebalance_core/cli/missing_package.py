"""A package that is not installed: the wheel brings none, so that it replaces none on a cluster."""

_EXTRAS = {
    "numpy": "process",
    "pyarrow": "process",
    "pandas": "spark",
    "py4j": "spark",
    "pyspark": "spark",
    "jinja2": "report",
    "matplotlib": "plots",
}
"""The extra of `pyproject.toml` that brings it."""


def missing_package(error: BaseException) -> str | None:
    """What to install; None if the error is another one.

    >>> missing_package(ModuleNotFoundError("No module named 'numpy'", name="numpy"))
    "numpy is not installed here: pip install 'rebalance-core[process]'"
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return None
    return f"{package} is not installed here: pip install 'rebalance-core[{extra}]'"
