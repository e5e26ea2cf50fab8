"""The form of a decision, and what an option asks for besides a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobtrack.core.escalation import Option


class DecisionForm(forms.Form):
    """A reason, and the version of the question that the person has seen."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    reason = forms.CharField(
        label=gettext_lazy("Why do you decide so?"),
        help_text=gettext_lazy("Kept for ever in the audit, with your name. Write no passwords or personal data."),
        widget=forms.Textarea(attrs={"rows": 4, "cols": 80}),
        max_length=2000,
    )

    def __init__(self, *args: Any, operation_id: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.operation_id = operation_id

    @property
    def written(self) -> Mapping[str, Any]:
        """What the person wrote and may want back; a confirmation has to be typed anew."""
        return {name: value for name, value in self.cleaned_data.items() if name not in ("version", "confirm")}


class AttachForm(DecisionForm):
    """Names the provider's job."""

    job_id = forms.CharField(
        label=gettext_lazy("The provider's id of the job"),
        help_text=gettext_lazy("Exactly as the provider writes it. It cannot be changed afterwards."),
        widget=forms.TextInput(attrs={"size": 60, "autocomplete": "off"}),
        max_length=500,
    )
    field_order = ("job_id", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].label = _("What is your evidence that this is the job of this operation?")


class ResubmitForm(DecisionForm):
    """Has the person type what they are about to send again."""

    confirm = forms.CharField(
        label=gettext_lazy("Type the id of the operation to confirm"),
        widget=forms.TextInput(attrs={"size": 60, "autocomplete": "off"}),
        max_length=200,
        strip=False,
    )
    field_order = ("confirm", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["confirm"].help_text = _("It stands in the heading of this page. Nothing is sent without it.")

    def clean_confirm(self) -> str:
        """Exact, so that nobody sends a job again by a click in the wrong tab."""
        typed: str = self.cleaned_data["confirm"]
        if typed != self.operation_id:
            raise forms.ValidationError(_("This is not the id of this operation. Nothing was changed."))
        return typed


def form_of(option: Option, *, doubtful: bool) -> type[DecisionForm]:
    """The form that an option asks to be filled in.

    Args:
        doubtful: whether the provider may have the job already, so that one more submission may make a second one.
    """
    if option is Option.ATTACH_JOB:
        return AttachForm
    return ResubmitForm if option is Option.RESUBMIT and doubtful else DecisionForm
