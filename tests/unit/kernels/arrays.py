"""Arrays that Hypothesis draws or tests spell out."""

import numpy as np

from rebalance_core.kernels.segments import Ints


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def bools(text: str) -> np.ndarray:
    """``"10"``: True, False."""
    return np.array([c == "1" for c in text], np.bool_)
