#!/usr/bin/env python3
"""Reads JSON lines and writes them with sorted keys and no spaces, so that two writers can be compared."""
import json
import sys

for line in sys.stdin:
    sys.stdout.write(json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")) + "\n")
