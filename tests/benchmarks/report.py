"""Writes what results.json holds of the benchmarks as a page of the docs with a picture. ::

python tests/benchmarks/report.py tests/benchmarks/results.json docs
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from results import read
from works import WORKS

SIDES = {
    "sb3": "Stable-Baselines3",
    "rllib": "RLlib",
    "local": "OmniRL --local",
    "ray": "OmniRL on Ray",
    "ray-lead1": "OmniRL on Ray, lead 1",
}
PAGE = """# Benchmarks

Measured by `python -m nox -s bench` in alternating rounds: each round runs every side once, in processes of their own,
with the same environment, hyperparameters, network, torch threads and number of gradient steps (counted in the
optimizers); nothing is evaluated; time runs from the second update to the last. **Only ratios within a round are
compared**; the tables show their medians, with the least and the greatest. Absolute figures belong to the machine and
its moment.

Each section says which [run](#runs) it is from: `python -m nox -s bench -- --works sac td3` measures some works anew
and leaves the others as they are. RLlib takes minutes for as many updates as OmniRL makes in seconds: it makes fewer.
Of IMPALA the steps of RLlib are those sampled, the steps of OmniRL those learned from.

![Ratios of OmniRL's throughput to that of Stable-Baselines3 and RLlib](images/benchmarks.png)
"""


def throughput(name: str, result: Mapping[str, Any], told: str) -> str:
    """The section of one work."""
    work, lags = WORKS[name], any("lag_max" in one for one in result["sides"].values())
    columns = ["side", "per second", "ratio", "least - greatest", "gradient steps", "stepping alone, steps/s"]
    columns += ["greatest lag, updates"] if lags else []
    lines = [
        f"## {work.title}",
        "",
        told,
        "",
        f"| {' | '.join(columns)} | vector stepping |",
        f"| --- {'| ---: ' * (len(columns) - 1)}| --- |",
    ]
    for side, one in result["sides"].items():
        cells = [
            SIDES[side],
            f"{one[work.figure]:,.0f}",
            f"{one['ratio']:.2f}",
            f"{one['ratio_min']:.2f} - {one['ratio_max']:.2f}",
            " - ".join(
                f"{count:,}" for count in sorted({one["gradient_steps"][0], one["gradient_steps"][-1]})
            ),
            f"{one['stepping_alone']:,.0f}",
        ]
        cells += [str(one.get("lag_max", "-"))] if lags else []
        lines.append(f"| {' | '.join(cells)} | {one['vector']} |")
    return "\n".join(lines)


def startup(result: Mapping[str, Any], told: str) -> str:
    """The section of the start."""
    lines = [
        "## From the start of the process to the first finished update",
        "",
        f"PPO, CartPole-v1, 8 environments; memory is the proportional set size of all processes of the run together. "
        f"{told}",
        "",
        "| side | seconds | MB |",
        "| --- | ---: | ---: |",
    ]
    for side, one in result["sides"].items():
        lines.append(f"| {SIDES[side]} | {one['seconds']:.1f} | {one['megabytes']:.0f} |")
    return "\n".join(lines)


def learning_time(result: Mapping[str, Any], told: str) -> str:
    """The section of the time until PPO has solved CartPole."""
    lines = [
        "## Learning until CartPole is solved",
        "",
        "PPO with the preset's hyperparameters, those of rl-baselines3-zoo, on both sides; a round is a seed. It is "
        "solved at the first update after which the last 20 training episodes had a mean return of 475; the time is "
        f"from the first step to that moment. Medians over the seeds. {told}",
        "",
        "| side | seconds | of Stable-Baselines3's | environment steps | seeds that solved it |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for side, one in result["sides"].items():
        if one["seconds"] is None:
            lines.append(f"| {SIDES[side]} | - | - | - | {one['solved']} of {len(result['rounds'])} |")
            continue
        part = f"{one['of_peer']:.2f}" if one["of_peer"] else "-"
        cells = (SIDES[side], f"{one['seconds']:.1f}", part, f"{one['steps']:,.0f}")
        lines.append(f"| {' | '.join(cells)} | {one['solved']} of {len(result['rounds'])} |")
    return "\n".join(lines)


OTHERS = {"ppo-475": learning_time, "startup": startup}


def told(run: str, about: Mapping[str, Any]) -> str:
    """Which run a section is from."""
    alone = " of this work alone" if len(about["works"]) == 1 else ""
    return f"Measured in the run{alone} of {run} UTC, {about['pairs']} rounds."


def runs(held: Mapping[str, Any]) -> str:
    """The section of the runs."""
    lines = [
        "## Runs",
        "",
        "Load is the machine's one-minute average just before: the rest of what ran there.",
        "",
        "| begun, UTC | works | rounds | threads | load | machine and versions |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for run, about in held["runs"].items():
        versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        if about.get("rllib"):
            own = ", ".join(f"{name} {version}" for name, version in about["rllib"].items())
            versions += f"; RLlib with {own}"
        load = "-" if about["load"] is None else f"{about['load']:.1f}"
        lines.append(
            f"| {run} | {', '.join(about['works'])} | {about['pairs']} | {about['threads']} | {load} | "
            f"{about['cores']} cores, no GPU; Python {about['python']}, {versions} |"
        )
    return "\n".join(lines)


def picture(results: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Bars of the ratios, with their spread; on a scale on which twice as much is twice as high anywhere."""
    figure, axes = plt.subplots(figsize=(10.5, 3.8))
    sides = [side for side in SIDES if side not in ("sb3", "rllib")]
    width = 0.84 / len(sides)
    for number, side in enumerate(sides):
        shown = [
            (place, result["sides"][side])
            for place, result in enumerate(results.values())
            if side in result["sides"]
        ]
        places = [place + (number - 1) * width for place, _ in shown]
        ratios = [one["ratio"] for _, one in shown]
        spread = [
            [one["ratio"] - one["ratio_min"] for _, one in shown],
            [one["ratio_max"] - one["ratio"] for _, one in shown],
        ]
        bars = axes.bar(places, ratios, width * 0.92, yerr=spread, capsize=2, label=SIDES[side])
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.axhline(1.0, color="0.3", linewidth=1)
    axes.set_xlim(-0.8, len(results) - 0.4)
    labels = [
        f"{name}\nagainst {SIDES[WORKS[name].sides[0]].replace('Stable-Baselines3', 'SB3')}"
        for name in results
    ]
    axes.set_xticks(range(len(results)), labels, fontsize=8)
    axes.set_ylabel("times the other library's rate")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def page(held: Mapping[str, Any]) -> str:
    """The page of what is kept, works in the order of works.py."""
    parts = [PAGE.rstrip()]
    for name, result in measured(held).items():
        parts.append(throughput(name, result, told(result["run"], held["runs"][result["run"]])))
    for name, section in OTHERS.items():
        if name in held["works"]:
            result = held["works"][name]
            parts.append(section(result, told(result["run"], held["runs"][result["run"]])))
    parts.append(runs(held))
    return "\n\n".join(parts) + "\n"


def measured(held: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What is kept of the works of works.py, in their order."""
    return {name: held["works"][name] for name in WORKS if name in held["works"]}


def main() -> None:
    """Read the results, write the page and the picture."""
    held, docs = read(Path(sys.argv[1])), Path(sys.argv[2])
    (docs / "benchmarks.md").write_text(page(held), encoding="utf-8")
    picture(measured(held), docs / "images" / "benchmarks.png")


if __name__ == "__main__":
    main()
