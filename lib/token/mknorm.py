#!/usr/bin/env python3
"""Writes lib/token/norm_data.c: what the normalizers of the `tokenizers` library do to each
code point, asked of the library itself.

    pip install tokenizers==0.23.3 && lib/token/mknorm.py > lib/token/norm_data.c

Its versions of Unicode are 9.0 for the normal forms and for what an accent is, 17.0 for
lower case. Combining classes and pairs that compose are taken from Python's (9.0 or newer)
where the library is seen to use them: Unicode never changes them.
"""
import sys
import unicodedata as ud
from tokenizers import normalizers as nz

BLOCK = 128
NFC, NFD, NFKC, NFKD = (getattr(nz, k)().normalize_str for k in ("NFC", "NFD", "NFKC", "NFKD"))
lower = nz.Lowercase().normalize_str
no_accents = nz.StripAccents().normalize_str
CHARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)
# Bits of norm_block, as in norm_data.h.
BIT = {"NFC": 1, "NFD": 2, "NFKC": 4, "NFKD": 8, "LOWER": 16, "ACCENT": 32}


def classes():
    """Combining classes other than 0: the library sorts U+0334 (1) or U+0345 (240) past them."""
    found = {}
    for c in CHARS:
        if NFD(c) != c:
            continue
        if NFD("a" + c + "\u0334") != "a" + c + "\u0334" or NFD("a\u0345" + c) != "a\u0345" + c:
            found[c] = ud.combining(c)
            assert 0 < found[c] < 256
    return found


def compositions():
    pairs = {}
    for c in CHARS:
        parts = ud.decomposition(c).split()
        if len(parts) == 2 and parts[0][0] != "<":
            a, b = (chr(int(x, 16)) for x in parts)
            if NFC(a + b) == c:
                pairs[a, b] = c
    return pairs


def rows(values, width=96):
    line = "   "
    for v in values:
        if len(line) + len(v) + 2 > width:
            yield line
            line = "   "
        line += " " + v + ","
    yield line


def main():
    ccc, pairs = classes(), compositions()
    second = {b for _, b in pairs} | {chr(c) for c in list(range(0x1161, 0x1176)) + list(range(0x11A8, 0x11C3))}
    pool, where = [], {}

    def put(s):
        if s not in where:
            where[s] = len(pool)
            pool.extend(s)
        return where[s]

    canon, compat, lows, flags = [], [], [], [0] * 0x110000
    for c in CHARS:
        i, d, k = ord(c), NFD(c), NFKD(c)
        if i not in HANGUL:
            if d != c:
                canon.append((i, len(d), put(d)))
            if k != d:
                compat.append((i, len(k), put(k)))
        if lower(c) != c:
            lows.append((i, len(lower(c)), put(lower(c)) if len(lower(c)) > 1 else ord(lower(c))))
        still = c not in ccc and c not in second and d[0] not in second and d[0] not in ccc
        flags[i] = (BIT["NFC"] * (not still or NFC(c) != c) | BIT["NFD"] * (c in ccc or d != c) |
                    BIT["NFKC"] * (not still or NFKC(c) != c) | BIT["NFKD"] * (c in ccc or k != c) |
                    BIT["LOWER"] * (lower(c) != c) | BIT["ACCENT"] * (no_accents(c) == ""))
    blocks, index = {}, []
    for start in range(0, 0x110000, BLOCK):
        index.append(blocks.setdefault(tuple(flags[start:start + BLOCK]), len(blocks)))
    assert len(blocks) <= 256 and len(pool) < 65536
    ranges = []
    for c in sorted(ccc):
        if ranges and ranges[-1][1] == ord(c) - 1 and ranges[-1][2] == ccc[c]:
            ranges[-1][1] += 1
        else:
            ranges.append([ord(c), ord(c), ccc[c]])
    p = print
    p("/* norm_data.c - written by lib/token/mknorm.py; do not edit. */\n/* clang-format off */")
    p('#include "lib/token/norm_data.h"\n')
    p("const uint8_t norm_index[%d] = {" % len(index))
    p("\n".join(rows("%d" % v for v in index)), "};\n", sep="\n")
    p("const uint8_t norm_block[][%d] = {" % BLOCK)
    for b in blocks:
        p("{", "\n".join(rows("%d" % v for v in b)), "},", sep="\n")
    p("};\n")
    p("const struct norm_class norm_class[] = {")
    p("\n".join(rows("{0x%X, 0x%X, %d}" % tuple(r) for r in ranges)), "};", sep="\n")
    p("const unsigned norm_n_class = %d;\n" % len(ranges))
    for name, table in ("canon", canon), ("compat", compat), ("lower", lows):
        p("const struct norm_map norm_%s[] = {" % name)
        p("\n".join(rows("{0x%X, %d, 0x%X}" % r for r in table)), "};", sep="\n")
        p("const unsigned norm_n_%s = %d;\n" % (name, len(table)))
    p("const struct norm_pair norm_pair[] = {")
    p("\n".join(rows("{0x%X, 0x%X, 0x%X}" % (ord(a), ord(b), ord(pairs[a, b])) for a, b in sorted(pairs))), "};", sep="\n")
    p("const unsigned norm_n_pair = %d;\n" % len(pairs))
    p("const uint32_t norm_pool[] = {")
    p("\n".join(rows("0x%X" % ord(c) for c in pool)), "};", sep="\n")
    print(len(blocks), len(ranges), len(canon), len(compat), len(lows), len(pairs), len(pool), file=sys.stderr)


main()
