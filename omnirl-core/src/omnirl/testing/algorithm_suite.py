"""What every algorithm must do, as checks that a third party's tests subclass.

In a test file of your algorithm::

    from acme_rl.plugin import ACME            # the AlgorithmSpec
    from omnirl.testing import AlgorithmSuite

    class TestAcme(AlgorithmSuite):
        spec = ACME
        modules = {"memory": {"unroll_length": 8}}     # small, so that an update takes milliseconds

pytest then runs every check below, once for each kind of action that ``spec.supports`` names. That is a sound
start; three more attributes make it thorough::

        probe_modules = {"learner": {"gamma": 0.9, "lr": 1e-2}}    # learns a three-step episode in
        probe_updates = 500                                        # this many updates

        def value(self, learner, obs):           # obs [N, *obs] -> what the learner thinks they are worth, [N]
            return learner.values(obs)

        def greedy_action(self, learner, obs):   # ... and what it would do, [N, *act]
            return learner.logits(obs).argmax(axis=1)

With them the suite proves that a terminal state is worth nothing, that an episode that is merely cut goes on being
worth something, and that the numpy policy acts as the learner says. A check that has nothing to look at is skipped
and says what it lacks.

Every failure names the culprit: ``the learner's state[...]['momentum'] differs``. A check that is wrong for your
algorithm can be overridden; please say why in its docstring.
"""

from __future__ import annotations

from omnirl.testing.acting_checks import ActingChecks
from omnirl.testing.declaration_checks import DeclarationChecks
from omnirl.testing.learning_checks import LearningChecks


class AlgorithmSuite(DeclarationChecks, ActingChecks, LearningChecks):
    """Subclass it under a name that begins with ``Test`` and set ``spec``; see the module's docstring.

    The attributes and hooks are in :mod:`omnirl.testing.algorithm_bench`, the checks in
    :mod:`omnirl.testing.declaration_checks`, :mod:`omnirl.testing.acting_checks` and
    :mod:`omnirl.testing.learning_checks`.
    """
