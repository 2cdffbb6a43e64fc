/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Cores: which core each hart is, and what the platform database knows of it
 *
 * One for the whole daemon. The database is read when somebody first asks, and again when told to;
 * identities are read again when harts come. All that is asked of it is answered for every hart: of
 * one that nobody described, or before anything was read, the platform is a generic one.
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

/* Read the database anew, where it was read before, and match all harts with it. Plans that were
 * made stay as they are: what a platform says otherwise now, they learn when they are made again.
 * 0; CORES_WRONG: a file is wrong that was not, or is so in another way, and all stays as it was
 * (cores_error tells what is wrong); -ENOMEM. */
enum { CORES_WRONG = 1 };
int cores_reload(struct cores *c);

/* The online harts for which the database says otherwise, of what a plan of sampling stands on,
 * than when they were first read: a daemon that samples since then must be started anew to follow.
 */
struct hart_set cores_outdated(const struct cores *c);

/* Never NULL, also for a c that is, and for harts that do not exist. Borrowed. The platform and
 * what it points to live until cores_reload; the identity until the next cores_read. */
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

/* What was wrong with the database's files when last read, also in vain, "FILE:LINE: a sentence";
 * NULL from the last on. */
const char *cores_error(const struct cores *c, size_t i);
/* Were they read in vain, so that what is in force is older than they are? */
bool cores_are_older(const struct cores *c);

/* "0-3, 8" in *buffer. Returns buffer. */
const char *hart_set_says(const struct hart_set *s, char *buffer, size_t size);
