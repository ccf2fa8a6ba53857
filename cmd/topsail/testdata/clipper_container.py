"""A model container as they were written for Clipper: bytes on a socket, and a main loop.

usage: clipper_container.py PORT

It takes vectors of doubles, fixed and variable, sleeps 20 ms over each input, and answers with
its sum; several connections side by side.
"""

import os
import socket
import struct
import sys
import threading
import time

FIXED_DOUBLES, VARIABLE_DOUBLES, SHUTDOWN = 2, 5, 0


def receive(conn, n):
    data = b""
    while len(data) < n:
        part = conn.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def read_inputs(conn, code, n):
    (size,) = struct.unpack("<I", receive(conn, 4))
    if code == FIXED_DOUBLES:
        return [struct.unpack(f"<{size}d", receive(conn, 8 * size)) for _ in range(n)]
    inputs = []
    for _ in range(n):
        (length,) = struct.unpack("<I", receive(conn, 4))
        inputs.append(struct.unpack(f"<{length}d", receive(conn, 8 * length)))
    return inputs


def predict(x):
    time.sleep(0.02)
    return sum(x)


def serve(conn):
    try:
        while True:
            code, n = struct.unpack("<BI", receive(conn, 5))
            if code == SHUTDOWN:
                print("told to shut down")
                sys.stdout.flush()
                conn.sendall(struct.pack("<I", 1234))
                os._exit(0)
            outputs = [predict(x) for x in read_inputs(conn, code, n)]
            conn.sendall(struct.pack(f"<{n}d", *outputs))
    except EOFError:
        conn.close()


def main():
    port = int(sys.argv[1])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(16)
    print(f"pid {os.getpid()} listens on port {port}")
    sys.stdout.flush()
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=serve, args=(conn,), daemon=True).start()


if __name__ == "__main__":
    main()
