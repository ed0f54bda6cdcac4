"""``python -m portal.client`` does what ``tidepool`` does."""

from portal.client.program import main

main(prog_name="tidepool")
