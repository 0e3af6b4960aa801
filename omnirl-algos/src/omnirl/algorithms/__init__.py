"""The algorithms, one package each; ``plugin`` describes them to OmniRL. Importing this imports nothing."""
