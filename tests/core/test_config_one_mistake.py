"""Every single mistake in a file that shows without an environment, with the exact line that it gives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnirl.plugins import Registry

BASE = """\
runner: {max_updates: 10}
env: {module: acme_envs, id: walk}
agent: {module: acme_q}
"""


OVERRIDES = [
    # unknown keys and sections
    (
        "modules.learner.gama=0.9",
        "modules.learner.gama: unknown key (did you mean 'gamma'?) [algorithm acme_q]",
    ),
    ("runner.max_update=3", "runner.max_update: unknown key (did you mean 'max_updates'?) [runner]"),
    ("env.idd=walk", "env.idd: unknown key (did you mean 'id'?) [backend acme_envs]"),
    (
        "modules.learner.clip=0.2",
        "modules.learner.clip: unknown key ('clip' is a key of acme_pg) [algorithm acme_q]",
    ),
    (
        "modules.learner.capacity=9",
        "modules.learner.capacity: unknown key (did you mean 'modules.memory.capacity'?) [algorithm acme_q]",
    ),
    ("runner.lr=1", "runner.lr: unknown key (did you mean 'modules.learner.lr'?) [runner]"),
    (
        "modules.memory.zzz=1",
        "modules.memory.zzz: unknown key (there are: capacity, warmup_steps, alpha) [algorithm acme_q]",
    ),
    (
        "modules.critic={}",
        "modules.critic: unknown key (there are: learner, memory, network) [algorithm acme_q]",
    ),
    ("modul.learner.lr=1", "modul: unknown section (did you mean 'modules'?)"),
    ("learner.lr=1", "learner: unknown section (did you mean 'modules.learner'?)"),
    ("max_steps=9", "max_steps: unknown section (did you mean 'runner.max_steps'?)"),
    (
        "zzzz=1",
        "zzzz: unknown section (there are: runner, device, seed, env, agent, modules, ray, versions)",
    ),
    ("agent.learner={}", "agent.learner: unknown key (did you mean 'modules.learner'?) [runner]"),
    ("agent.name=x", "agent.name: unknown key (there is: module) [runner]"),
    ("runner.on_nan=keep", "runner.on_nan: must be 'drop' or 'error', not 'keep'"),
    ("runner.step_timeout_s=0", "runner.step_timeout_s: must be greater than 0, not 0"),
    ("ray.start_timeout_s=0", "ray.start_timeout_s: must be greater than 0, not 0"),
    # numbers that would fail, or become infinite, only where they are computed with
    ("runner.max_steps=1e30", f"runner.max_steps: must be at most {2**63 - 1}, not 1e+30"),
    ("modules.learner.lr=1e300", "modules.learner.lr: must be at most 3.4e+38, not 1e+300"),
    ("modules.learner.lr=-1e300", "modules.learner.lr: must be at least -3.4e+38, not -1e+300"),
    ("runner.save_interval=1e300", "runner.save_interval: must be at most 3.4e+38, not 1e+300"),
    ("runner.num_samplers=1e5", "runner.num_samplers: must be 'auto' or at most 10000, not 100000.0"),
    ("runner.num_learners=10001", "runner.num_learners: must be at most 10000, not 10001"),
    ("runner.num_evaluators=10001", "runner.num_evaluators: must be at most 10000, not 10001"),
    (
        "runner.num_envs_per_sampler=100001",
        "runner.num_envs_per_sampler: must be at most 100000, not 100001",
    ),
    ("device.threads=1e5", "device.threads: must be 'auto' or at most 4096, not 100000.0"),
    (f"seed={'9' * 301}", f"seed: {'9' * 20}... is too large a number (quote the value: seed='\"...\"')"),
    (f"seed=0x{'f' * 300}", f"seed: 0x{'f' * 18}... is too large a number (quote the value: seed='\"...\"')"),
    (
        f"runner.max_updates='{'9' * 301}'",
        f"runner.max_updates: must be a whole number, not '{'9' * 36}... (text: remove the quotes)",
    ),
    (
        f"runner.log_name={'x' * 201}",
        "runner.log_name: must be a file name of at most 200 bytes, without the character NUL",
    ),
    (
        'runner.log_name="a\\0"',
        "runner.log_name: must be a file name of at most 200 bytes, without the character NUL",
    ),
    ('seed="5"', "seed: must be a whole number, or one each for learner, sampler and evaluator"),
    # wrong types
    ("runner.max_updates=ten", "runner.max_updates: must be a whole number, not 'ten'"),
    (
        "runner.max_updates='10'",
        "runner.max_updates: must be a whole number, not '10' (text: remove the quotes)",
    ),
    ("runner.max_updates=1.5", "runner.max_updates: must be a whole number, not 1.5"),
    ("modules.memory.capacity=1.5", "modules.memory.capacity: must be a whole number, not 1.5"),
    ("modules.memory.capacity=12:30", "modules.memory.capacity: must be a whole number, not '12:30'"),
    ("modules.memory.capacity=true", "modules.memory.capacity: must be a whole number, not true"),
    ("modules.memory.capacity=", "modules.memory.capacity: must be a whole number, not null"),
    ("runner.save_memory=no", "runner.save_memory: must be true or false, not 'no'"),
    ("modules.learner.double=off", "modules.learner.double: must be true or false, not 'off'"),
    ("env.id=3", "env.id: must be text, not 3"),
    ("env.kwargs=[1]", "env.kwargs: must be a mapping, not [1]"),
    ("modules.learner=3", "modules.learner: must be a mapping, not 3"),
    ("modules=[1]", "modules: must be a mapping, not [1]"),
    ("modules.network.hidden_sizes=64", "modules.network.hidden_sizes: must be a list, not 64"),
    (
        "modules.network.hidden_sizes=[64, a]",
        "modules.network.hidden_sizes.1: must be a whole number, not 'a'",
    ),
    ("modules.network.hidden_sizes=[64, 0]", "modules.network.hidden_sizes.1: must be at least 1, not 0"),
    (
        "modules.network.kind=cnnn",
        "modules.network.kind: must be 'mlp' or 'cnn', not 'cnnn' (did you mean 'cnn'?)",
    ),
    ("env.module=3", "env.module: must be the name of an environment backend, not 3"),
    # out of range
    ("modules.learner.gamma=1.5", "modules.learner.gamma: must be at most 1, not 1.5"),
    ("modules.learner.gamma=.nan", "modules.learner.gamma: must be a finite number, not .nan"),
    ("modules.learner.n_step=0", "modules.learner.n_step: must be at least 1, not 0"),
    ("modules.memory.alpha=-0.1", "modules.memory.alpha: must be at least 0, not -0.1"),
    ("runner.num_samplers=0", "runner.num_samplers: must be 'auto' or at least 1, not 0"),
    ("runner.num_samplers=many", "runner.num_samplers: must be 'auto' or a whole number, not 'many'"),
    ("runner.log_interval=.inf", "runner.log_interval: must be a finite number, not .inf"),
    ("runner.save_interval=-1", "runner.save_interval: must be at least 0, not -1"),
    ("runner.ckpt_dir=''", "runner.ckpt_dir: must be text of at least 1 characters, not ''"),
    ("runner.log_name=a/b", "runner.log_name: must be a file name without a folder, not 'a/b'"),
    ("seed=-1", "seed: must be at least 0, not -1"),
    ("seed.learner=x", "seed.learner: must be a whole number, not 'x'"),
    ("seed.learnr=1", "seed.learnr: unknown key (did you mean 'learner'?) [runner]"),
    (
        "device.learner=cudaa",
        "device.learner: must be 'auto', 'cpu', 'cuda' or 'gpu', not 'cudaa' (did you mean 'cuda'?)",
    ),
    ("device.threads=0", "device.threads: must be 'auto' or at least 1, not 0"),
    ("ray.address=somewhere", "ray.address: must be local, auto or host:port, not 'somewhere'"),
    ("ray.address=host:99999", "ray.address: must be local, auto or host:port, not 'host:99999'"),
    (
        "ray.object_store_memory=1000",
        "ray.object_store_memory: must be at least 78643200 (75 MiB, Ray's minimum), not 1000",
    ),
    # schedules
    ("modules.learner.lr=-1e-3", "modules.learner.lr: must not be negative, not -0.001"),
    (
        "modules.learner.lr={kind: linear, start: 1e-3, end: -1}",
        "modules.learner.lr: must not be negative, not -1",
    ),
    (
        "modules.learner.lr='1e-3'",
        "modules.learner.lr: must be a number or a schedule such as {kind: linear, start: 1, end: "
        "0}, not '1e-3' "
        "(text: remove the quotes)",
    ),
    (
        "modules.learner.lr={kind: linaer}",
        "modules.learner.lr.kind: must be 'constant' or 'linear' or 'exponential' or 'piecewise', "
        "not 'linaer' "
        "(did you mean 'linear'?)",
    ),
    (
        "modules.learner.lr={start: 1, end: 0}",
        "modules.learner.lr.kind: missing (one of constant, linear, exponential, piecewise)",
    ),
    ("modules.learner.lr={kind: linear, start: 1}", "modules.learner.lr.end: missing"),
    (
        "modules.learner.lr={kind: linear, start: 1, end: 0, util: 0.5}",
        "modules.learner.lr.util: unknown key (did you mean 'until'?) [algorithm acme_q]",
    ),
    (
        "modules.learner.lr={kind: linear, start: 1, end: x}",
        "modules.learner.lr.end: must be a number, not 'x'",
    ),
    (
        "modules.learner.lr={kind: linear, start: 1, end: 0, after: 0.5, until: 0.2}",
        "modules.learner.lr: until (0.2) must be greater than after (0.5)",
    ),
    ("modules.learner.lr=.nan", "modules.learner.lr: must be a finite number, not .nan"),
    # across keys
    (
        "modules.learner.batch_size=20000",
        "modules.learner.batch_size: 20000 is more than memory.capacity, 10000",
    ),
    (
        "modules.memory.warmup_steps=20000",
        "modules.memory.warmup_steps: 20000 is more than the capacity, 10000",
    ),
    ("runner.num_learners=2", "runner.num_learners: acme_q learns in one process, not in 2"),
    ("runner.num_learners=0", "runner.num_learners: must be at least 1, not 0"),
    # names
    (
        "agent.module=acme_qq",
        "agent.module: unknown algorithm 'acme_qq' (did you mean 'acme_q'?); installed: acme_ac, "
        "acme_pg, acme_q; "
        "pip install omnirl-algos",
    ),
    (
        "env.module=gymnasium",
        "env.module: unknown environment backend 'gymnasium'; installed: acme_envs; pip install "
        "omnirl-gymnasium",
    ),
]


@pytest.mark.parametrize(("assignment", "line"), OVERRIDES)
def test_one_mistake_is_one_line(
    lines_of: Callable[..., list[str]], fake_registry: Registry, assignment: str, line: str
) -> None:
    assert lines_of(BASE, fake_registry, assignment) == [f"override {line}"]
