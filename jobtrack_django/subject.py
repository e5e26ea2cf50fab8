"""The caller's object that an operation belongs to, wherever its rows are."""

from __future__ import annotations

from copy import copy
from typing import Any

from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model


class SubjectKey(GenericForeignKey):
    """A generic key whose object, and the name of its model, are read where the project keeps them.

    Django would look for both in the database of the operation. With operations in a database of their own there is
    no such object there, and the number of its model means another one.
    """

    def get_content_type(self, obj: Any = None, id: Any = None, using: Any = None, model: Any = None) -> ContentType:  # noqa: A002 - Django's name
        if id is None:
            return super().get_content_type(obj=obj, id=id, using=using, model=model)
        kind = copy(ContentType.objects.get_for_id(id))  # the original is shared by the whole process

        def read(using: str | None = None, **key: Any) -> Model:  # noqa: ARG001 - the operation's, and so not the one
            found: Model = kind.model_class()._base_manager.get(**key)  # type: ignore[union-attr]  # noqa: SLF001 - as Django does
            return found

        kind.get_object_for_this_type = read  # type: ignore[method-assign]
        return kind
