"""NumPy's PCG64 and its normal numbers inside compiled code: the same stream, without the calls.

A stream is four 64-bit words: the high and the low half of the state, and of the increment. PCG64 is the
XSL-RR generator of O'Neill (HMC-CS-2014-0905); normals are the ziggurat of `Generator.standard_normal`, with
the tables that numba ships for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types as numba_types
from numba.extending import intrinsic
from numba.np.random._constants import fi_double, ki_double, wi_double, ziggurat_nor_inv_r, ziggurat_nor_r

from saver._jit import config, inlined, loop
from saver.kernels.forms import COIN, NORMAL
from saver.kernels.keeping import COUNT, MEAN, SQUARES
from saver.problem.moments import moment_step

types: Any = numba_types
HIGH, LOW, INCREMENT_HIGH, INCREMENT_LOW = range(4)
MULTIPLIER_HIGH, MULTIPLIER_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
MASK = (1 << 64) - 1
LAYERS = np.column_stack([wi_double, ki_double.astype(np.float64), fi_double])  # one line for each layer
EDGE, INVERSE_EDGE = float(ziggurat_nor_r), float(ziggurat_nor_inv_r)
UNIT = 1.0 / 9007199254740992.0


def stream(seed: np.random.SeedSequence) -> Any:
    """The stream of `numpy.random.default_rng(seed)`, [4]."""
    inner: Any = np.random.PCG64(seed).state["state"]
    words = (inner["state"] >> 64, inner["state"] & MASK, inner["inc"] >> 64, inner["inc"] & MASK)
    return np.array(words, dtype=np.uint64)


@intrinsic
def _wide_product(typing: Any, a: Any, b: Any) -> Any:
    """The high and the low half of a product of two 64-bit words."""
    word: Any = types.uint64
    signature = types.Tuple([word, word])(word, word)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        narrow, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        halves = builder.lshr(product, wide(64)), product
        parts = [builder.trunc(half, narrow) for half in halves]
        return context.make_tuple(builder, signature.return_type, parts)

    return signature, generate


def _plain_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The same without a compiler: NUMBA_DISABLE_JIT=1 runs the whole loop in plain Python."""
    product = int(a) * int(b)
    return np.uint64(product >> 64), np.uint64(product & MASK)


wide_product: Any = _plain_product if config.DISABLE_JIT else _wide_product


@inlined
def word(s: Any) -> Any:
    """The next 64 bits: state = state * multiplier + increment (128 bits), then XSL-RR."""
    high, low = wide_product(s[LOW], MULTIPLIER_LOW)
    high = high + s[HIGH] * MULTIPLIER_LOW + s[LOW] * MULTIPLIER_HIGH
    low = low + s[INCREMENT_LOW]
    high = high + s[INCREMENT_HIGH] + np.uint64(low < s[INCREMENT_LOW])
    s[HIGH], s[LOW] = high, low
    mixed, turn = high ^ low, high >> np.uint64(58)
    return (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))


@inlined
def uniform(s: Any) -> Any:
    """`Generator.random`."""
    return float(np.int64(word(s) >> np.uint64(11))) * UNIT


@inlined
def normal(s: Any) -> Any:
    """`Generator.standard_normal`."""
    r, layer, x, usual = first_guess(s)
    return x if usual else rare(s, r, layer, x)


@inlined
def first_guess(s: Any) -> Any:
    """A number, what it was made of, and whether it may stand."""
    r = word(s)
    layer = np.int64(r & np.uint64(0xFF))
    size = float(np.int64((r >> np.uint64(9)) & np.uint64(0xFFFFFFFFFFFFF)))
    x = size * LAYERS[layer, 0]
    return r, layer, -x if r & np.uint64(0x100) else x, size < LAYERS[layer, 1]


@loop
def rare(s: Any, r: Any, layer: Any, x: float) -> Any:
    """The one case in a hundred in which a normal number needs more draws."""
    while True:
        if layer == 0:
            while True:
                xx = -INVERSE_EDGE * np.log1p(-uniform(s))
                yy = -np.log1p(-uniform(s))
                if yy + yy > xx * xx:
                    return -(EDGE + xx) if (r >> np.uint64(17)) & np.uint64(1) else EDGE + xx
        f = LAYERS[layer, 2]
        if (LAYERS[layer - 1, 2] - f) * uniform(s) + f < np.exp(-0.5 * x * x):
            return x
        r, layer, x, usual = first_guess(s)
        if usual:
            return x


welford = inlined(moment_step)


@inlined
def draw(stream: Any, kind: int, where: float, scale: float, data: Any) -> Any:
    """One observation, as `Law.sample` makes it."""
    if kind == NORMAL:
        return where + scale * normal(stream)
    if kind == COIN:
        return 1.0 if uniform(stream) < where else 0.0
    return data[int(where) + int(uniform(stream) * scale)]


@inlined
def take(seen: Any, p: int, r: float) -> None:
    """A reward of one pair enters the statistics, as in `Moments.add`."""
    T = seen[p, COUNT] + 1.0
    seen[p, COUNT] = T
    seen[p, MEAN], seen[p, SQUARES] = welford(T, seen[p, MEAN], seen[p, SQUARES], r)


@inlined
def choose(stream: Any, chance: Any, first: int, last: int) -> Any:
    """One of the options first..last-1, drawn only where there are several."""
    if last - first == 1:
        return first
    u, reached = uniform(stream), 0.0
    for e in range(first, last):
        reached += chance[e]
        if reached > u:
            return e
    return last - 1


@inlined
def act(policy: Any, row: int, u: float) -> Any:
    """The action that the uniform number u picks from a row of probabilities."""
    reached, last = 0.0, 0
    for a in range(policy.shape[1]):
        reached += policy[row, a]
        if policy[row, a] > 0.0:
            last = a
        if reached > u:
            return a
    return last
