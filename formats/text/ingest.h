/* ingest.h - from files to a stream of documents: the work of the program tokenize.
 *
 * Raw blocks are read in order, parsed and encoded in parallel, and written in order,
 * so the stream does not depend on the number of threads or on the size of blocks. A
 * text larger than a block comes in several blocks, if the tokenizer says where it can
 * be cut (lib/token/cut.h), so memory does not limit its size. Records that are not
 * accepted end the run, or are dropped and counted by reason.
 */
#ifndef SLU_INGEST_H
#define SLU_INGEST_H

#include "formats/text/input.h"
#include "formats/text/needs.h"
#include "formats/text/repair.h"
#include "lib/base/json.h"
#include "lib/filter/idset.h"
#include "lib/filter/expr.h"
#include "lib/filter/fasttext.h"
#include "lib/filter/rules.h"
#include "lib/stream/account.h"
#include "lib/stream/domains.h"
#include "lib/stream/stream.h"
#include "lib/token/tokenizer.h"

SLU_BEGIN_DECLS

/* Good records that are left out, asked in this order. Only JSON lines and rows have
 * fields: a text is SLU_E_UNSUPPORTED with one of the first four. With rules, texts
 * come whole. NULL: not wanted. */
struct slu_ingest_filter {
    const struct slu_idset *ids_keep, *ids_drop; /* field[SLU_FIELD_ID] has a name */
    const struct slu_idset *urls_drop;           /* slu_urlset_read */
    const char *url_field;                       /* a string, or null */
    const struct slu_expr *where;                /* left out if it is false */
    const struct slu_fasttext *fasttext; /* left out if it says no of the text */
    const struct slu_rules *rules;       /* texts that fail one */
    const struct slu_rules *c4_lines; /* edits texts, and leaves out those that fail */
    uint64_t rules_byte;              /* memory of both, in all threads */
    unsigned most_threads; /* for which there is memory to ask `where`; 0: any number */
};

struct slu_step_list; /* lib/stream/steps.h */

struct slu_ingest_cfg {
    const struct slu_tokenizer *tokenizer;
    const struct slu_sources *sources;
    const struct slu_input_format *format; /* NULL: chosen for each source */
    const char *member;                    /* see struct slu_input_cfg */
    struct slu_members *members;           /* of archives; NULL: as without globs */
    struct slu_names *names;               /* receives sources and domains */
    const char *field[SLU_FIELDS]; /* names; NULL: not read; the text has a name */
    unsigned optional;             /* as in struct slu_record_cfg */
    /* Fields of records that documents carry (lib/stream/metadata.h), as the header of
     * out says. A field that is missing, and each of a text, is null. */
    struct slu_meta_fields metadata;
    /* With a name for SLU_FIELD_SPANS (spans.h), which JSON lines and rows have, the
     * streams have masks, and documents without a trained token are dropped. */
    struct slu_ingest_filter filter;
    struct slu_needs_cfg needs;
    /* With needs.met: receive the steps before tokenize that made the documents of out,
     * and of holdout_out, and their files (needs.h); else NULL. */
    struct slu_step_list *origins, *holdout_origins;
    struct slu_seg seg; /* what all documents begin with: the domain and extras of those
                         * whose record and source have none; all else is 0 */
    bool bos, eos;
    double sample;  /* fraction of the documents that is used; 1: all */
    double holdout; /* fraction of these that goes to holdout_out */
    /* of both choices, which depend only on the text: equal texts share their outcome,
     * in any file, order or part */
    uint64_t seed;
    /* the run ends before the document of `out` that would exceed it; UINT64_MAX: none
     */
    uint64_t max_tok;
    /* continue after records that are not accepted, and after sources that end early or
     * are damaged (formats/text/input.h) */
    bool skip_bad;
    /* U+FFFD takes the place of what is not UTF-8 and of lone surrogates (repair.h),
     * instead of the record's rejection; texts come whole */
    bool replace;
    bool skip_missing;    /* the same for records without a text, or with a null */
    bool null_is_missing; /* as in struct slu_record_cfg */
    /* Borrowed; the caller closes them. out takes the documents in order. */
    struct slu_writer *out;
    struct slu_writer *holdout_out; /* NULL: holdout is 0 */
    struct slu_out *rejects;        /* for JSON lines; or NULL */
    uint64_t memory_byte;           /* for blocks, tokens and caches; at least 32 MiB */
    const char *tmpdir;             /* for the ids of a text beyond memory_byte */
    unsigned n_threads;
    /* Called in order, from any thread; may be NULL. */
    void *ctx;
    void (*progress)(void *ctx, uint64_t stored_byte, uint64_t n_tok);
    void (*source_done)(void *ctx, const struct slu_source *src, bool empty);
    /* With skip_bad: called when a source ends early or is damaged. `why` is one line
     * that names file and place. */
    void (*source_broken)(void *ctx, uint64_t document, enum slu_reject reason,
                          const char *why);
};

struct slu_ingest_stat {
    uint64_t sources, empty_sources;
    uint64_t input_byte; /* decompressed */
    uint64_t text_byte;  /* of the encoded documents */
    uint64_t spill_byte; /* written to temporary files */
    uint64_t rejected;   /* records, and parts of records at a source's early end */
    uint64_t filtered;   /* good records that a filter left out */
    uint64_t unread;     /* records of WARC without a text that is read */
    uint64_t truncated;  /* texts that the crawler cut short */
    uint64_t rejected_by[SLU_REJECT_N]; /* both, by reason */
    /* Texts of special tokens that were encoded as ordinary text, and the least id of
     * these tokens; about so many if max_tok ended the run. */
    uint64_t ordinary, ordinary_id;
    uint64_t documents, scored; /* in out and holdout_out: all; those with a score */
    /* Records that were not rejected, and, of these, those without a field that is
     * wanted; records rejected because it is missing or not of its type. */
    uint64_t accepted, lacking[SLU_FIELDS + SLU_META_FIELDS],
        missed[SLU_FIELDS + SLU_META_FIELDS]; /* those of cfg->metadata come last */
    /* Records that the filters looked at, and those of them that have field i of
     * cfg->filter.where, not null; behind these the field of the URL. */
    uint64_t asked, seen[SLU_RECORD_ANY];
    uint64_t repaired; /* records with U+FFFD because of cfg->replace */
    struct slu_repaired repaired_by;
    uint64_t edited, cut_line,
        cut_byte;               /* texts that c4_lines changed and did not leave
                                            out; what it took from these */
    struct slu_domain_row held; /* documents in holdout_out */
    struct slu_domains domains; /* of the documents in out */
    /* max_tok ended the run before this document, which is not counted. */
    bool cut;
    uint64_t cut_source, cut_document;
};

/* Runs the job. Adds to the account: in = records and their text tokens, created = BOS
 * and EOS, dropped under "empty", "untrained", "sample", "holdout" and the reasons of
 * lib/base/json.h; the writer adds `out`. A document that is not in the sample is not
 * encoded, so it counts no tokens; nor does one without a trained token. After the
 * place where max_tok ends the run, nothing is counted and errors are ignored. Errors:
 * those of the modules below; SLU_E_FORMAT names file and line of a bad record. Caller
 * always releases stat->domains. */
SLU_MUST_USE int slu_ingest(const struct slu_ingest_cfg *cfg,
                            struct slu_account *account, struct slu_ingest_stat *stat,
                            struct slu_err *err);

SLU_END_DECLS

#endif
