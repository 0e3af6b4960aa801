"""What a backend gets when it brings no loops of its own: collecting rollouts and running evaluations.

:mod:`omnirl.loops.collection` steps an environment with an exploring policy into rollouts,
:mod:`omnirl.loops.evaluation` runs deterministic episodes and :mod:`omnirl.loops.aggregate` sums them up.
"""
