"""What nodes fetch: the source files of the jobs that are placed on them."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from portal.api.auth import calling_node
from portal.api.errors import body
from portal.api.streaming import SIZE, stream
from portal.choices import PlacementState
from portal.models import PlacedReplica, Upload


@csrf_exempt
@require_safe
def source(request: HttpRequest, upload: int) -> HttpResponse | StreamingHttpResponse:
    """Send a source to a node, shown its token, on which a job that names it is placed."""
    node = calling_node(request)
    if node is None:
        refused = JsonResponse(body("not-authenticated", "Show the token of a node."), status=401)
        refused["WWW-Authenticate"] = 'Bearer realm="Tidepool nodes"'
        return refused
    here = PlacedReplica.objects.filter(node=node, placement__job__upload=upload)
    if not here.exclude(placement__state=PlacementState.ENDED).exists():
        text = f"No job on {node.name} names the source {upload}."
        return JsonResponse(body("not-found", text), status=404)
    found = Upload.objects.get(id=upload)
    response = stream(
        request, pieces_of(found), filename=found.filename, content_type="application/octet-stream"
    )
    response["Content-Length"] = str(found.size)
    response["X-SHA256"] = found.sha256
    return response


def pieces_of(upload: Upload) -> Iterator[bytes]:
    with upload.file.open("rb") as file:
        yield from file.chunks(SIZE)
