"""Matrix products and streaming passes: the time of one operator on one device.

Every function takes floats or numpy arrays that broadcast, so the same law serves one deployment, a table over
token counts, and a search over thousands of candidates.
"""

import numpy as np
from numpy.typing import NDArray

Quantity = float | NDArray[np.float64]


def soft_maximum_s(compute_s: Quantity, memory_s: Quantity) -> Quantity:
    """Time of an operator whose arithmetic and memory traffic overlap imperfectly near the ridge point.

        (a⁴ + b⁴)^¼

    The largest of the two far from the ridge, 19 % above it where they are equal. A norm of order 4 keeps the
    law smooth (a fit has a gradient on both sides) and costs two square roots.

    >>> round(float(soft_maximum_s(3.0, 0.0)), 6)
    3.0
    >>> round(float(soft_maximum_s(1.0, 1.0)), 4)
    1.1892
    """
    a = compute_s * compute_s
    b = memory_s * memory_s
    return np.sqrt(np.sqrt(a * a + b * b))


def gemm_flops(rows: Quantity, columns: Quantity, inner: Quantity) -> Quantity:
    """Floating-point operations of a (rows × inner) · (inner × columns) product: 2·M·N·K.

    >>> gemm_flops(1.0, 4.0, 8.0)
    64.0
    """
    return 2.0 * rows * columns * inner


def gemm_bytes(
    rows: Quantity, columns: Quantity, inner: Quantity, weight_bytes: Quantity, activation_bytes: Quantity
) -> Quantity:
    """Bytes a product moves at least: weights once, inputs once, 16-bit outputs once.

    w·N·K + a·M·K + 2·M·N
    """
    return weight_bytes * columns * inner + activation_bytes * rows * inner + 2.0 * rows * columns


def tile_rows(rows: Quantity, tile: Quantity) -> Quantity:
    """Rows an arithmetic unit really works on: rounded up to whole tiles above one tile.

    >>> float(tile_rows(130.0, 128.0)), float(tile_rows(5.0, 128.0))
    (256.0, 5.0)
    """
    return np.where(rows > tile, np.ceil(rows / tile) * tile, rows)
