"""What a schema cannot say about a table (R-TABLE-1, R-TABLE-2). Errors refuse the table, warnings do not."""

from __future__ import annotations

from jobtrack.catalog.examples import run_examples
from jobtrack.catalog.findings import Report, errors
from jobtrack.catalog.lint_cancel import check_cancel
from jobtrack.catalog.lint_limits import check_limits
from jobtrack.catalog.lint_lookup import check_lookup
from jobtrack.catalog.lint_request import check_request
from jobtrack.catalog.lint_result import check_result
from jobtrack.catalog.lint_states import check_states
from jobtrack.catalog.lint_submit import check_submit
from jobtrack.catalog.lint_webhook import check_webhook
from jobtrack.catalog.nodes import Node
from jobtrack.core.table import ProviderTable


def lint(root: Node, table: ProviderTable, report: Report) -> None:
    """Check a built table.

    Args:
        root: The tree it was built from; gives the places of the findings.
        table: The table.
        report: Gets the findings.
    """
    check_request(root, table, report)
    check_states(root, table, report)
    check_submit(root, table, report)
    check_lookup(root, table, report)
    check_cancel(root, table, report)
    check_result(root, table, report)
    check_webhook(root, table, report)
    check_limits(root, table, report)
    examples = root.get("examples")
    if examples is None:
        if not report.touched(("examples",)):
            report.warn(
                root.mark,
                ("examples",),
                "no_examples",
                "No answer is shown; write examples: with one for each meaning.",
            )
    elif not errors(report.findings):  # a broken table reads its examples wrongly: one mistake, one finding
        run_examples(table, examples.items(), report)
