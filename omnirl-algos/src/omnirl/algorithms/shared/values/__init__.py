"""The family of Q-learning: losses, the learner, epsilon-greedy actions."""
