"""A believable fleet to look at: rows only, no process and no agent behind them."""
