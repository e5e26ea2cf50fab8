"""Provider tables on disk: the only reader of YAML."""

from jobtrack.catalog.catalog import Catalog, check_paths, shipped_paths, table_files
from jobtrack.catalog.examples import sample_operation
from jobtrack.catalog.findings import Finding, Level
from jobtrack.catalog.load import Checked, check_file, check_text, load_file, load_text
from jobtrack.catalog.shape import schema

__all__ = [
    "Catalog",
    "Checked",
    "Finding",
    "Level",
    "check_file",
    "check_paths",
    "check_text",
    "load_file",
    "load_text",
    "sample_operation",
    "schema",
    "shipped_paths",
    "table_files",
]
