"""Configuration: files with positions, one merged tree, validated models, and every mistake in one error.

==============  ==========================================================================================
module          does
==============  ==========================================================================================
yaml_text       the YAML 1.2 rules: text -> data and positions, and data -> text
files           trees of settings with the origin of each: load, merge, dump
overrides       ``modules.learner.lr=3e-4`` -> a tree
sections        the models of the runner's own sections
schema          the JSON schema of a whole file
positions       where a setting stands, for the lines of errors
models          what a model allows at a path
messages        pydantic's errors in plain words
unknown_keys    what an unknown key may have meant
resolve         a tree -> validated models, with all mistakes collected
check           what only shows across sections, and against the environment and the hardware
spaces          the part of check that compares algorithm, network and environment
==============  ==========================================================================================
"""
