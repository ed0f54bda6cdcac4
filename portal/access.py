"""Fetch a guarded row or refuse: the only way a page or the API gets one.

What a user may not see does not exist for them (404); what they may see but not change is refused
with a sentence that names who may (403).
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404

from portal.choices import Role
from portal.models import (
    AccessToken,
    Job,
    Membership,
    Node,
    Partition,
    Simulation,
    Tenant,
    Upload,
    User,
)


def access_job(user: User | Any, id: int) -> Job:
    """Answer a job of the user's tenants; ``Http404`` where there is none."""
    jobs = Job.objects.visible_to(user).select_related("tenant", "tier", "owner", "partition")
    job = jobs.filter(id=id).first()
    if job is None:
        raise Http404(f"There is no job {id} among those you may see.")
    return job


def steer_job(user: User | Any, id: int) -> Job:
    """Answer a job that they may act upon: their own, one of a tenant they manage, any as admin."""
    job = access_job(user, id)
    if not may_steer(user, job):
        raise PermissionDenied(
            f"Job {id} belongs to {job.owner.username}; only they, a manager of {job.tenant.slug} "
            "or an admin may act upon it."
        )
    return job


def may_steer(user: User | Any, job: Job) -> bool:
    return bool(job.owner_id == user.pk or may_manage(user, job.tenant))


def may_manage(user: User | Any, tenant: Tenant) -> bool:
    """Whether the user may change the members of this tenant and act upon all its jobs."""
    if user.is_admin:
        return True
    managers = Membership.objects.filter(tenant=tenant, role=Role.MANAGER)
    return managers.filter(user=user).exists()


def visible_tenants(user: User | Any) -> QuerySet[Tenant]:
    """The tenants that a user belongs to; an admin sees all."""
    if not user.is_authenticated:
        return Tenant.objects.none()
    if user.is_admin:
        return Tenant.objects.all()
    return Tenant.objects.filter(memberships__user=user)


def access_tenant(user: User | Any, slug: str) -> Tenant:
    tenant = visible_tenants(user).filter(slug=slug).first()
    if tenant is None:
        raise Http404(f"There is no tenant {slug!r} among yours.")
    return tenant


def manage_tenant(user: User | Any, slug: str) -> Tenant:
    """Answer a tenant whose members the user may change."""
    tenant = access_tenant(user, slug)
    if not may_manage(user, tenant):
        raise PermissionDenied(f"Only a manager of {slug} or an admin may do this.")
    return tenant


def access_node(user: User | Any, name: str) -> Node:
    """Answer a node; everyone who is signed in sees the whole fleet."""
    node = Node.objects.filter(name=name).first() if user.is_authenticated else None
    if node is None:
        raise Http404(f"There is no node {name!r}.")
    return node


def visible_partitions(user: User | Any) -> QuerySet[Partition]:
    """The partitions that are open to all or given to a tenant of the user's; an admin sees all."""
    if not user.is_authenticated:
        return Partition.objects.none()
    if user.is_admin:
        return Partition.objects.all()
    theirs = Q(tenants=None) | Q(tenants__memberships__user=user)
    return Partition.objects.filter(theirs).distinct()


def access_partition(user: User | Any, slug: str) -> Partition:
    partition = visible_partitions(user).filter(slug=slug).first()
    if partition is None:
        raise Http404(f"There is no partition {slug!r} open to you.")
    return partition


def access_token(user: User | Any, id: int) -> AccessToken:
    """Answer one of the user's own tokens, live or not."""
    token = AccessToken.objects.filter(user_id=user.pk, id=id).first()
    if token is None:
        raise Http404(f"You have no token {id}.")
    return token


def access_upload(user: User | Any, id: int) -> Upload:
    """Answer one of the user's own uploads."""
    upload = Upload.objects.filter(owner_id=user.pk, id=id).first()
    if upload is None:
        raise Http404(f"You have no upload {id}.")
    return upload


def access_simulation(user: User | Any, id: int) -> Simulation:
    """Answer a simulation, without its figures; admins alone ask what if, and see who asked."""
    require_admin(user)
    rows = Simulation.objects.select_related("owner").defer("figures", "measures")
    found = rows.filter(id=id).first()
    if found is None:
        raise Http404(f"There is no simulation {id}.")
    return found


def require_admin(user: User | Any) -> None:
    """Raise ``PermissionDenied`` unless the user is an admin of the platform."""
    if not (user.is_authenticated and user.is_admin):
        raise PermissionDenied("Only an admin may do this.")
