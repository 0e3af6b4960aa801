"""``omnirl doctor``: whether OmniRL can work here, a line per thing looked at, with the way out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from omnirl.cli.options import Json

if TYPE_CHECKING:
    from omnirl.doctor.findings import Finding

HELP = """Look at the installation and the machine.

Exit code 4 where something of the installation does not work, 6 where Ray would not; 0 with or without warnings."""


def doctor(as_json: Json = False) -> None:
    """Look, and print what was found as it is found."""
    import json

    from omnirl.doctor.findings import exit_code, worst

    found: list[Finding] = []
    for finding in _look():
        found.append(finding)
        if not as_json:
            print_finding(finding)
    if as_json:
        print(json.dumps({"status": worst(found), "checks": as_data(found)}, ensure_ascii=False, indent=2))
    raise typer.Exit(exit_code(found))


def _look() -> Iterable[Finding]:
    import itertools

    import omnirl.plugins
    from omnirl.api.errors import PluginError
    from omnirl.cli.installation import check_installation
    from omnirl.cli.version import versions
    from omnirl.doctor import installation, machine

    refusal = None
    try:
        check_installation()
    except PluginError as error:
        refusal = error
    asked_elsewhere = {"python", "ray", "torch"}  # which say more than a version
    installed = {name: number for name, number in versions().items() if name not in asked_elsewhere}
    first = [
        installation.python(),
        *installation.distributions(installed),
        installation.shared(refusal),
        installation.plugins(omnirl.plugins.load()),
    ]
    return itertools.chain(first, machine.look())


def print_finding(finding: Finding, indent: str = "") -> None:
    """``warning  memory: 1.5 GiB`` and, where there is a way out, ``-> use --local`` below it."""
    print(f"{indent}{finding.status:<8} {finding.subject}: {finding.text}", flush=True)
    if finding.remedy:
        print(f"{indent}{'':<8} -> {finding.remedy}", flush=True)


def as_data(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """The same for a program."""
    return [
        {"subject": item.subject, "status": item.status, "text": item.text, "remedy": item.remedy}
        for item in findings
    ]
