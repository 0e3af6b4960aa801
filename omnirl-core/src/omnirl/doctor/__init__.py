"""Looks for what is wrong with an installation, a machine or a plugin, and says how to mend it."""
