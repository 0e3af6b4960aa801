"""Configuration: files with positions, one merged tree, validated models, and every mistake in one error.

==============  ==========================================================================================
module          does
==============  ==========================================================================================
yaml_text       the YAML 1.2 rules: text -> data and positions, and data -> text
files           trees of settings with the origin of each: load, merge, dump
overrides       ``modules.learner.lr=3e-4`` -> a tree
schema          the models of the runner's own sections, and the JSON schema of a whole file
messages        pydantic's errors in plain words
unknown_keys    what an unknown key may have meant
resolve         a tree -> validated models, with all mistakes collected
check           what only shows across sections, and against the environment and the hardware
==============  ==========================================================================================
"""
