"""The ``omnirl`` command: one file per command, each thin over ``omnirl.run`` and ``omnirl.plugins``."""
