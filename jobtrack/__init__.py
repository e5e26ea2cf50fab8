"""Follow jobs at external services to a safe end: durable, bounded polling, and a person where no table knows."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("jobtrack")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0.0.0"

__all__ = ["__version__"]
