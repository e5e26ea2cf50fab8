"""A module of a site that imports something that is not installed."""

import a_module_that_nobody_has  # noqa: F401


def run(operation):
    """Never reached."""
