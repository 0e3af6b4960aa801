"""How a running run looks in a terminal: a bar and a line of figures. Only this file imports rich."""

from __future__ import annotations

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from omnirl.api.observer import Progress, RunInfo
from omnirl.observers.summary import clock


class LiveDisplay:
    """Draws when told to, so that no further thread touches the terminal."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def start(self) -> None:
        """Take the last lines of the terminal."""
        self._live.start()

    def show(self, run: RunInfo, progress: Progress) -> None:
        """Redraw."""
        self._live.update(view(run, progress), refresh=True)

    def say(self, text: str) -> None:
        """Print a line above the display."""
        self._live.console.print(Text(text))

    def stop(self) -> None:
        """Give the terminal back."""
        self._live.stop()


def view(run: RunInfo, progress: Progress) -> Group:
    """The display: ``PPO CartPole-v1 seed 0 ━━━━╸━━━ 64/100 updates 0:00:08 eta 0:00:04``, figures below."""
    done, total, unit = stop_target(run, progress)
    bar = Table.grid(padding=(0, 1))
    bar.add_column(no_wrap=True)
    bar.add_column(max_width=28)  # the bar gives way in a narrow terminal
    eta = "" if progress.eta_s is None else f"eta {clock(progress.eta_s)}"
    bar.add_row(
        Text(run.title, style="bold"),
        ProgressBar(total=total, completed=done),
        Text(f"{done:,}/{total:,} {unit}"),
        Text(clock(progress.seconds), style="dim"),
        Text(eta, style="dim"),
    )
    return Group(bar, Text(" " + " │ ".join(figures(run, progress))))


def figures(run: RunInfo, progress: Progress) -> list[str]:
    """The parts of the second line; those not known yet are left out."""
    parts = [
        f"env steps {progress.env_steps:,}  {progress.steps_per_s:,.0f}/s",
        f"updates {progress.updates_per_s:,.1f}/s",
    ]
    if progress.train_return is not None:
        deviation = "" if progress.train_return_std is None else f" ±{short(progress.train_return_std)}"
        parts.append(f"return {short(progress.train_return)}{deviation}")
    if progress.eval_return is not None:
        parts.append(f"evaluation {short(progress.eval_return)}")
    parts.append(f"lag p50 {progress.lag_p50:.3g} max {progress.lag_max}")
    parts.append(f"samplers {progress.samplers_alive}/{run.num_samplers}")
    if progress.checkpoint_age is not None:
        parts.append(f"ckpt {progress.checkpoint_age:.0f} s ago")
    return parts


def short(value: float) -> str:
    """A figure at a glance: ``1,235``, ``412``, ``38.2``, ``0.0123``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def stop_target(run: RunInfo, progress: Progress) -> tuple[int, int, str]:
    """``(done, total, unit)``: in updates, or in steps where only those are known.

    Either target implies the other, so the unit never changes within a run.
    """
    if run.total_updates:
        return progress.updates, run.total_updates, "updates"
    return progress.env_steps, run.total_steps, "steps"
