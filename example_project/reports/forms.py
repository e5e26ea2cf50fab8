import uuid

from django import forms

from example_project.scenarios import SCENARIOS


class ExportForm(forms.Form):
    """What to export, and how the simulated provider shall behave."""

    # Sent twice (a double click, a reload), the form still means one report.
    ticket = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)
    name = forms.CharField(max_length=80, label="Name of the report", initial="Invoices of November")
    scenario = forms.ChoiceField(
        label="What happens at the provider",
        choices=[(scenario.name, scenario.title) for scenario in SCENARIOS],
    )
