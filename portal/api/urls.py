"""Addresses of the REST API, all named ``api-...``."""

from __future__ import annotations

from typing import Any, NoReturn

from django.http import Http404
from django.urls import URLPattern, URLResolver, path, re_path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from portal.api import (
    accounts,
    agents,
    asking,
    files,
    fleet,
    history,
    jobs,
    nodes,
    output,
    planning,
    profiles,
    promises,
    rules,
    simulations,
    tenants,
)


@extend_schema(exclude=True)
class NothingHere(APIView):
    """Answers every other address in the API's own shape."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> NoReturn:
        raise Http404(f"There is nothing at {request.path}; addresses end in a slash.")


router = SimpleRouter()
router.register("jobs", jobs.JobViewSet, basename="api-job")
router.register("nodes", nodes.NodeViewSet, basename="api-node")
router.register("tenants", tenants.TenantViewSet, basename="api-tenant")
router.register("tiers", rules.TierViewSet, basename="api-tier")
router.register("partitions", rules.PartitionViewSet, basename="api-partition")
router.register("simulations", simulations.SimulationViewSet, basename="api-simulation")
router.register("tokens", accounts.TokenViewSet, basename="api-token")
router.register("uploads", accounts.UploadViewSet, basename="api-upload")
router.register("users", accounts.UserViewSet, basename="api-user")
router.register("audit", accounts.AuditViewSet, basename="api-audit")

JOB = "jobs/<int:pk>"
TENANT = "tenants/<slug:slug>"

urlpatterns: list[URLPattern | URLResolver] = [
    *router.urls,
    path(f"{JOB}/output/<int:rank>/", output.OutputView.as_view(), name="api-job-output"),
    path(f"{JOB}/files/", files.FilesView.as_view(), name="api-job-files"),
    path(f"{JOB}/files/<int:rank>/<path:path>", files.FileView.as_view(), name="api-job-file"),
    path(f"{JOB}/files.zip", files.ArchiveView.as_view(), name="api-job-archive"),
    path(f"{JOB}/receipts/", history.ReceiptsView.as_view(), name="api-job-receipts"),
    path(f"{JOB}/decisions/", history.DecisionsView.as_view(), name="api-job-decisions"),
    path(f"{JOB}/checkpoints/", history.CheckpointsView.as_view(), name="api-job-checkpoints"),
    path(f"{JOB}/use/", history.UseView.as_view(), name="api-job-use"),
    path(f"{JOB}/placements/", history.PlacementsView.as_view(), name="api-job-placements"),
    path(f"{JOB}/profile/", profiles.ProfileView.as_view(), name="api-job-profile"),
    path(f"{JOB}/promises/", promises.JobPromisesView.as_view(), name="api-job-promises"),
    path("promises/", promises.PromisesView.as_view(), name="api-promises"),
    path("promises/shortfalls/", promises.ShortfallsView.as_view(), name="api-shortfalls"),
    path("policy/", planning.PolicyView.as_view(), name="api-policy"),
    path(f"{TENANT}/quotas/<str:kind>/", tenants.QuotaView.as_view(), name="api-tenant-quota"),
    path(
        f"{TENANT}/members/<str:username>/", tenants.MemberView.as_view(), name="api-tenant-member"
    ),
    path("what-if/", asking.WhatIfView.as_view(), name="api-what-if"),
    path("login/", accounts.LoginView.as_view(), name="api-login"),
    path("me/", accounts.MeView.as_view(), name="api-me"),
    path("me/password/", accounts.PasswordView.as_view(), name="api-me-password"),
    path("fleet/", fleet.FleetView.as_view(), name="api-fleet"),
    path("fleet/history/", fleet.HistoryView.as_view(), name="api-fleet-history"),
    path("agents/sources/<int:upload>/", agents.source, name="agent-source"),
    re_path(r"^.*$", NothingHere.as_view(), name="api-nothing"),
]
