"""The family that learns from its own rollouts: returns, losses, the learner, the policy that samples."""
