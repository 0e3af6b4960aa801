"""The preprocessing of Atari games: Gymnasium's own for the picture and the no-op start, ours for lives and FIRE.

Source of the protocol: Mnih et al. 2015 (Nature 518), Methods; Machado et al. 2018 (arXiv:1709.06009).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import seeding
from gymnasium.wrappers import AtariPreprocessing, StickyAction

from omnirl.envs.gymnasium.wrapper_config import Atari

_FIRE = 1


def is_atari(entry_point: Any) -> bool:
    """Whether an environment registered with ``entry_point`` is one of ale_py's games."""
    return isinstance(entry_point, str) and entry_point.startswith("ale_py.")


def arguments(parameters: Atari) -> dict[str, Any]:
    """What the game is built with: no picture that nobody looks at, and neither frame skip nor sticky actions, which
    are added outside."""
    return {
        "frameskip": 1,
        "obs_type": "grayscale" if parameters.grey else "rgb",
        "repeat_action_probability": 0.0,
    }


def stickiness(kwargs: Mapping[str, Any], spec: EnvSpec | None) -> float:
    """How often a game whose ``env.kwargs`` are ``kwargs`` repeats an action: as registered, unless they say so."""
    if spec is None or not is_atari(spec.entry_point):
        return 0.0
    registered = gymnasium.spec(spec.id).kwargs
    return float(kwargs.get("repeat_action_probability", registered.get("repeat_action_probability", 0.25)))


def preprocess(
    env: gymnasium.Env[Any, Any], parameters: Atari, stickiness: float, training: bool
) -> gymnasium.Env[Any, Any]:
    """``env`` as agents are trained on it, or, where not ``training``, with whole games as episodes.

    stickiness: the probability that a frame repeats the action of the frame before.
    """
    env = Game(env)
    if stickiness:
        env = StickyAction(env, stickiness)
    env = AtariPreprocessing(
        env,
        noop_max=parameters.noop_max,
        frame_skip=parameters.frame_skip,
        screen_size=parameters.screen_size,
        grayscale_obs=parameters.grey,
    )
    return Lives(env, end_episode=training and parameters.life_loss, fire=parameters.fire)


class Game(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Begins a game from a seed without loading it again, which takes 100 ms: as long as a short game.

    The emulator itself draws no random numbers here, so a game is the same from the same start; the seed decides the
    no-op actions and the sticky ones. Every game begins from one saved state, because a few games (Freeway, Tennis)
    remember something through a plain reset.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._start: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a game."""
        emulator = self.unwrapped.ale  # type: ignore[attr-defined]
        if self._start is None:
            self.env.reset(seed=0)
            self._start = emulator.cloneState()
        if seed is not None:
            self.unwrapped.np_random, _ = seeding.np_random(seed)
        emulator.restoreState(self._start)
        return self.env.reset(options=options)


class Lives(gymnasium.Wrapper[Any, Any, Any, Any]):
    """What a lost life means: the end of an episode (``end_episode``), and that FIRE is to be pressed (``fire``).

    After such an end ``reset`` does not begin a new game: the game goes on where it stands, and ``continues`` says so
    until then. FIRE is pressed at each life's beginning, in evaluation too: a policy trained with it was never
    taught to.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, end_episode: bool, fire: bool) -> None:
        super().__init__(env)
        meanings = env.unwrapped.get_action_meanings()  # type: ignore[attr-defined]
        self._end_episode = end_episode
        self._fire = fire and len(meanings) > _FIRE and meanings[_FIRE] == "FIRE"
        self._lives = 0
        self.continues = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a game from ``seed``, or a further life of the game that goes on."""
        if self.continues:
            self.continues = False
            # Without a frame there would be nothing to see of the new life.
            observation, _, terminated, truncated, info = self.env.step(_FIRE if self._fire else 0)
            self._lives = info["lives"]
            if not (terminated or truncated):
                return observation, info
        observation, info = self.env.reset(seed=seed, options=options)
        if self._fire:
            observation, _, terminated, truncated, info = self.env.step(_FIRE)
            if terminated or truncated:
                observation, info = self.env.reset(seed=seed, options=options)
        self._lives = info["lives"]
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step of the agent."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        # Some games show no lives for a few frames before they are over.
        lost = 0 < info["lives"] < self._lives
        self._lives = info["lives"]
        if lost and not (terminated or truncated):
            if self._end_episode:
                self.continues = terminated = True
            elif self._fire:
                observation, more, terminated, truncated, info = self.env.step(_FIRE)
                reward = float(reward) + float(more)
                self._lives = info["lives"]
        return observation, reward, terminated, truncated, info
