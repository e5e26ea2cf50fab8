"""The `jobtrack` console script. Exit code 0: good; 1: findings; 2: wrong usage."""

from jobtrack.cli.app import main

__all__ = ["main"]
