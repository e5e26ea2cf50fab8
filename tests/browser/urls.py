"""The site's addresses, and a page that breaks the site's rules: the watch must bite."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path

from example_project.urls import urlpatterns as of_the_site

UNRULY = """<!doctype html><html lang="en"><title>Unruly</title><style>p {color: red}</style>
<p style="color: blue">Styled</p><script>document.title = "changed"</script><img src="/nowhere.png" alt=""></html>"""


@login_not_required
def unruly(request: HttpRequest) -> HttpResponse:
    return HttpResponse(UNRULY)


@login_not_required
def icon(request: HttpRequest) -> HttpResponse:
    """A browser asks for it beside pages that name no icon, as Django's admin does."""
    return HttpResponse(status=204)


@login_not_required
def unlabelled(request: HttpRequest) -> HttpResponse:
    """A field whose meaning is told to nobody: axe-core must see it."""
    return HttpResponse('<!doctype html><html lang="en"><title>Unlabelled</title><main><input></main></html>')


urlpatterns = [path("unruly/", unruly), path("unlabelled/", unlabelled), path("favicon.ico", icon), *of_the_site]
