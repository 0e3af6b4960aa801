"""Schedules: values by hand, mistakes in words, and K28: a function of the clock goes on where a run goes on."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from omnirl.api import ActContext, Clock, Schedule, extremes, value_at
from omnirl.config import models
from omnirl.config.files import load_text

ADAPTER = TypeAdapter(Schedule)


def schedule(text):
    """A schedule as a file says it."""
    return ADAPTER.validate_python(load_text(f"value: {text}", "file.yaml").data["value"])


def clock(progress=0.0, env_steps=0):
    return SimpleNamespace(progress=progress, env_steps=env_steps)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3e-4", {0.0: 3e-4, 0.5: 3e-4, 1.0: 3e-4}),
        ("7", {0.0: 7.0, 1.0: 7.0}),
        ("{kind: constant, value: 2}", {0.0: 2.0, 1.0: 2.0}),
        ("{kind: linear, start: 1, end: 0}", {0.0: 1.0, 0.25: 0.75, 0.5: 0.5, 1.0: 0.0}),
        ("{kind: linear, start: 1, end: 3, after: 0.5}", {0.0: 1.0, 0.5: 1.0, 0.75: 2.0, 1.0: 3.0}),
        ("{kind: linear, start: 1, end: 0.04, until: 0.16}", {0.0: 1.0, 0.08: 0.52, 0.16: 0.04, 0.9: 0.04}),
        ("{kind: linear, start: 0, end: 8, after: 0.25, until: 0.75}", {0.2: 0.0, 0.5: 4.0, 0.8: 8.0}),
        ("{kind: exponential, start: 1, end: 0.01}", {0.0: 1.0, 0.5: 0.1, 1.0: 0.01}),
        (
            "{kind: exponential, start: -1, end: -16, until: 0.5}",
            {0.0: -1.0, 0.25: -4.0, 0.5: -16.0, 1.0: -16.0},
        ),
        (
            "{kind: piecewise, points: [[0.2, 1], [0.4, 3], [1, 0]]}",
            {0.0: 1.0, 0.2: 1.0, 0.3: 2.0, 0.4: 3.0, 0.7: 1.5, 1.0: 0.0},
        ),
        ("{kind: piecewise, points: [[0.5, 4]]}", {0.0: 4.0, 0.5: 4.0, 1.0: 4.0}),
    ],
)
def test_values_over_the_run(text, values):
    found = schedule(text)
    for progress, value in values.items():
        assert value_at(found, clock(progress)) == pytest.approx(value, rel=1e-12, abs=1e-15)
        assert value_at(found, clock(progress, env_steps=10**9)) == value_at(found, clock(progress))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "{kind: linear, start: 1, end: 0.05, steps: 10000}",
            {0: 1.0, 4000: 0.62, 5000: 0.525, 10_000: 0.05, 10**9: 0.05},
        ),
        (
            "{kind: exponential, start: 1, end: 0.0001, steps: 400}",
            {0: 1.0, 100: 0.1, 300: 0.001, 800: 0.0001},
        ),
        (
            "{kind: piecewise, steps: [[0, 1], [10000, 0.1], [50000, 0.01]]}",
            {0: 1.0, 5000: 0.55, 10_000: 0.1, 30_000: 0.055, 50_000: 0.01, 10**9: 0.01},
        ),
        ("{kind: piecewise, steps: [[100, 2], [200, 4]]}", {0: 2.0, 100: 2.0, 150: 3.0, 200: 4.0}),
    ],
)
def test_values_over_environment_steps(text, values):
    found = schedule(text)
    for steps, value in values.items():
        assert value_at(found, clock(env_steps=steps)) == pytest.approx(value, rel=1e-12)
        assert value_at(found, clock(1.0, steps)) == value_at(found, clock(0.0, steps))


EVERY_KIND = [
    "0.5",
    "{kind: linear, start: 1, end: 0.3, after: 0.1, until: 0.7}",
    "{kind: linear, start: 1, end: 0.05, steps: 1000}",
    "{kind: exponential, start: 1, end: 0.003}",
    "{kind: exponential, start: 1, end: 0.003, steps: 1000}",
    "{kind: piecewise, points: [[0, 1], [0.3, 0.2], [1, 0]]}",
    "{kind: piecewise, steps: [[0, 1], [300, 0.2], [1000, 0]]}",
]


@pytest.mark.parametrize("text", EVERY_KIND)
def test_k28_the_value_depends_on_the_moment_alone(text):
    """So a run that goes on at a step, in another process, from its written configuration, has the same values."""
    moments = [clock(step / 1000, step) for step in range(0, 1001, 37)]
    whole = [value_at(schedule(text), moment) for moment in moments]
    used = schedule(text)
    backwards = [value_at(used, moment) for moment in reversed(moments)][::-1]
    resumed = pickle.loads(pickle.dumps(used))  # as a worker gets it
    rewritten = ADAPTER.validate_python(models.plain(used))  # as run_config.yaml has it
    assert backwards == whole
    assert [value_at(resumed, moment) for moment in moments] == whole
    assert [value_at(rewritten, moment) for moment in moments] == whole
    assert rewritten == used


@pytest.mark.parametrize("text", EVERY_KIND)
def test_learners_and_samplers_ask_with_their_own_clocks(text):
    """``Clock`` and ``ActContext`` of one moment give one value."""
    learner = Clock(update=3, env_steps=420, progress=0.42, seed=9)
    sampler = ActContext(np.random.default_rng(0), 420, 0.42, np.zeros(1, np.bool_))
    assert value_at(schedule(text), learner) == value_at(schedule(text), sampler)


@pytest.mark.parametrize(
    ("text", "least", "greatest"),
    [
        ("3", 3.0, 3.0),
        ("{kind: linear, start: 1, end: -2}", -2.0, 1.0),
        ("{kind: exponential, start: 0.1, end: 5}", 0.1, 5.0),
        ("{kind: piecewise, points: [[0, 1], [0.5, 7], [1, 2]]}", 1.0, 7.0),
        ("{kind: piecewise, steps: [[0, 1], [5, -7]]}", -7.0, 1.0),
    ],
)
def test_extremes_bound_every_value(text, least, greatest):
    found = schedule(text)
    assert extremes(found) == (least, greatest)
    values = [value_at(found, clock(step / 100, step)) for step in range(101)]
    assert least <= min(values)
    assert max(values) <= greatest


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{kind: linear, start: 1}", "Field required"),
        ("{kind: linear, start: 1, end: 0, until: 1.5}", "less than or equal to 1"),
        (
            "{kind: linear, start: 1, end: 0, after: 0.5, until: 0.5}",
            "until (0.5) must be greater than after (0.5)",
        ),
        ("{kind: linear, start: 1, end: 0, after: 0.5, steps: 10}", "give either steps, or after and until"),
        ("{kind: linear, start: 1, end: 0, steps: 0}", "greater than or equal to 1"),
        ("{kind: linear, start: 1, end: 0, step: 10}", "Extra inputs are not permitted"),
        ("{kind: exponential, start: 1, end: 0}", "must have the same sign and not be 0"),
        ("{kind: exponential, start: 1, end: -1}", "must have the same sign and not be 0"),
        ("{kind: piecewise}", "give either points, of fractions of the run, or steps, of environment steps"),
        ("{kind: piecewise, points: [[0, 1]], steps: [[0, 1]]}", "give either points"),
        ("{kind: piecewise, points: []}", "at least 1 item"),
        ("{kind: piecewise, points: [[0, 1], [0, 2]]}", "the fractions of the points must rise"),
        ("{kind: piecewise, points: [[0, 1], [1.5, 2]]}", "less than or equal to 1"),
        ("{kind: piecewise, steps: [[10, 1], [5, 2]]}", "the numbers of the steps must rise"),
        ("{kind: piecewise, steps: [[0.5, 1]]}", "valid integer"),
        ("{kind: piecewise, steps: [[-1, 1]]}", "greater than or equal to 0"),
        ("{kind: cosine, start: 1, end: 0}", "'cosine' found using 'kind'"),
        ("{start: 1, end: 0}", "Unable to extract tag"),
        ("true", "Input should be"),
        ("fast", "Input should be"),
        (".inf", "finite number"),
    ],
)
def test_mistakes(text, told):
    with pytest.raises(ValidationError) as caught:
        schedule(text)
    assert told in str(caught.value)
