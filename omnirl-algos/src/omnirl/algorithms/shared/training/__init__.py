"""What every learner trains with: flat parameters and optimizers, likelihoods, sums of metrics, state."""
