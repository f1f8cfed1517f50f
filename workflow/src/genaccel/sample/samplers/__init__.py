"""Samplers: one module each, named as in the config, holding a function of that name.

A sampler takes ``denoise, x, schedule, noise`` and, by name, those settings of ``sample`` that it uses (``steps``,
``eta``, ``order``): what its signature leaves out does not rerun it.
"""

from genaccel.registry import Registry

SAMPLERS = Registry("sampler", __name__, __file__)
