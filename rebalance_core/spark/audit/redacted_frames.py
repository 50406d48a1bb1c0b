"""Tables without client ids: the same names as `rebalance_core.audit.redact` gives."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from rebalance_core.audit.redact import (
    CLIENT_COLUMNS,
    HIDDEN,
    PLACE_COLUMNS,
    PLACES_OF_CLIENTS,
)
from rebalance_core.contracts.table import ISSUES_TYPE


def redacted(frame: DataFrame, prefix: str, digits: int, salt: str) -> DataFrame:
    """The frame with names for client ids, no connections, and no text of rejected rows."""

    def hidden(name: str) -> Column:
        column = sf.col(name)
        if name in CLIENT_COLUMNS:
            digest = sf.sha2(sf.concat(sf.lit(salt), column), 256)
            return sf.concat(sf.lit(prefix), sf.substring(digest, 1, digits))
        if name in PLACE_COLUMNS:
            return sf.lit(None).cast("STRING")
        if name == "raw":
            return sf.lit(HIDDEN)
        if name == "source":
            return sf.regexp_replace(column, PLACES_OF_CLIENTS, HIDDEN)
        if name == "issues":
            codes = sf.transform(
                column,
                lambda one: sf.struct(one["code"].alias("code"), sf.lit(HIDDEN).alias("message")),
            )
            return codes.cast(ISSUES_TYPE)
        return column

    return frame.select(*(hidden(name).alias(name) for name in frame.columns))
