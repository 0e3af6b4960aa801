"""What tests of plugins build on: environments with known answers, and fakes that check what they are given.

:mod:`omnirl.testing.environments` is an environment backend that needs neither a simulator nor torch, usable
in a configuration as ``env: {module: omnirl.testing.environments, id: probe_p4}``;
:mod:`omnirl.testing.fakes` stands in for policies, streams and environments, and
:mod:`omnirl.testing.rollouts` makes rollouts out of plain lists.
"""
