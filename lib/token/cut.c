/* cut.c - where a text can be cut; the proofs.
 *
 * Let a cut be at c. The ids of both parts are those of the whole if every stage of the
 * encoder does the same on the parts as on the whole:
 *
 * 1. Normalizer. The normal forms: the character at c (a space), or just before it (a
 *    newline), is ASCII. So it neither composes with the character before it nor is
 *    moved, and a newline composes with no character after it either. So the form of
 *    the whole is that of the parts. The characters that define a place stay, except
 *    the one before the newline and the one at c after it. With canonical mappings the
 *    first does not become white space, and the second neither that nor a slash. With
 *    compatibility mappings the second may become a space: no CUT_LINE. Lowercase maps
 *    characters one by one, letters to letters. StripAccents may drop a neighbour of
 *    the newline: no CUT_LINE. The other steps depend on more characters, or on the
 *    ends of the text.
 *
 * 2. Splits. The known ones have no look-behind, so the right part is split as in the
 *    whole if a pretoken of the whole ends at c. That is so, and the left part is split as
 *    in the whole too, if for every pretoken that begins before c the expression cannot
 *    tell c from the end of the text.
 *    CUT_SPACE: the character before c is a letter. In all expressions a space matches
 *    at a pretoken's first place ("[^\r\n\p{L}\p{N}]?", " ?"), or in white space, which
 *    begins at c here. So no pretoken that begins before c goes beyond c. The look-aheads
 *    "(?!\S)" and "$" only come after white space, so no pretoken that begins before c
 *    tests one at c. Contractions and the splits by case match letters and apostrophes
 *    only. Splits at numbers and Han runs match no space.
 *    CUT_LINE: a newline matches (a) in the tail of symbols, "[\r\n]*" or "[\r\n/]*",
 *    which goes to c and ends there as at the end of the text, as there is no slash and
 *    no other line end at c, or (b) as white space, all of which it is: "\s*[\r\n]+"
 *    and "\s*[\r\n]" match it and end at c, as does "\s+$" in the left part;
 *    "\s+(?!\S)" matches it at the end of the left part, and in the whole gives way to
 *    "\s+" or "\s", which match it too, as it is one character. That is why no white
 *    space may be before it. No other part of an expression matches a newline.
 *    In a row of splits each sees the pretokens of the one before. If a pretoken crosses c (a
 *    split left it as a gap), the next split has both parts of it, and the same holds.
 *    The hand-written scanners leave no gaps, so one of them in the row cuts at c. A
 *    space before pretokens without one (add_prefix_space) is there already if c is a
 *    space, and is one too many elsewhere: no CUT_LINE.
 *
 * 3. Added tokens. Matches are found from left to right and do not overlap. Those that
 *    end at c or before, and those that begin at c or after it, are the same unless one
 *    crosses c, or looks across c:
 *    CUT_SPACE: only a token with a letter and then a space in it crosses c. rstrip
 *    looks across c after a token that ends in a letter. lstrip stops at the letter on
 *    the left, and at c as well. single_word looks across c from a token that begins
 *    with a space; no word follows a token that ends at c, in either case.
 *    CUT_LINE: only a token with a newline and more after it crosses c. lstrip would
 *    strip the newline of the left part. single_word looks across c from a token that
 *    ends in a newline; no word precedes a token that begins at c, in either case.
 *    rstrip strips the newline, up to c.
 *    CUT_ANY: only a token in which the bytes before and at c are neighbours crosses c;
 *    no other flags are set.
 *
 * 4. BPE works on pretokens.
 */
#include "lib/token/cut.h"

#include <string.h>

#include "lib/token/added.h"
#include "lib/token/norm.h"
#include "lib/token/pre.h"
#include "lib/token/unicode.h"

static bool is_letter(uint8_t b)
{
    return (b | 0x20) >= 'a' && (b | 0x20) <= 'z';
}

/* Returns the kinds that the normalizer allows: 1 above. */
static unsigned normalizer_kinds(const struct tok_norm *norm)
{
    unsigned kinds = CUT_SPACE | CUT_LINE;

    for (size_t i = 0; norm && i < norm->n; i++) {
        switch (norm->step[i].kind) {
        case NORM_NFC:
        case NORM_NFD:
        case NORM_LOWERCASE:
            break;
        case NORM_NFKC:
        case NORM_NFKD:
        case NORM_STRIP_ACCENTS:
            kinds &= CUT_SPACE;
            break;
        default:
            return 0;
        }
    }
    return kinds;
}

/* Returns the kinds that the splits allow: 2 above. */
static unsigned split_kinds(const struct tok_pre *pre)
{
    static const char *const KNOWN[] = {"gpt2",      "cl100k",     "llama3", "qwen2",
                                        "qwen35",    "o200k",      "tekken", "kimi",
                                        "deepseek3", "digits-gpt2"};
    unsigned kinds = CUT_SPACE | CUT_LINE;
    bool any = false;

    for (size_t i = 0; i < pre->n; i++) {
        const struct pre_step *s = &pre->step[i];
        bool known = false;
        if (s->kind == PRE_PREFIX) {
            kinds &= ~(unsigned)CUT_LINE;
            continue;
        }
        if (s->kind != PRE_SCAN || s->invert)
            return 0;
        for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++)
            known |= !strcmp(pre_scan_name(s->scan), KNOWN[k]);
        if (!known)
            return 0;
        any = true;
    }
    return any ? kinds : 0;
}

/* Returns the kinds that an added token, n >= 1 bytes at p, allows: 3 above. */
static unsigned added_kinds(const struct added_token *k, const uint8_t *p, size_t n)
{
    unsigned kinds = CUT_SPACE | CUT_LINE;

    for (size_t i = 0; i + 1 < n; i++) {
        if (is_letter(p[i]) && p[i + 1] == ' ')
            kinds &= ~(unsigned)CUT_SPACE;
        if (p[i] == '\n')
            kinds &= ~(unsigned)CUT_LINE;
    }
    if ((k->rstrip && is_letter(p[n - 1])) || (k->single_word && p[0] == ' '))
        kinds &= ~(unsigned)CUT_SPACE;
    if (k->lstrip || (k->single_word && p[n - 1] == '\n'))
        kinds &= ~(unsigned)CUT_LINE;
    return kinds;
}

unsigned tok_cut_kinds(const struct slu_tokenizer *t)
{
    if (t->is_bytes)
        return CUT_ANY;
    if (!t->pre || t->sp)
        return 0;
    unsigned kinds = normalizer_kinds(t->norm) & split_kinds(t->pre);
    for (size_t i = 0; t->added && i < t->added->n; i++) {
        const struct added_token *k = &t->added->token[i];
        kinds &= added_kinds(k, t->added->text.data + k->text_off, k->text_len);
    }
    return kinds;
}

/* ---- in a text ---- */

static bool is_white(const uint8_t *p)
{
    unsigned len;
    uint32_t c = uni_decode(p, &len);
    enum uni_category k = c <= 0x10FFFF ? uni_category(c) : UNI_CN;

    return k == UNI_ZS || k == UNI_ZL || k == UNI_ZP || k == UNI_CW;
}

/* Whether i is a CUT_LINE; p[i - 1] is a newline, i < n. */
static bool cut_line(const uint8_t *p, size_t i)
{
    if (i < 2 || p[i] == '/' || is_white(p + i))
        return false;
    size_t before = i - 2;
    while (before && (p[before] & 0xC0) == 0x80)
        before--;
    return !is_white(p + before);
}

/* Whether no added token crosses the place between p[0] and p[1]. */
static bool cut_any(const struct tok_added *added, const uint8_t *p)
{
    for (size_t i = 0; added && i < added->n; i++) {
        const uint8_t *text = added->text.data + added->token[i].text_off;
        if (memmem(text, added->token[i].text_len, p, 2))
            return false;
    }
    return true;
}

size_t slu_tokenizer_cut(const struct slu_tokenizer *t, const char *utf8, size_t n_byte,
                         size_t from, size_t to)
{
    const uint8_t *p = (const uint8_t *)utf8;

    if (to > n_byte)
        to = n_byte;
    if (from == 0)
        from = 1;
    if (!t->cut_kinds)
        return SIZE_MAX;
    for (size_t i = from; i < to; i++) {
        if (p[i] == ' ' && is_letter(p[i - 1]) && (t->cut_kinds & CUT_SPACE))
            return i;
        if (p[i - 1] == '\n' && (t->cut_kinds & CUT_LINE) && cut_line(p, i))
            return i;
        if (t->cut_kinds & CUT_ANY && cut_any(t->added, p + i - 1))
            return i;
    }
    return SIZE_MAX;
}
