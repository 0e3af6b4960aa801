"""The observers OmniRL brings itself: the log, the console and the learning curve."""
