"""The bytes of Topsail's protocol, version 2 (docs/protocol.md): frames and what is in them.

Nothing here opens a socket, starts a thread or knows a model. Every decoder takes bytes from a stranger: the only
exception that comes out of one is ProtocolError, and no length is believed before the bytes are there.
"""
