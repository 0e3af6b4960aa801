"""What a look at something found: one line, how bad it is, and the way out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "problem"]
PLUGIN, CLUSTER, ENVIRONMENT = 4, 6, 31  # exit codes; the first two as in omnirl.api.errors


@dataclass(frozen=True)
class Finding:
    """One line. remedy: what to do about it; exit_code: of a command that ends because of this problem."""

    subject: str
    status: Status
    text: str
    remedy: str = ""
    exit_code: int = 0


def ok(subject: str, text: str) -> Finding:
    """All is well."""
    return Finding(subject, "ok", text)


def warning(subject: str, text: str, remedy: str) -> Finding:
    """Something works badly, or not for everybody."""
    return Finding(subject, "warning", text, remedy)


def problem(subject: str, text: str, remedy: str, exit_code: int) -> Finding:
    """Something does not work."""
    return Finding(subject, "problem", text, remedy, exit_code)


def worst(findings: Iterable[Finding]) -> Status:
    """The worst of their states; ``"ok"`` where there is none."""
    states = {finding.status for finding in findings}
    return "problem" if "problem" in states else "warning" if "warning" in states else "ok"


def exit_code(findings: Iterable[Finding]) -> int:
    """The least exit code of the problems; 0 where there is none."""
    return min((finding.exit_code for finding in findings if finding.status == "problem"), default=0)
