"""Every write. Views, API and agents parse, ask access, call one action, and answer."""
