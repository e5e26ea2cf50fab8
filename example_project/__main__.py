"""Django's commands for the example site: ``python -m example_project migrate``."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

execute_from_command_line([sys.argv[0], *sys.argv[1:]])
