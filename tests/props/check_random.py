#!/usr/bin/env python3
"""A few random jobs, always the same, each run in several ways that must agree: tests/random/jobs.py, in short. check-more: whole"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "random")]
from streams import need  # noqa: E402
import jobs  # noqa: E402

need("tokenize", "dedup", "decompose", "pack", "shuffle", "schedule", "inspect")
jobs.main(["--seed", "quick", "--jobs", "20" if os.environ.get("CHECK_FULL") else "12", "-j", "1"])
