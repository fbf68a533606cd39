"""The command `sluice` of the wheel. A module of its own, because the package `sluice` imports numpy, which takes longer than a small run."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sluice", "programs", "bin", "sluice")
    os.environ.setdefault("SLUICE_PYTHON", sys.executable)  # for sluice-chat
    os.execv(program, [program, *sys.argv[1:]])
