"""Django's own history of a row: what a person did with it here. The audit chain has every decision besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import override


def log(model_admin: admin.ModelAdmin[Any], request: HttpRequest, row: Model, says: Callable[[], str]) -> None:
    """Write an entry in the language of the site: who reads it may speak another one than who acts.

    Args:
        says: makes the text, and the name of the row is made with it; in that language.
    """
    with override(settings.LANGUAGE_CODE):
        model_admin.log_change(request, row, says())
