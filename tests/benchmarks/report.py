"""Writes what the benchmarks measured as a page of the docs with a picture. ::

python tests/benchmarks/report.py throughput.json startup.json docs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from works import WORKS

SIDES = {
    "sb3": "Stable-Baselines3",
    "local": "OmniRL --local",
    "ray": "OmniRL on Ray",
    "ray-lead1": "OmniRL on Ray, lead 1",
}
PAGE = """# Benchmarks

Measured by `python -m nox -s bench` in {pairs} alternating rounds: each round runs every side once, in processes
of their own, with the same environment, hyperparameters, network, torch threads ({threads}) and number of gradient
steps (counted in the optimizers); nothing is evaluated; time runs from the second update to the last. **Only ratios
within a round are compared**; the table shows their medians, with the least and the greatest. Absolute figures belong
to the machine ({machine}).

![Ratios of OmniRL's throughput to that of Stable-Baselines3](images/benchmarks.png)
"""


def throughput(result: dict[str, Any]) -> list[str]:
    """The table of one work."""
    work = WORKS[result["work"]]
    figure = work.figure
    lines = [
        f"## {work.title}",
        "",
        "| side | per second | ratio | least - greatest | gradient steps | stepping alone, steps/s | vector stepping |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for side, one in result["sides"].items():
        lines.append(
            f"| {SIDES[side]} | {one[figure]:,.0f} | {one['ratio']:.2f} | {one['ratio_min']:.2f} - "
            f"{one['ratio_max']:.2f} | {one['gradient_steps'][0]:,} | {one['stepping_alone']:,.0f} | {one['vector']} |"
        )
    return lines


def startup(result: dict[str, Any]) -> list[str]:
    """The table of the start."""
    lines = [
        "## From the start of the process to the first finished update",
        "",
        "PPO, CartPole-v1, 8 environments; memory is the proportional set size of all processes of the run together.",
        "",
        "| side | seconds | MB |",
        "| --- | ---: | ---: |",
    ]
    for side, one in result["sides"].items():
        lines.append(f"| {SIDES[side]} | {one['seconds']:.1f} | {one['megabytes']:.0f} |")
    return lines


def picture(results: list[dict[str, Any]], path: Path) -> None:
    """Bars of the ratios, with their spread."""
    figure, axes = plt.subplots(figsize=(7.5, 3.6))
    sides = [side for side in SIDES if side != "sb3"]
    width = 0.8 / len(sides)
    for number, side in enumerate(sides):
        shown = [
            (place, result["sides"][side]) for place, result in enumerate(results) if side in result["sides"]
        ]
        places = [place + (number - 1) * width for place, _ in shown]
        ratios = [one["ratio"] for _, one in shown]
        spread = [
            [one["ratio"] - one["ratio_min"] for _, one in shown],
            [one["ratio_max"] - one["ratio"] for _, one in shown],
        ]
        bars = axes.bar(places, ratios, width * 0.92, yerr=spread, capsize=3, label=SIDES[side])
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    axes.axhline(1.0, color="0.3", linewidth=1)
    axes.set_xlim(-0.95, len(results) - 0.4)
    axes.text(-0.93, 1.06, "Stable-Baselines3", fontsize=8, color="0.3")
    axes.set_xticks(range(len(results)), [result["work"] for result in results])
    axes.set_ylabel("times Stable-Baselines3")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Read the two results, write the page and the picture."""
    measured = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    started = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    docs = Path(sys.argv[3])
    about = measured["machine"]
    names = [
        f"Python {about['python']}",
        *(f"{name} {version}" for name, version in about["versions"].items()),
    ]
    page = PAGE.format(
        pairs=len(measured["results"][0]["rounds"]),
        threads=measured["threads"],
        machine=f"{about['cores']} cores, no GPU; {', '.join(names)}",
    )
    parts = [page.rstrip(), *("\n".join(throughput(result)) for result in measured["results"])]
    parts.append("\n".join(startup(started)))
    (docs / "benchmarks.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    picture(measured["results"], docs / "images" / "benchmarks.png")


if __name__ == "__main__":
    main()
