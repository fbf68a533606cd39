/* cut.c - where a text can be cut; the proofs.
 *
 * Let a cut be at c. The ids of both parts are those of the whole if every stage of the
 * encoder does the same on the parts as on the whole:
 *
 * 1. Normalizer. The normal forms: what stands at c (a space), or just before it (a
 * newline), is ASCII, and so neither composes with what precedes it nor is moved, and a
 * newline composes with nothing behind it either. So the form of the whole is that of
 * the parts. The characters that the places are known by stay, but for the one before
 * the newline and the one at c behind it: with canonical mappings the first stays no
 * white space, and the second neither that nor a slash; with compatibility mappings the
 * second may become a space: no CUT_LINE. Lowercase maps characters one by one, letters
 * to letters; StripAccents may drop what is next to the newline: no CUT_LINE. The other
 * steps look further, or at the text's ends.
 *
 * 2. Splits. The known ones have no look-behind, so the right part is split as the rest
 * of the whole is if a piece of the whole ends at c. That, and that the left part is
 * split as the whole is up to c, holds if for every piece that begins before c the
 * expression cannot tell c from the end of the text.
 *    CUT_SPACE: the character before c is a letter. In all the expressions a space is
 * taken at a piece's first place ("[^\r\n\p{L}\p{N}]?", " ?"), or in a run of white
 * space, which here begins at c: no piece that begins before c gets past it, and the
 * look-aheads "(?!\S)" and "$" come behind white space only, so that none that began
 * before c is asked at c. Contractions and the splits by case take letters and
 * apostrophes only. Splits at
 * numbers and Han runs take no space.
 *    CUT_LINE: a newline is taken (a) in the tail of symbols, "[\r\n]*" or "[\r\n/]*",
 * which goes to c and ends there as at the end of the text, as there is no slash and no
 * other line end at c, or (b) as white space, in a run that begins and ends with it:
 * "\s*[\r\n]+" and "\s*[\r\n]" take it and end at c, as does "\s+$" in the left part;
 * "\s+(?!\S)" takes it at the end of the left part, and in the whole gives way to "\s+"
 * or "\s", which takes it too, as the run is of one character. That is why no white
 * space may be before it. No other part of an expression takes a newline.
 *    In a row of splits each sees pieces of the one before: where a piece reaches over
 * c (a split that lets it through as a gap), the next one has both parts of it, and the
 * same holds. The hand-written scanners leave no gaps, so one of them in the row cuts
 * at c. A space in front of pieces that have none (add_prefix_space) is not missed
 * where c is a space, and would be too many elsewhere: no CUT_LINE.
 *
 * 3. Added tokens. Matches are found from left to right and do not overlap: those that
 * end at c or before, and those that begin at c or behind it, are the same unless one
 * reaches over c, or looks over it:
 *    CUT_SPACE: reaching over c takes a token with a letter and then a space in it.
 * rstrip looks over c behind a token that ends in a letter. lstrip stops at the letter,
 * on the left, and at c all the same. single_word looks over c from a token that begins
 * with a space; what ends at c has no word behind it either way.
 *    CUT_LINE: reaching over c takes a token with a newline and something behind it.
 * lstrip would take the newline from the left part. single_word looks over c from a
 * token that ends in a newline; what begins at c has no word before it either way. What
 * strips on the right takes the newline, up to c.
 *    CUT_ANY: reaching over c takes a token with the bytes before and at c next to each
 * other in it; no other flags are set.
 *
 * 4. BPE works on pieces.
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

/* 1. */
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

/* 2. */
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

/* 3. The kinds that the token p of n >= 1 bytes leaves. */
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

/* p[i - 1] is a newline, i < n. */
static bool cut_line(const uint8_t *p, size_t i)
{
    if (i < 2 || p[i] == '/' || is_white(p + i))
        return false;
    size_t before = i - 2;
    while (before && (p[before] & 0xC0) == 0x80)
        before--;
    return !is_white(p + before);
}

/* Whether no added token reaches over the place between p[0] and p[1]. */
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
