"""Runs as they stand on the disk: read for lists and descriptions, grouped by seed, drawn. Starts nothing."""
