/* tokenize.h - what the files of `tokenize` share. Private to tools/tokenize. */
#ifndef SLU_TOKENIZE_PRIVATE_H
#define SLU_TOKENIZE_PRIVATE_H

#include <limits.h>

#include "formats/text/ingest.h"
#include "formats/text/members.h"
#include "formats/text/sources.h"
#include "lib/token/tokenizer.h"
#include "tools/cli/cli.h"
#include "tools/cli/cli_inputs.h"
#include "tools/cli/cli_list.h"

struct tokenize_opts {
    const char *tokenizer_name; /* for the provenance: the name of a built-in
                                   tokenizer, or the family of the tokenizer in a file;
                                   never the file's name */
    char family[48];
    char file[PATH_MAX]; /* the tokenizer's file in the folder that -t names */
    const char *tokenizer, *pattern, *eos;
    const char *field[SLU_FIELDS];
    const char *domain, *domain_default, *domain_from;
    const char *files_from, *include, *exclude, *source_prefix;
    const char *source, *source_name; /* --source as given; its name */
    uint64_t source_base; /* number of the first file, or of standard input */
    const char *holdout_output, *rejects, *where;
    struct cli_list ids_keep, ids_drop, urls_drop;
    const char *url_field;
    const char *metadata_text; /* as given, for the provenance */
    struct slu_meta_fields metadata;
    struct slu_expr *where_expr; /* compiled */
#define TOKENIZE_RULES 16
    const char *rules[TOKENIZE_RULES]; /* as given */
    unsigned n_rules;
    const char *rules_text; /* for the provenance */
    struct slu_rules *rule_set;
    uint64_t rules_byte;    /* memory of the rules */
    unsigned where_threads; /* for which there is memory to ask --where; 0: any */
    struct tokenize_fasttext {
        char file[PATH_MAX];
        const char *id; /* for the provenance: a hash of the model, and the condition */
        const char *label; /* borrowed; ends at ">=" */
        size_t label_len;
        double least;
        char text[PATH_MAX];
        struct slu_fasttext *model;
    } fasttext;
    double holdout, sample;
    uint64_t max_tokens;
    const char *member; /* the extension of --member, without a dot */
    int format, special, on_error, on_missing;
    bool bos, no_eos, no_vocab, no_cache, list_domains, c4_lines;
    /* The sources found for the manifest are also those that are read: a list from a
     * pipe, or a folder, could differ the second time. */
    bool found;
    uint64_t leak_id;           /* of slu_tokenizer_leak */
    struct slu_needs_cfg needs; /* set by tokenize_follow_needs */
    struct slu_sources sources;
    struct slu_members members; /* of archives */
};

/* sources.c: names of --format, and the format named; PARQUET: its number. */
enum { TOKENIZE_PARQUET = 5, TOKENIZE_WDS, TOKENIZE_WARC };
extern const char *const tokenize_formats[];
const struct slu_input_format *tokenize_format(const struct tokenize_opts *o);
/* Finds the files once, and a part's share of them. */
SLU_MUST_USE int tokenize_find_sources(struct cli_ctx *ctx, struct slu_err *err);
/* Adds the inputs of a part: its sources, its share of their bytes, the vocabulary and
 * the files of the filters. */
SLU_MUST_USE int tokenize_inputs(struct cli_ctx *ctx, struct cli_inputs *in,
                                 struct slu_err *err);
/* Warns of what was left out of folders, and of globs that no file matches. */
void tokenize_warn_left_out(struct cli_ctx *ctx);
/* The same for archives, when all are read. SLU_E_USAGE if --include chose nothing. */
SLU_MUST_USE int tokenize_check_members(struct cli_ctx *ctx, struct slu_err *err);
/* Sets o->tokenizer to the file in it, if it is a folder. An error says how to get the
 * file, if there is none. */
SLU_MUST_USE int tokenize_find_file(struct tokenize_opts *o, struct slu_err *err);

/* needs.c: looks for the field `needs` (formats/text/needs.h) in the first record of the
 * first source, and sets the options that it asks for; SLU_E_USAGE if one is given that
 * is against it. Standard input and pipes stay open for the reader. */
SLU_MUST_USE int tokenize_follow_needs(struct cli_ctx *ctx, uint64_t memory_byte,
                                       struct slu_err *err);

/* Warns of texts of special tokens that were encoded as ordinary text, unless --special
 * says that this is meant. */
void tokenize_warn_ordinary(struct cli_ctx *ctx, const struct slu_vocab_table *v,
                            const struct slu_ingest_stat *s);

/* Whether the tokenizer is a file, not one that the program contains. */
bool tokenize_from_file(const struct tokenize_opts *o);
/* For cli_opt.file; after tokenize_find_file. */
const char *tokenize_own_file(const void *opts);

/* Loads the tokenizer, and sets the ids of the header and the vocabulary of names, which
 * borrows it. Writes its name to the provenance and to --stats, and the warnings about
 * it. The caller frees *t, also after an error. */
SLU_MUST_USE int tokenize_load(struct cli_ctx *ctx, struct slu_tokenizer **t,
                               struct slu_header *h, struct slu_names *names,
                               struct slu_err *err);

/* fields.c: --metadata. */
int tokenize_parse_metadata(void *opts, const char *value, struct slu_err *err);
/* Checks the options about domains. */
SLU_MUST_USE int tokenize_check_domains(const struct tokenize_opts *o,
                                        struct slu_err *err);
/* Checks that --domain-from suits the sources. */
SLU_MUST_USE int tokenize_check_paths(struct cli_ctx *ctx, struct slu_err *err);
/* SLU_E_FORMAT if no document has a field that an option names: the name is mistyped. A
 * part of a job only warns, because other parts may have the field; so does a run in
 * which fewer than a tenth have it. */
SLU_MUST_USE int tokenize_check_fields(struct cli_ctx *ctx,
                                       const struct slu_ingest_stat *s,
                                       struct slu_err *err);
/* The same for the fields that filters look at; those that --where compares with null
 * may be missing everywhere, which is a warning. */
SLU_MUST_USE int tokenize_check_filters(struct cli_ctx *ctx,
                                        const struct slu_ingest_stat *s,
                                        struct slu_err *err);
const char *tokenize_fasttext_file(const void *opts);
int tokenize_parse_fasttext(void *opts, const char *value, struct slu_err *err);
/* rules.c: --rules and --c4-lines. */
int tokenize_parse_rules(void *opts, const char *value, struct slu_err *err);
/* Whether --rules asks for the list of rules; prints it. */
bool tokenize_lists_rules(const struct tokenize_opts *o);
SLU_MUST_USE int tokenize_list_rules(struct slu_err *err);
SLU_MUST_USE int tokenize_rule_inputs(struct tokenize_opts *o, struct cli_inputs *in,
                                      struct slu_err *err);
/* Makes what --c4-lines needs. *memory_byte: less what the rules need. */
SLU_MUST_USE int tokenize_make_rules(struct tokenize_opts *o, uint64_t *memory_byte,
                                     struct slu_err *err);
void tokenize_report_edits(struct cli_ctx *ctx, const struct slu_ingest_stat *s);
/* Compiles --where, and reads the lists. *memory_byte: what they leave of -M. */
SLU_MUST_USE int tokenize_make_filters(struct cli_ctx *ctx, uint64_t *memory_byte,
                                       struct slu_err *err);
/* SLU_E_FORMAT if all records were rejected: they are of another kind than the options
 * say. Other parts of a job may have good ones. */
SLU_MUST_USE int tokenize_check_taken(const struct cli_ctx *ctx,
                                      const struct slu_ingest_stat *s,
                                      struct slu_err *err);
/* Adds the counts of what was rejected and filtered to --stats, and warns about records
 * that were rejected, and if the filters left all out. */
void tokenize_report_left_out(struct cli_ctx *ctx, const struct slu_ingest_stat *s);
void tokenize_release_filters(struct tokenize_opts *o);
/* A field that a filter looks at. */
struct tokenize_filter_field {
    const char *option, *name;
    bool may_lack; /* documents need not have it */
};
/* Field i of those that the filters look at; false: there are no more. */
bool tokenize_filter_field(const struct tokenize_opts *o, size_t i,
                           struct tokenize_filter_field *f);
/* Adds to --stats the fields that options name, and those that filters need: how many
 * documents have them, and how many could. */
void tokenize_report_fields(struct cli_ctx *ctx, const struct slu_ingest_stat *s);

#endif
