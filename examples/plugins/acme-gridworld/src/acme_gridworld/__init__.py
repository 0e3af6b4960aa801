"""A grid world as an OmniRL environment backend; imports nothing."""
