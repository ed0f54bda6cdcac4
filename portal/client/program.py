"""The program: its options, and its commands by name."""

from __future__ import annotations

import click

from portal.client import (
    account,
    admin,
    asking,
    fleet,
    history,
    jobs,
    nodes,
    output,
    simulations,
    submit,
    tenants,
    tokens,
)
from portal.client.connection import Portal
from portal.client.keeping import read_login


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--url", envvar="TIDEPOOL_URL", help="Address of the portal (TIDEPOOL_URL).")
@click.version_option(package_name="tidepool")
@click.pass_context
def main(context: click.Context, url: str | None) -> None:
    """Submit jobs to a Tidepool fleet, and pause, move and resize them while they run."""
    login = read_login(url)
    # Tests hand in a transport; everyone else goes over the network.
    context.obj = Portal(login, transport=context.obj)
    context.call_on_close(context.obj.close)


for command in (
    account.login,
    account.logout,
    account.whoami,
    submit.submit,
    jobs.jobs,
    jobs.show,
    jobs.cancel,
    jobs.pause,
    jobs.resume,
    jobs.migrate,
    jobs.resize,
    jobs.checkpoint,
    jobs.clone,
    history.receipts,
    history.decisions,
    history.checkpoints,
    history.placements,
    history.profile,
    history.promises,
    output.logs,
    output.files,
    output.download,
    fleet.fleet,
    nodes.nodes,
    tenants.tenants,
    tenants.tiers,
    tokens.tokens,
    admin.users,
    admin.audit,
    admin.policy,
    asking.what_if,
    simulations.simulations,
):
    main.add_command(command)
