#!/usr/bin/env python3
"""Writes lib/token/unicode.c: the general category of every code point, Unicode 16.0.0;
lib/token/unicode_script.c: scripts, and what is Alphabetic; and, of Unicode 18.0.0,
lib/token/unicode_role.c: what characters do where text is cut into words.

    pip install unicodedata2==16.0.0 regex==2024.11.6
    lib/token/mkunicode.py > lib/token/unicode.c
    lib/token/mkunicode.py scripts > lib/token/unicode_script.c
    pip install regex==2026.11.15
    lib/token/mkunicode.py roles > lib/token/unicode_role.c

16.0.0 is the version that tokenizers 0.23 and tiktoken 0.14 were found to follow, both of
them on all code points (tests/judges). White space among the control characters gets a
category of its own, so that one look-up answers every question that a split asks. Words
follow the Unicode of today, because a change of them makes old indexes useless.
"""
import sys
import unicodedata2 as ud
import regex

VERSION = "16.0.0"
NAMES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po "
         "Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co CW").split()
BLOCK = 128


def category(c):
    if 9 <= c <= 13 or c == 0x85:
        return NAMES.index("CW")
    return NAMES.index(ud.category(chr(c)))


def rows(values, per=16):
    for i in range(0, len(values), per):
        yield "    " + " ".join("%d," % v for v in values[i:i + per])


# By their names in Scripts.txt; Common and Inherited are scripts too, Unknown is not one.
SCRIPTS = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi
    Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic
    Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic
    Ethiopic Garay Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul
    Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian
    Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Kirat_Rai Lao Latin
    Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi
    Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar
    Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Ol_Onal Old_Hungarian
    Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage
    Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada
    Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog Tagbanwa
    Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri Toto Tulu_Tigalari
    Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square""".split()
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


ALL = "".join(map(chr, CODE_POINTS))


def ranges(pattern):
    """[first, last] of the code points that a property has."""
    found = []
    for match in regex.finditer("(?:%s)+" % pattern, ALL, regex.V1):
        first, last = match.start(), match.end() - 1
        if first < 0xD800 <= last:  # the surrogates, which ALL has not, are between
            found.append([first, 0xD7FF])
            first = 0xD800
        found.append([CODE_POINTS[first], CODE_POINTS[last]])
    return found


# Scripts that are written without spaces between words: those of whose letters one has Line_Break SA, AK, AS, CJ or ID
# (UAX #14), Hangul and Latin (which is wide there) apart; and Tibetan, which marks syllables.
NEW_SCRIPTS = "Beria_Erfe Jurchen Proto_Cuneiform Seal Sidetic Tai_Yo Tolong_Siki".split()  # Unicode 17 and 18
UNSPACED = """
    Ahom Balinese Batak Bopomofo Brahmi Cham Dives_Akuru Grantha Gurung_Khema Han Hiragana Javanese Jurchen Katakana Kawi Khmer
    Lao Makasar Myanmar New_Tai_Lue Nushu Seal Tai_Le Tai_Tham Tai_Viet Tangut Thai Tulu_Tigalari Yi""".split()
ROLES = "RUN TAIL SIGN CONSONANT PREPENDS JOINS EXTENDS LINKS".split()  # as in enum uni_role


def code_points(pattern):
    return {c for a, b in ranges(pattern) for c in range(a, b + 1)}


def roles():
    """[first, last, enum uni_role] of the code points that are not RUN."""
    every = SCRIPTS + NEW_SCRIPTS
    breaks = code_points(r"[\p{L}&&[\p{Line_Break=SA}\p{Line_Break=AK}\p{Line_Break=AS}\p{Line_Break=CJ}\p{Line_Break=ID}]]")
    script = {s: code_points(r"\p{Script=%s}" % s) for s in every}
    assert breaks <= set().union(*script.values()), "a script is missing"
    found = [s for s in every if breaks & script[s]]
    assert sorted(set(found) - {"Common", "Hangul", "Latin"}) == UNSPACED, found
    own = {s: code_points(r"\p{Script_Extensions=%s}" % s) for s in every if s not in ("Common", "Inherited")}
    unspaced = UNSPACED + ["Tibetan"]
    sign = set().union(*(own[s] for s in unspaced)) - set().union(*(own[s] for s in own if s not in unspaced))
    sign = sign.union(*(script[s] for s in unspaced))
    joins = code_points(r"[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]")
    prepends = code_points(r"\p{GCB=Prepend}")
    sign -= joins | prepends | code_points(r"\p{Extended_Pictographic}")
    # So no rule of UAX #29 but GB9, 9a, 9b and 9c joins one of them with what is beside it.
    assert not sign & code_points(r"[\p{GCB=Control}\p{GCB=L}\p{GCB=V}\p{GCB=T}\p{GCB=LV}\p{GCB=LVT}\p{GCB=RI}]")
    consonant = code_points(r"\p{InCB=Consonant}")
    assert not consonant & (joins | prepends)
    role = {}
    for name, of in (("TAIL", consonant - sign), ("SIGN", sign), ("CONSONANT", sign & consonant), ("PREPENDS", prepends), ("JOINS", joins),
                     ("EXTENDS", joins & code_points(r"\p{InCB=Extend}")), ("LINKS", joins & code_points(r"\p{InCB=Linker}"))):
        role |= dict.fromkeys(of, ROLES.index(name))
    table = []
    for c in sorted(role):
        if table and table[-1][1] == c - 1 and table[-1][2] == role[c]:
            table[-1][1] = c
        else:
            table.append([c, c, role[c]])
    return table


def put_table(name, table):
    sys.stdout.write("const struct uni_range %s[%d] = {\n" % (name, len(table)))
    for i in range(0, len(table), 6):
        sys.stdout.write("    " + " ".join("{0x%x, 0x%x, %d}," % tuple(row) for row in table[i:i + 6]) + "\n")
    sys.stdout.write("};\n\n")


def scripts():
    out = sys.stdout.write
    out("/* unicode_script.c - written by lib/token/mkunicode.py; do not edit. Unicode %s. */\n"
        "/* clang-format off */\n#include \"lib/token/unicode.h\"\n\n" % VERSION)
    rows = [(a, b, i) for i, name in enumerate(SCRIPTS) for a, b in ranges(r"\p{Script=%s}" % name)]
    have = set(c for a, b, _ in rows for c in range(a, b + 1))
    assert len(have) == sum(b - a + 1 for a, b, _ in rows), "a character has one script"
    unknown = sum(b - a + 1 for a, b in ranges(r"\p{Script=Unknown}"))
    assert len(have) + unknown == len(CODE_POINTS), "a script is missing"
    out("const char *const uni_script_name[%d] = {\n" % len(SCRIPTS))
    for i in range(0, len(SCRIPTS), 5):
        out("    " + " ".join('"%s",' % s.replace("_", "").lower() for s in SCRIPTS[i:i + 5]) + "\n")
    out("};\n\n")
    put_table("uni_script", sorted(rows))
    put_table("uni_alphabetic", [(a, b, 0) for a, b in ranges(r"\p{Alphabetic}")])


def main():
    if sys.argv[1:] == ["roles"]:
        assert regex.match(r"\p{Script=Seal}", "\U0003d000"), "regex has an older version of Unicode"
        sys.stdout.write("/* unicode_role.c - written by lib/token/mkunicode.py; do not edit. Unicode 18.0.0. */\n"
                         "/* clang-format off */\n#include \"lib/token/unicode.h\"\n\n")
        return put_table("uni_role_of", roles())
    assert ud.unidata_version == VERSION, ud.unidata_version
    probe = [c for c in CODE_POINTS if (ud.category(chr(c)) == "Cn") != bool(regex.match(r"\p{Cn}", chr(c)))]
    assert not probe, "the two packages have different versions of Unicode"
    if sys.argv[1:] == ["scripts"]:
        return scripts()
    blocks, index = {}, []
    for start in range(0, 0x110000, BLOCK):
        block = tuple(category(c) for c in range(start, start + BLOCK))
        index.append(blocks.setdefault(block, len(blocks)))
    assert len(blocks) <= 65535
    out = sys.stdout.write
    out("/* unicode.c - written by lib/token/mkunicode.py; do not edit. Unicode %s. */\n"
        "/* clang-format off */\n" % VERSION)
    out('#include "lib/token/unicode.h"\n\n')
    out("const uint16_t uni_index[%d] = {\n%s\n};\n\n" % (len(index), "\n".join(rows(index))))
    out("const uint8_t uni_block[%d][%d] = {\n" % (len(blocks), BLOCK))
    for block in blocks:
        out("{\n%s\n},\n" % "\n".join(rows(block, 32)))
    out("};\n")


main()
