"""Near duplicates from the text alone, as dedup(1) defines them: the oracle of check_near.py and judges/near.py.

Sets are of tuples of words, not of hashes; similarities are fractions of integers; nothing is approximate.
"""
import re

# The Unicode property White_Space; str.split() also takes U+001C to U+001F.
WORD = re.compile("[^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def words(text):
    """Lower case code point by code point: str.lower() of a whole text knows of final sigmas."""
    return WORD.findall(text.lower() if text.isascii() else "".join(map(str.lower, text)))


def grams(word, n=5):
    if len(word) < n:
        return {tuple(word)} if word else set()
    return {tuple(word[i:i + n]) for i in range(len(word) - n + 1)}


def pairs_of(sets, num, den):
    """{d: [(k, common, union), ...]}, k < d ascending: all pairs with common/union >= num/den, by an index of n-grams."""
    index, out = {}, {}
    for d, s in enumerate(sets):
        common = {}
        for g in s:
            for k in index.get(g, ()):
                common[k] = common.get(k, 0) + 1
            index.setdefault(g, []).append(d)
        for k in sorted(common):
            union = len(s) + len(sets[k]) - common[k]
            if common[k] * den >= union * num:
                out.setdefault(d, []).append((k, common[k], union))
    return out


def greedy(sets, pairs):
    """{dropped: (witness, common, union)} if every pair of `pairs` shares a band (DESIGN.md, Deduplication)."""
    first, dropped = {}, {}
    for d, s in enumerate(sets):
        if not s:
            continue
        twin = first.setdefault(frozenset(s), d)
        if twin != d:
            dropped[d] = dropped.get(twin, (twin, len(s), len(s)))
            continue
        for k, common, union in pairs.get(d, ()):
            if k not in dropped and first[frozenset(sets[k])] == k:
                dropped[d] = (k, common, union)
                break
    return dropped


def similarity(common, union):
    """As dedup --pairs prints it: six digits, half up."""
    m = (2000000 * common + union) // (2 * union)
    return 1 if common == union else m / 1000000
