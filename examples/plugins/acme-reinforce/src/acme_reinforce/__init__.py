"""REINFORCE with a baseline, in numpy, as an OmniRL algorithm; imports nothing."""
