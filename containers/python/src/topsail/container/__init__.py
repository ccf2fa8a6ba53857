"""Model containers: the processes that load models and answer a sidecar's batches.

`serving` starts one of three kinds: a `container` of one model, a `pipeline` of stages with processes of their own, or
a `host` of many models. Each process keeps a `link` to the sidecar, speaks with it in a `session`, and has a `runner`
run batches on a model.
"""
