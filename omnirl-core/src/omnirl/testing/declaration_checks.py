"""Checks of what an algorithm declares and of the files it writes: parts, keys, pacing, spaces, agent files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import BaseModel

from omnirl.api.algorithm import DataFlow, FlowContext
from omnirl.api.errors import CheckpointError
from omnirl.api.plugin import load_object
from omnirl.api.specs import EnvSpec
from omnirl.config.models import undescribed
from omnirl.testing import trees
from omnirl.testing.algorithm_bench import AlgorithmBench
from omnirl.testing.garbage import garbage_files
from omnirl.testing.spaces import refusals
from omnirl.testing.suite import loaded_by, raises

_PARTS = ("config", "data_flow", "policy", "memory", "learner", "agent_file")


class DeclarationChecks(AlgorithmBench):
    """What the descriptor says is so."""

    def test_every_part_resolves(self) -> None:
        """Every import string leads somewhere, and the configuration is a pydantic model."""
        for part in _PARTS:
            assert load_object(getattr(self.spec, part)) is not None, part
        config = load_object(self.spec.config)
        assert isinstance(config, type), f"config is {config!r}, not a class"
        assert issubclass(config, BaseModel), f"config is {config!r}, not a pydantic model"
        config.model_validate(dict(self.modules))
        names = self.spec.metric_names
        assert len(set(names)) == len(names), f"a name stands twice in metric_names: {names}"

    def test_every_key_is_described(self) -> None:
        """The description is what ``omnirl algos show`` prints and what the reference is made of."""
        missing = list(undescribed(load_object(self.spec.config)))
        assert not missing, f"keys without a description: {', '.join(missing)}"

    def test_acting_and_counting_need_no_torch(self) -> None:
        """Samplers, evaluators and the command line start without torch: a second and 200 MB each."""
        parts = [part for part in _PARTS if part not in self.torch_parts]
        env_spec = next(iter(self.env_specs().values()))
        code = [
            "from omnirl.api import *",
            "from math import inf",
            *(f"{part} = load_object({getattr(self.spec, part)!r})" for part in parts),
        ]
        if {"config", "policy"} <= set(parts):
            code.append(
                f"policy(config.model_validate({dict(self.modules)!r}), {env_spec!r}, "
                f"PolicyContext('sampler', 0, 1, {self.num_envs}))"
            )
        heavy = loaded_by("\n".join(code), ("torch", "ray", "gymnasium"))
        assert not heavy, f"{', '.join(parts)} import {', '.join(heavy)}"

    def test_the_four_numbers_pace_a_run(self) -> None:
        """``data_flow`` gives whole numbers in range, for one sampler and for three; ``modules`` must allow both."""
        config = load_object(self.spec.config).model_validate(dict(self.modules))
        for num_samplers in (1, 3):
            context = FlowContext(self.num_envs, num_samplers)
            flow = load_object(self.spec.data_flow)(config, context)
            assert isinstance(flow, DataFlow), f"data_flow gave {flow!r}, not a DataFlow"
            numbers = (flow.unroll_length, flow.steps_per_update, flow.warmup_steps, flow.max_lead)
            assert all(type(number) is int for number in numbers), f"not whole numbers: {flow}"
            assert min(numbers[:2]) >= 1, f"out of range: {flow}"
            assert min(numbers[2:]) >= 0, f"out of range: {flow}"

    def test_what_it_supports_is_all_it_is_given(self) -> None:
        """``supports`` makes OmniRL refuse every other kind of space, in one line, before a worker starts."""
        for name, refused in refusals(self.spec, self.modules).items():
            assert refused, f"{name} is accepted although supports does not name it"

    def test_agent_files_come_back(self, env_spec: EnvSpec, tmp_path: Path) -> None:
        """What ``save`` wrote, ``load`` reads: names, dtypes, bits and ``meta``; and a policy takes it."""
        weights = self.miniature(env_spec).run(1).weights()
        meta = {"algorithm": self.spec.name, "version": 1, "spaces": env_spec.describe(), "note": "\u00e4"}
        agent_file, path = load_object(self.spec.agent_file), tmp_path / "agent_1.pth"
        agent_file.save(str(path), weights, meta)
        loaded, found = agent_file.load(str(path))
        trees.assert_same(loaded, weights, "the loaded weights")
        trees.assert_same(found, meta, "the loaded meta")
        self.policy(env_spec).set_weights(loaded)

    def test_garbage_is_no_agent_file(self, tmp_path: Path) -> None:
        """Damaged, foreign and hostile files are a CheckpointError, and nothing in them is run."""
        weights = self.miniature(next(iter(self.env_specs().values()))).weights()
        agent_file, good = load_object(self.spec.agent_file), tmp_path / "agent_1.pth"
        agent_file.save(str(good), weights, {"version": 1})
        trap = tmp_path / "trap"
        for name, content in garbage_files(good.read_bytes(), trap).items():
            path = tmp_path / "agent_2.pth"
            path.write_bytes(content)
            assert raises(partial(agent_file.load, str(path)), CheckpointError), f"{name} was loaded"
            assert not trap.exists(), f"{name}: code in the file was run"
        missing = str(tmp_path / "agent_3.pth")
        assert raises(partial(agent_file.load, missing), CheckpointError), "a missing file was loaded"
