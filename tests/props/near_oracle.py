"""Near duplicates computed only from the text, as dedup(1) defines them: the oracle of check_near.py and
judges/near.py.

Sets are of tuples of words, not of hashes; similarities are fractions of integers; no step is approximate.
"""
import functools
import re
import unicodedata

# The Unicode property White_Space; str.split() also takes U+001C to U+001F.
WORD = re.compile("[^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")

# Characters of scripts without spaces, by what Unicode calls them.
SIGN = re.compile("(CJK (UNIFIED|COMPATIBILITY|RADICAL|STROKE)|KANGXI RADICAL|IDEOGRAPH|VERTICAL IDEOGRAPH|(PARENTHESIZED|CIRCLED) IDEOGRAPH|HANGZHOU|HIRAGANA|"
                  "(HALFWIDTH |CIRCLED |VERTICAL )?(KATAKANA|KANA)(?!.*MIDDLE DOT)|BOPOMOFO|YI |NUSHU|TANGUT|THAI (CHARACTER|DIGIT)|LAO|KHMER|MYANMAR|TIBETAN|AHOM|TAI|NEW TAI|"
                  "BALINESE|BATAK|BRAHMI|CHAM |DIVES AKURU|GRANTHA|JAVANESE|MAKASAR)")
NO_SIGN = re.compile("IDEOGRAPHIC (COMMA|FULL STOP|SPACE|TALLY|TELEGRAPH LINE)|CIRCLED IDEOGRAPH (CONGRATULATION|SECRET|ADVANTAGE|ACCEPT)|JAVANESE PANGRANGKEP")
NAMELESS = {*range(0x17000, 0x18B00), *range(0x18D00, 0x18D09), *range(0x1B170, 0x1B2FC)}  # Tangut and Nushu
# UAX #29, table 2: spacing marks that are not Spacing_Mark, others that are or that extend, and Prepend.
ALONE = {0x102B, 0x102C, 0x1038, *range(0x1062, 0x1065), *range(0x1067, 0x106E), 0x1083, *range(0x1087, 0x108D), 0x108F, *range(0x109A, 0x109D),
         0x1A61, 0x1A63, 0x1A64, 0xAA7B, 0xAA7D, 0x11720, 0x11721}
JOINS = {0x200C, 0x200D, 0xE33, 0xEB3, 0xFF9E, 0xFF9F, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)}
# Rule GB9c, of the scripts that are below.
CONSONANT = {*range(0x915, 0x93A), *range(0x1000, 0x102B), 0x103F, *range(0x1780, 0x17B4)}
LINKS = {0x94D, 0x1039, 0x17D2}
PREPENDS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0xD4E, 0x110BD, 0x110CD, 0x111C2, 0x111C3, 0x1193F, 0x11941, 0x11A3A,
            *range(0x11A84, 0x11A8A), 0x11D46}


@functools.lru_cache(None)
def role(c):
    """What a character is to words: joins, prepends, sign, mark (punctuation), or nothing of these."""
    kind, name, code = unicodedata.category(c), unicodedata.name(c, ""), ord(c)
    if kind in ("Mn", "Me") or code in JOINS or (kind == "Mc" and code not in ALONE):
        return "joins"
    if code in PREPENDS:
        return "prepends"
    if code in NAMELESS or (SIGN.match(name) and not NO_SIGN.match(name)):
        return "sign"
    return "mark" if kind[0] == "P" and c not in "‼⁉〰〽" else ""


def pieces(run):
    """The words of a run without white space: clusters of UAX #29 where scripts are written without spaces, and whether
    each is one."""
    words, last, sign, links = [], "", False, False
    for c in run:
        what = role(c)
        if words and (what == "joins" or last == "prepends" or (links and ord(c) in CONSONANT)):
            words[-1][0] += c
        else:
            own = what == "sign" or (what == "mark" and sign)
            if words and not own and not sign:
                words[-1][0] += c
            else:
                words.append([c, own])
            sign = own
        if c != "\u200d" and unicodedata.category(c) not in ("Mn", "Me") or ord(c) in LINKS:
            links = sign and ord(c) in LINKS
        last = what
    return words


def words(text, signs=False):
    """In lower case, code point by code point: str.lower() of a whole text knows of final sigmas. With signs, how many of
    them are a grapheme, too."""
    if text.isascii():
        found, n = WORD.findall(text.lower()), 0
    else:
        both = [w for run in WORD.findall(text) for w in pieces(run)]
        found, n = ["".join(map(str.lower, w)) for w, _ in both], sum(own for _, own in both)
    return (found, n) if signs else found


def chars(text):
    return [c.lower() for c in text if WORD.match(c)]


# Twelve scripts, as letters, marks and stops that are put behind letters.
SCRIPTS = {
    "Han": ("的一是不了人在有我他这中大来上国个到说们为子和你地出道也时年", "\U000e0100", "，。"),
    "kana": ("あいうえおかきくけこさしすせそたちつてとカキクケコーサシスセソ日本語", "\u3099\u309a", "、。」"),
    "Thai": ("กขคงจชซดตถทนบปผพมยรลวสหอะาเแโใไ", "\u0e31\u0e34\u0e35\u0e48\u0e49\u0e33", " ฯ "),
    "Lao": ("ກຂຄງຈຊດຕຖທນບປຜພມຢຣລວສຫອະາເແ", "\u0eb1\u0eb4\u0eb5\u0ec8\u0eb3", " ໆ"),
    "Khmer": ("កខគឃងចឆជញដតថទធនបផពភមយរលវសហអ", "\u17b6\u17b7\u17b8\u17d2\u17c6", "។\u200b"),
    "Myanmar": ("ကခဂဃငစဆဇဈညတထဒဓနပဖဗဘမယရလဝသဟ", "\u102d\u102f\u103a\u103b\u102c\u1038\u1039", "၊။"),
    "Tibetan": ("ཀཁགངཅཆཇཉཏཐདནཔཕབམཙཚཛཝཞཟའཡརལཤསཧཨ", "\u0f72\u0f74\u0f7a\u0f90", "་། "),
    "Hangul": ("가나다라마바사아자차카타파하한국어\u1100\u1112", "\u1161\u11ab", " . , 》"),
    "Devanagari": ("कखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह", "\u093e\u093f\u094d\u0902", " । "),
    "Arabic": ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي\u0600", "\u064b\u0651", " ، "),
    "Cyrillic": ("абвгдежзийклмнопрстуфхцчшщыьэюяАБВ", "\u0301", " . , "),
    "Latin": ("abcdefghijklmnopqrstuvwxyzABCÉÖß", "\u0301\u0323", " . , \n"),
}


def script_text(draw, name, n):
    """n letters of a script with marks and stops between, and now and then something of another."""
    letters, marks, stops = SCRIPTS[name]
    out = []
    for _ in range(n):
        out.append(draw.choice(letters))
        k = draw.random()
        if k < 0.2:
            out.append(draw.choice(marks))
        elif k < 0.3:
            out.append(draw.choice(stops))
        elif k < 0.33:
            out.append(draw.choice([" ", "Linux", "2026", "\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "１２", "(", "...", "\u200d", "한국", "漢字", "\u3000"]))
        elif name in ("Devanagari", "Arabic", "Cyrillic", "Latin", "Hangul") and k < 0.5:
            out.append(" ")
    return "".join(out)


def changed(draw, name, text, share):
    """A copy in which about so many of the characters are others."""
    return "".join(draw.choice(SCRIPTS[name][0]) if draw.random() < share else c for c in text)


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
