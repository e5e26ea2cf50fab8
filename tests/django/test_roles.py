"""The groups that ``jobtrack_roles`` makes, and what they are for (INV-29)."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command

from jobtrack.core.escalation import BULK, Option
from jobtrack_django import words
from jobtrack_django.roles import ROLES

pytestmark = [pytest.mark.database, pytest.mark.django_db]

NAMED = {role.name: set(role.permissions) for role in ROLES}


def run(*arguments):
    out = io.StringIO()
    call_command("jobtrack_roles", *arguments, stdout=out)
    return out.getvalue()


def groups(prefix="jobtrack "):
    """Codenames by role."""
    found = Group.objects.filter(name__startswith=prefix)
    return {
        group.name.removeprefix(prefix): set(group.permissions.values_list("codename", flat=True)) for group in found
    }


def test_every_permission_is_in_some_role_but_those_to_write_rows_are_in_none():
    all_of_them = set(Permission.objects.filter(content_type__app_label="jobtrack").values_list("codename", flat=True))
    writing = {name for name in all_of_them if name.startswith(("add_", "change_", "delete_"))}
    in_roles = set().union(*NAMED.values())
    assert in_roles == all_of_them - writing, "name each new permission in jobtrack_django/roles.py"


def test_every_option_is_somebodys():
    used = {words.CHOICES[option].permission for option in Option}
    assert used <= NAMED["lead"]
    assert NAMED["operator"] & used == {words.CHOICES[option].permission for option in BULK}
    assert (NAMED["viewer"] | NAMED["auditor"]) & used == set()


def test_a_role_holds_all_that_a_lesser_one_holds():
    assert NAMED["viewer"] < NAMED["operator"] < NAMED["lead"]
    assert NAMED["viewer"] < NAMED["auditor"]


def test_the_groups_are_made_and_what_each_may_do_is_told_in_words():
    told = run()
    assert groups() == NAMED
    assert "jobtrack operator (new): Answers questions, one by one" in told
    assert "  + Can ask a provider once more (look_again)" in told


def test_a_second_run_changes_nothing():
    run()
    told = run()
    assert groups() == NAMED
    assert ("(new)" in told, "  + " in told, "  = Can close an escalation (close_escalation)" in told) == (
        False,
        False,
        True,
    )


def test_a_dry_run_writes_nothing():
    told = run("--dry-run")
    assert (groups(), "Nothing was changed" in told, "  + " in told) == ({}, True, True)


def test_names_can_have_a_prefix_of_the_sites_own():
    run("--prefix", "jobs: ")
    assert groups("jobs: ") == NAMED


def test_what_is_missing_is_added_and_what_a_site_added_stays_unless_it_says_reset():
    run()
    group = Group.objects.get(name="jobtrack operator")
    theirs = Permission.objects.get(codename="add_group")
    more, less = (Permission.objects.get(codename=name) for name in ("attach_job", "look_again"))
    group.permissions.add(more, theirs)
    group.permissions.remove(less)
    told = run()
    assert groups()["operator"] == NAMED["operator"] | {"attach_job", "add_group"}
    assert "  * Can name the job of an operation (attach_job)" in told
    run("--reset", "--dry-run")
    assert "attach_job" in groups()["operator"]
    told = run("--reset")
    assert groups()["operator"] == NAMED["operator"] | {"add_group"}
    assert "  - Can name the job of an operation (attach_job)" in told


def test_a_site_that_is_not_migrated_is_told_so():
    Permission.objects.filter(codename="look_again").delete()
    with pytest.raises(CommandError, match=r"There is no permission 'look_again'\. Run `manage.py migrate` first\."):
        run()
    assert groups() == {}
