"""Tuned configurations, one YAML file each."""
