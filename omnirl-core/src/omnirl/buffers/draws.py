"""Random numbers of a batch: a pure function of the clock's seed and the learner's rank.

A generator of numpy that serves one batch costs more to seed than to draw from. The output of an extendable hash
function over the key is as random, needs no generator, and is the same on every machine.
"""

from __future__ import annotations

import hashlib

import numpy as np

from omnirl.api.data import Array


def uniform_draws(seed: int, rank: int, count: int) -> Array:
    """``count`` independent numbers in [0, 1), float64 with 53 random bits each: SHAKE-128 (FIPS 202) over the text
    ``"<seed>/<rank>"``, eight bytes a number, the first the least significant."""
    digest = hashlib.shake_128(f"{seed}/{rank}".encode()).digest(8 * count)
    bits = np.frombuffer(digest, "<u8") >> np.uint64(11)
    draws: Array = bits * 2.0**-53
    return draws
