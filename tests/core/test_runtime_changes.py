"""What a resumed run is told otherwise: found by key, and told only where a checkpoint does not fit."""

from __future__ import annotations

import pytest

from omnirl.api.errors import CheckpointError
from omnirl.runtime.changes import MISFIT, Changes, explained

BEFORE = {
    "runner": {"max_updates": 5},
    "modules": {"learner": {"lr": 0.1}, "network": {"hidden_sizes": [64, 64]}},
    "env": {"id": "a", "wrappers": [], "kwargs": {"size": 3}},
}


def now(**sections: object) -> dict[str, object]:
    return {**BEFORE, **sections}


def test_only_what_differs_is_named() -> None:
    assert Changes.between(BEFORE, now(runner={"max_updates": 9})) == Changes()
    changed = Changes.between(
        BEFORE,
        now(
            modules={"learner": {"lr": 0.1}, "network": {"hidden_sizes": (64, 32), "later": "a newer key"}},
            env={"id": "a", "wrappers": ["flatten", "x" * 80], "kwargs": {"width": 2}},
        ),
    )
    assert changed.modules == ("modules.network.hidden_sizes was [64, 64], is [64, 32]",)
    assert changed.env == (
        f'env.wrappers was [], is ["flatten", "{44 * "x"}...',
        "env.kwargs.size was 3, is null",
        "env.kwargs.width was null, is 2",
    )


def test_other_seeds_are_named() -> None:
    assert Changes.between({**BEFORE, "seed": 3}, now(seed=3)) == Changes()
    assert Changes.between({**BEFORE, "seed": 3}, now(seed=4)).seed == ("seed was 3, is 4",)


@pytest.mark.parametrize("line", [f"{MISFIT}: KeyError: 'w'", "run/checkpoint.ckpt: damaged"])
@pytest.mark.parametrize("modules", [(), ("modules.a was 1, is 2",)])
def test_a_misfit_is_told_with_the_changes(line: str, modules: tuple[str, ...]) -> None:
    with pytest.raises(CheckpointError) as caught, explained(Changes(modules, ("env.b was 1, is 2",))):
        raise CheckpointError(line)
    if not modules or not line.startswith(MISFIT):
        assert caught.value.lines == (line,)
        return
    (told,) = caught.value.lines
    assert told == (
        f"{MISFIT}, which was changed since it was written: modules.a was 1, is 2: resume with the values that it was "
        "written with, or train anew in another --run-dir (KeyError: 'w')"
    )
