/* account_json.h - the account in the JSON of reports and manifests:
 * "tokens": {"in", "created", "repeated", "padding", "out", "dropped": {reason: n}};
 * "sequences" and "documents" likewise, without padding. "from_work" and "to_work" are
 * left out if both are 0; "replaced": {"records", "invalid-utf8", "lone-surrogate"}, if
 * its first is.
 */
#ifndef SLU_ACCOUNT_JSON_H
#define SLU_ACCOUNT_JSON_H

#include "account.h"
#include "lib/base/buf.h"
#include "lib/base/json.h"

/* Appends the members, each after `,\n  `. */
SLU_MUST_USE int slu_account_put_json(struct slu_buf *b, const struct slu_account *l,
                                      struct slu_err *err);
/* Reads the members of v. Reasons are borrowed from v's document. SLU_E_FORMAT if
 * a member is missing or invalid. */
SLU_MUST_USE int slu_account_get_json(struct slu_account *l, struct slu_json_value v,
                                      struct slu_err *err);

#endif
