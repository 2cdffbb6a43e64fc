/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The causes as a table, for the code that counts and the code that reports them.
 */
#include "daemon/loops/cause.h"

const struct feed_cause_kind feed_causes[N_FEED_CAUSES] = {
#define CAUSE(id, severity, name) [FEED_##id] = {name, FEED_##severity},
#include "daemon/loops/cause.inc"
};
