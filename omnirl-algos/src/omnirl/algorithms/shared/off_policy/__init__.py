"""What every method with a replay memory shares: the memory, targets, the loop of an update."""
