from django.apps import AppConfig


class NaiveConfig(AppConfig):
    name = "benchmarks.site.naive"
    label = "naive"
