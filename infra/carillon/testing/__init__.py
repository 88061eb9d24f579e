"""Tests of users' own jobs and tasks: the simulation behind a fixture of pytest.

`plugin` is what each start of pytest imports; `world` and the rest are imported with the fixture.
"""
