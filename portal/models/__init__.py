"""Every row of the portal, re-exported."""

from portal.models.accounts import AccessToken, User
from portal.models.audit import AuditEntry
from portal.models.changes import Change
from portal.models.checkpoints import Checkpoint, CheckpointImage
from portal.models.decisions import Decision
from portal.models.fleet import FleetSample, Lease, Settings
from portal.models.jobs import Job
from portal.models.moves import Move
from portal.models.nodes import Device, Node, Partition
from portal.models.placements import PlacedReplica, Placement
from portal.models.profiles import Profile
from portal.models.promises import Promise
from portal.models.saved import SavedView
from portal.models.simulations import Simulation
from portal.models.tenants import Membership, Quota, Tenant, Tier
from portal.models.uploads import Upload
from portal.models.use import JobUse

__all__ = [
    "AccessToken",
    "AuditEntry",
    "Change",
    "Checkpoint",
    "CheckpointImage",
    "Decision",
    "Device",
    "FleetSample",
    "Job",
    "JobUse",
    "Lease",
    "Membership",
    "Move",
    "Node",
    "Partition",
    "PlacedReplica",
    "Placement",
    "Profile",
    "Promise",
    "Quota",
    "SavedView",
    "Settings",
    "Simulation",
    "Tenant",
    "Tier",
    "Upload",
    "User",
]
