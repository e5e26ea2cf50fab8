from django.apps import AppConfig


class ReportsConfig(AppConfig):
    """Reports that are made by an external provider."""

    name = "example_project.reports"
    label = "reports"
    default_auto_field = "django.db.models.BigAutoField"
