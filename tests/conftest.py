"""What holds for every test: the same random examples in every run, so that a failure repeats."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
