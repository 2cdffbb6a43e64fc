/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Cores: which core each hart is, and what the platform database knows of it
 *
 * One for the whole daemon. The database is read when somebody first asks, once; identities are
 * read again when harts come. All that is asked of it is answered for every hart: of one that
 * nobody described, or before anything was read, the platform is a generic one.
 */

#include "daemon/pmu/kernel.h"
#include "daemon/pmu/machine.h"
#include "platform-db/platform.h"

struct cores;

/* Read from these folders, later on; NULL: where mperf's own data is, and
 * PLATFORM_FOLDER_OVERRIDES ("": none). 0, -ENOMEM, -ENAMETOOLONG. */
int cores_new(const char *builtin, const char *overrides, struct cores **ret_cores);
struct cores *cores_free(struct cores *c);
DEFINE_CLEANUP(struct cores *, cores_free)

/* Read the database, unless it was, and the identities of all harts, unless those that are online
 * are those of the last time. Call it with what machine_read or machine_refresh says. c may be
 * NULL. 0 or -ENOMEM. */
int cores_read(struct cores *c, const struct kernel *k, const struct machine *m);

/* Never NULL, also for a c that is, and for harts that do not exist. Borrowed. What the platform
 * points to lives as long as c; the identity until the next cores_read. */
const struct platform *cores_platform(const struct cores *c, int hart);
const struct platform_identity *cores_identity(const struct cores *c, int hart);

/* The next hart from `hart` on that is online and whose platform no online hart before it has; -1
 * if there is none. So for (h = cores_kind(c, 0); h >= 0; h = cores_kind(c, h + 1)) passes each
 * kind of core once. O(n_harts squared) in all. */
int cores_kind(const struct cores *c, int hart);
/* Are there online harts of different platforms? */
bool cores_differ(const struct cores *c);
/* The online harts of that platform. */
struct hart_set cores_of(const struct cores *c, const struct platform *p);

/* What was wrong with the database's files, "FILE:LINE: a sentence"; NULL from the last on. */
const char *cores_error(const struct cores *c, size_t i);

/* "0-3, 8" in *buffer. Returns buffer. */
const char *hart_set_says(const struct hart_set *s, char *buffer, size_t size);
