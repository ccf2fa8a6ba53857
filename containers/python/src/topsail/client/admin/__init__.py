"""What a client asks of the management service: its resources, their records, and the requests behind them."""
