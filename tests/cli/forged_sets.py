"""forged_sets.py SET... - beside each set makes SET.NAME for each row of the table FORGED: a copy with one forged value
of report.json or manifest.jsonl, with hashes that fit. inspect --verify (sets_forged.sh) and sluice.open
(python/tests/test_forged.py) refuse each."""
import ctypes
import json
import os
import shutil
import sys

_xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
_xxh3.restype = ctypes.c_uint64
_xxh3.argtypes = ctypes.c_char_p, ctypes.c_size_t


def xxh3(data):
    return "%016x" % _xxh3(bytes(data), len(data))


def sealed(report):
    """The bytes of a report.json, which end with their hash."""
    text = json.dumps({k: v for k, v in report.items() if k != "xxh3_64"}, indent=2)[:-2].encode()
    return text + b',\n  "xxh3_64": "%s"\n}\n' % xxh3(text).encode()


def write(folder, report, lines):
    """A set's report (a dict) and manifest (dicts, or bytes as they are), with hashes that fit."""
    rows = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in lines]
    manifest = b"".join(row + b"\n" for row in rows)
    with open(os.path.join(folder, "manifest.jsonl"), "wb") as f:
        f.write(manifest)
    if isinstance(report.get("manifest"), dict) and "forged" not in report["manifest"]:
        report["manifest"] = {"bytes": len(manifest), "xxh3_64": xxh3(manifest)}
    with open(os.path.join(folder, "report.json"), "wb") as f:
        f.write(sealed(report))


def _line(**values):
    """Forges the first shard's line of the manifest."""

    def forge(report, lines):
        next(line for line in lines if "shard" in line).update(values)

    return forge


def _report(**values):
    return lambda report, _: report.update(values)


def _bucket(**values):
    return lambda report, _: report["buckets"][0].update(values)


def _manifest(**values):
    """Forges what the report says of the manifest."""
    return lambda report, _: report.update(manifest={**report["manifest"], **values, "forged": True})


_HASHES = {
    "path": "../../../outside", "short": "0" * 15, "long": "0" * 17, "upper": "ABCDEF0123456789", "letter": "g" * 16,
    "newline": "0" * 15 + "\n", "arabic": "\u0661" * 16, "number": 1234567890123456, "null": None, "list": ["0" * 16],
}
_NAMES = {
    "up": "../outside", "absolute": "/etc/passwd", "within": "D_4/../../outside", "dots": "..", "empty": "",
    "nul": "D_4/shard-0000000.npy\0x", "number": 7, "null": None,
}
_COUNTS = {"negative": -1, "fraction": 1.5, "text": "7", "huge": 1 << 64, "null": None, "list": [1]}

FORGED = {
    **{"file-" + k: _line(file=v) for k, v in _NAMES.items()},
    **{"hash-" + k: _line(xxh3_64=v) for k, v in _HASHES.items()},
    **{"bytes-" + k: _line(bytes=v) for k, v in _COUNTS.items()},
    **{"sequences-" + k: _line(sequences=v) for k, v in _COUNTS.items()},
    "shard-1": _line(shard=1),
    **{"manifest-" + k: _manifest(xxh3_64=v) for k, v in _HASHES.items()},
    **{"manifest-bytes-" + k: _manifest(bytes=v) for k, v in _COUNTS.items()},
    "manifest-none": _report(manifest=None),
    **{"length-" + k: _bucket(length=v) for k, v in {**_COUNTS, "zero": 0, "above": (1 << 40) + 1}.items()},
    "buckets-none": _report(buckets=None),
    "format-unknown": _report(format="../x"),
    "format-list": _report(format=["olmo"]),
    "line-list": lambda report, lines: lines.insert(0, []),
    "line-text": lambda report, lines: lines.insert(0, b"x"),
    "line-deep": lambda report, lines: lines.insert(0, b"[" * 999),
}
# These forge the report's own hash, which cannot fit then.
SEALS = _HASHES


def make(folder, name):
    """folder.name, the forged copy; returns its path."""
    out = folder + "." + name
    shutil.copytree(folder, out)
    with open(os.path.join(out, "report.json"), "rb") as f:
        report = json.loads(f.read())
    with open(os.path.join(out, "manifest.jsonl"), "rb") as f:
        lines = [json.loads(line) for line in f]
    if name.startswith("seal-"):
        with open(os.path.join(out, "report.json"), "w") as f:
            json.dump({**report, "xxh3_64": SEALS[name[5:]]}, f, indent=2)
            f.write("\n")
    else:
        FORGED[name](report, lines)
        write(out, report, lines)
    return out


ALL = [*FORGED, *("seal-" + k for k in SEALS)]

if __name__ == "__main__":
    for folder in sys.argv[1:]:
        for name in ALL:
            make(folder, name)
