"""Model containers: the processes that load models and answer a sidecar's batches.

`serving` starts one of two kinds: a `container` of one model, or a `pipeline` of stages with processes of their own; a
`topsail.host` of many models is made of the same parts. Each process keeps a `link` to the sidecar, speaks with it in a
`session`, and has a `runner` run batches on a model.
"""
