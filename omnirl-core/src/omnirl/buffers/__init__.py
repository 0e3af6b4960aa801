"""Memories: where rollouts wait for the learner that shares their process.

:mod:`omnirl.buffers.rollout_queue` hands rollouts on whole and once, for on-policy learners;
:mod:`omnirl.buffers.replay` keeps transitions and draws batches of them, for value learners;
:mod:`omnirl.buffers.prioritized` draws those more often that the learner was wrong about;
:mod:`omnirl.buffers.n_step` turns rollouts into n-step transitions;
:mod:`omnirl.buffers.frame_store` keeps single frames of images for them.
"""
