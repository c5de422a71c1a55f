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


ROW_TILES_8BIT = (16.0, 64.0, 128.0, 256.0)
"""Row tiles that kernels of 8-bit products are built for: a definition of their shapes, like the order of a norm. The
smallest that holds the rows is used; of the last as many as it takes."""


def tiled_rows(rows: Quantity) -> Quantity:
    """Rows that an 8-bit product works on, whole tiles; up to the smallest tile, the rows themselves.

    >>> [float(tiled_rows(rows)) for rows in (5.0, 17.0, 70.0, 130.0, 300.0)]
    [5.0, 64.0, 128.0, 256.0, 512.0]
    """
    smallest, small, middle, largest = ROW_TILES_8BIT
    whole = np.where(rows <= small, small, np.where(rows <= middle, middle, np.ceil(rows / largest) * largest))
    return np.where(rows <= smallest, rows, whole)


def mean_tiled_rows(rows: Quantity) -> Quantity:
    """The same where the number of rows varies by a sixth to either side from step to step.

    What a search over steady states wants: the mean, not the luck of one number.

    >>> 300.0 < float(mean_tiled_rows(300.0)) < 512.0
    True
    """
    around = np.linspace(5.0 / 6.0, 7.0 / 6.0, 9)
    spread = np.asarray(rows)[..., None] * around
    mean: NDArray[np.float64] = np.asarray(tiled_rows(spread)).mean(axis=-1)
    return mean


def partial_tile_factor(rows: Quantity, worked: Quantity, slowdown: Quantity, read_slowdown: Quantity) -> Quantity:
    """How much longer a product takes because its last tile of rows is partly empty.

        up to 128 rows   1 + σ_r·(worked − rows)/worked                            one tile; the weights' bytes decide
        beyond           1 + σ·(worked − rows)/worked · √(worked/256)              the last of several tiles

    A partly empty tile costs more than a full one: 320 rows take longer than 512. Measured on products alone, where the
    loss fades with the root of the number of tiles.

    >>> float(partial_tile_factor(768.0, 1024.0, 1.0, 0.4)), float(partial_tile_factor(512.0, 512.0, 1.0, 0.4))
    (1.5, 1.0)
    """
    tiles = np.maximum(worked / ROW_TILES_8BIT[-1], 1.0)
    share = np.where(rows <= ROW_TILES_8BIT[-2], read_slowdown, slowdown * np.sqrt(tiles))
    factor: Quantity = 1.0 + share * (worked - rows) / worked
    return factor
