"""Networks: what maps an observation to action preferences and values.

``mlp``, ``cnn``, ``heads`` and ``build`` are torch and run in the learner; ``numpy_mlp`` is the same forward
pass for acting, without torch. Importing this package imports none of them.
"""
