"""The first step of a worker's process: `python bootstrap.py SUPERVISOR CPU PROGRAM ARGUMENT...`.

It sees to it that the process does not outlive its supervisor, takes it to its CPU, where it is to have one, and
becomes the program. This happens before the program begins, because libraries look at their CPUs when they are
imported, and because a supervisor may end meanwhile. It is run by itself and imports nothing of this package.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_supervisor() -> None:
    """It lasts through exec, and works whatever the program does. Where it is not to be had, the worker's control
    socket ends it."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (ImportError, OSError, AttributeError):  # a Python without ctypes, or a C library without prctl
        pass


def main(supervisor: str, cpus: str, *program: str) -> None:
    if sys.platform == "linux":
        die_with_supervisor()
        if os.getppid() != int(supervisor):
            sys.exit("topsail: the supervisor has ended")
        if cpus:
            os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    os.execv(program[0], program)


if __name__ == "__main__":
    main(*sys.argv[1:])
