"""The bytes of Topsail's protocol, version 2 (docs/protocol.md): frames and what is in them.

Nothing here opens a socket, starts a thread or knows a model. Every decoder takes untrusted bytes: the only
exception that comes out of one is ProtocolError, and no length is trusted before the bytes are there.
"""
