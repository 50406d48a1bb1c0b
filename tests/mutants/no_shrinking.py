"""A pytest plugin: a random test that found its example has killed the mutant; no smaller one."""

from hypothesis import Phase, settings

settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate), database=None)
settings.load_profile("mutants")
