"""What may stand in the list ``env.metrics``: figures of an evaluation episode that the environment tells in ``info``.

==============  ============================================================  ==================
entry           figure of an episode                                          column of log.csv
==============  ============================================================  ==================
``speed``       the last value of ``info["speed"]``                           eval_speed
``sum:speed``   the sum over the steps that tell it                           eval_speed_sum
``mean:speed``  the mean over the steps that tell it                          eval_speed_mean
``a.b``         the last value of ``info["a"]["b"]``                          eval_a.b
``success``     whether ``info["is_success"]``, or else ``info["success"]``,  eval_success
                was true at the last step that tells it
==============  ============================================================  ==================

The log holds the mean over the episodes of an evaluation. Needs no Gymnasium, as all of the configuration.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnirl.api.specs import EnvSpec

SUCCESS = "success"
_WAYS = ("last", "sum", "mean")


@dataclass(frozen=True)
class Metric:
    """One entry. keys: where the value stands in ``info``, the first that is there; way: last, sum or mean."""

    text: str
    column: str
    keys: tuple[str, ...]
    way: str


def parse(text: str) -> Metric:
    """An entry of the list. Raises ValueError."""
    way, colon, key = text.rpartition(":")
    if not colon:
        way = "last"
    if way not in _WAYS[1:] and colon:
        raise ValueError(f"{text!r}: {way!r} is neither sum nor mean")
    if not key or any(character.isspace() or character in ",\"'" for character in key):
        raise ValueError(f"{text!r} is not the name of an entry of info, such as success or sum:speed")
    keys = ("is_success", SUCCESS) if key == SUCCESS else (key,)
    return Metric(text, key if way == "last" else f"{key}_{way}", keys, way)


def check(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The entries, unchanged. Raises ValueError where two have one column, or one has that of another figure."""
    taken = dict.fromkeys(EnvSpec.eval_metrics, "a figure of every evaluation")
    for text in texts:
        column = parse(text).column
        if column in taken:
            raise ValueError(f"{text!r} would be the column eval_{column}, which is {taken[column]}")
        taken[column] = f"that of {text!r}"
    return texts
