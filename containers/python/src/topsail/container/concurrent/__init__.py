"""Queries that run side by side, each of which may be answered in parts.

A `runner` gives each query, a `call`, to the model: on a thread of `threads` or as a task of an `event_loop`. `calls`
are those that a sidecar has sent: it starts them as they come, and cancels them. An `exchange` writes what they answer
into frames. `whole` joins the parts of an answer.
"""
