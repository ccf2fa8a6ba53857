"""What a client asks of the management service: its nouns, their records, and the requests behind them."""
