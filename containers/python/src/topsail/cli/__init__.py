"""The command line of `python -m topsail`: `run`, `pipeline` and `host` serve, `check` and `bench` try a model."""
