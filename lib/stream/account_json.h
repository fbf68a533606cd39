/* account_json.h - the books as reports and manifests have them:
 * "tokens": {"in", "created", "repeated", "padding", "out", "dropped": {reason: n}},
 * the same for "sequences" and "documents" without padding; "from_work" and "to_work"
 * where they are not 0.
 */
#ifndef SLU_ACCOUNT_JSON_H
#define SLU_ACCOUNT_JSON_H

#include "account.h"
#include "lib/base/buf.h"
#include "lib/base/json.h"

/* Appends the three members, each behind `,\n  `. */
SLU_MUST_USE int slu_ledger_put_json(struct slu_buf *b, const struct slu_ledger *l,
                                     struct slu_err *err);
/* From an object that has them. Reasons are borrowed from the document. SLU_E_FORMAT
 * where one is missing, or no such object. */
SLU_MUST_USE int slu_ledger_get_json(struct slu_ledger *l, struct slu_json_value v,
                                     struct slu_err *err);

#endif
