/* rules.h - quality rules for texts: the filters of datatrove 0.10 (Apache 2.0) and their
 * defaults, on words and sentences of our own (text.h).
 *
 *   gopher-quality, gopher-repetition  Rae et al. 2021, table A1 and section A1.1
 *   c4                                 Raffel et al. 2020; decides as its edited lines do
 *   fineweb                            Penedo et al. 2024
 *
 * A rule compares a figure of the text with a threshold. A text fails by the first rule
 * that it does not meet, in the order of enum slu_rule within a family, and of the
 * families as given. An empty text meets all rules.
 *
 * Lengths are numbers of characters. Lines, words and n-grams that occur again are found
 * by a hash and then compared, so equal hashes do not matter.
 *
 * Thread safety: slu_rules is read-only once made; a slu_rules_run belongs to one thread.
 */
#ifndef SLU_FILTER_RULES_H
#define SLU_FILTER_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

SLU_BEGIN_DECLS

/* The thresholds. By most of them a text can fail; the others belong to these. */
enum slu_rule {
    SLU_RULE_MIN_DOC_WORDS,
    SLU_RULE_MAX_DOC_WORDS,
    SLU_RULE_MIN_AVG_WORD_LENGTH,
    SLU_RULE_MAX_AVG_WORD_LENGTH,
    SLU_RULE_MAX_HASH_WORD_RATIO,
    SLU_RULE_MAX_ELLIPSIS_WORD_RATIO,
    SLU_RULE_MAX_BULLET_LINES_RATIO,
    SLU_RULE_MAX_ELLIPSIS_LINES_RATIO,
    SLU_RULE_MIN_ALPHA_WORDS_RATIO,
    SLU_RULE_MIN_STOP_WORDS,
    SLU_RULE_DUP_PARA_FRAC,
    SLU_RULE_DUP_PARA_CHAR_FRAC,
    SLU_RULE_DUP_LINE_FRAC,
    SLU_RULE_DUP_LINE_CHAR_FRAC,
    SLU_RULE_TOP_2_GRAM,
    SLU_RULE_TOP_3_GRAM,
    SLU_RULE_TOP_4_GRAM,
    SLU_RULE_DUP_5_GRAM,
    SLU_RULE_DUP_6_GRAM,
    SLU_RULE_DUP_7_GRAM,
    SLU_RULE_DUP_8_GRAM,
    SLU_RULE_DUP_9_GRAM,
    SLU_RULE_DUP_10_GRAM,
    SLU_RULE_C4_MAX_WORD_LENGTH,
    SLU_RULE_C4_CITATIONS,
    SLU_RULE_C4_TERMINAL_PUNCT,
    SLU_RULE_C4_MIN_WORDS_PER_LINE,
    SLU_RULE_C4_LOREM_IPSUM,
    SLU_RULE_C4_JAVASCRIPT,
    SLU_RULE_C4_CURLY_BRACKET,
    SLU_RULE_C4_POLICY,
    SLU_RULE_C4_MIN_NUM_SENTENCES,
    SLU_RULE_LINE_PUNCT_RATIO,
    SLU_RULE_LINE_PUNCT_EXCLUDE_ZERO,
    SLU_RULE_SHORT_LINE_RATIO,
    SLU_RULE_SHORT_LINE_LENGTH,
    SLU_RULE_CHAR_DUPLICATES_RATIO,
    SLU_RULE_NEW_LINE_RATIO,
    SLU_RULE_N
};

/* "gopher-quality.min_doc_words", ...; static. */
const char *slu_rule_name(enum slu_rule r);

struct slu_rules;

/* Makes a set of no family. Caller frees with slu_rules_free. */
SLU_MUST_USE int slu_rules_new(struct slu_rules **r, struct slu_err *err);
/* Adds families, separated by commas: names as above, or files of thresholds.
 *
 * A line of a file is "FAMILY" or "FAMILY.NAME = VALUE"; both add the family, with the
 * defaults for what the file does not set. VALUE is a number, "on" or "off"; for
 * gopher-quality.stop_words, words. Empty lines and those that begin with "#" are left
 * out. SLU_E_USAGE: no family and no file has this name, or a family comes twice;
 * SLU_E_FORMAT, with file and line: a line is no such line. */
SLU_MUST_USE int slu_rules_add(struct slu_rules *r, const char *list,
                               struct slu_err *err);
/* Whether a name is a family's, not a file's. */
bool slu_rules_is_family(const char *name);
/* The families and all thresholds that are not defaults, in one line. Borrowed. */
const char *slu_rules_text(const struct slu_rules *r);
/* Whether a family of r needs memory in proportion to the text. */
bool slu_rules_grow(const struct slu_rules *r);
/* Appends all families with their defaults, as a file. */
SLU_MUST_USE int slu_rules_defaults(struct slu_buf *out, struct slu_err *err);
/* NULL is legal. */
void slu_rules_free(struct slu_rules *r);

struct slu_rules_run;

/* Borrows r. most_byte: memory for one text. Caller frees with slu_rules_run_free. */
SLU_MUST_USE int slu_rules_run_new(struct slu_rules_run **run,
                                   const struct slu_rules *r, uint64_t most_byte,
                                   struct slu_err *err);
/* Sets *failed to the rule that a text, which is valid UTF-8, fails by; SLU_RULE_N: it
 * meets all rules. SLU_E_LIMIT: the text needs more memory. */
SLU_MUST_USE int slu_rules_ask(struct slu_rules_run *run, const char *text, size_t n,
                               enum slu_rule *failed, struct slu_err *err);

/* What C4 leaves of a text. */
struct slu_c4_cut {
    const char *text; /* in memory of the run until its next call, or the text itself */
    size_t n;
    uint64_t n_line; /* lines that were left out */
    bool changed;
};
/* Edits a text as c4 does, by the thresholds of r: leaves lines and citations out, and
 * white space around lines. *failed as above. */
SLU_MUST_USE int slu_rules_c4_lines(struct slu_rules_run *run, const char *text,
                                    size_t n, struct slu_c4_cut *cut,
                                    enum slu_rule *failed, struct slu_err *err);
/* NULL is legal. */
void slu_rules_run_free(struct slu_rules_run *run);

SLU_END_DECLS

#endif
