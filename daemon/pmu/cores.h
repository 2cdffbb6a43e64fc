/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Cores: the core of each hart, and its entry in the platform database
 *
 * One for the whole daemon. The database is read on first use, and again on cores_reload;
 * identities are read again when harts come online. Every hart has an answer: for an undescribed
 * core, or before anything was read, a generic platform.
 */

#include "daemon/kernel/kernel.h"
#include "daemon/kernel/machine.h"
#include "daemon/pmu/hart_group.h"
#include "daemon/pmu/trials.h"
#include "platform-db/platform.h"

struct cores;

/* Folders to read from later; NULL: mperf's own data, and PLATFORM_FOLDER_OVERRIDES ("": none). 0,
 * -ENOMEM, -ENAMETOOLONG. */
int cores_new(const char *builtin, const char *overrides, struct cores **ret_cores);
struct cores *cores_free(struct cores *c);
DEFINE_CLEANUP(struct cores *, cores_free)

/* Read the database if it was not read yet, and the identities of all harts if the set of online
 * harts has changed. Call it with the result of machine_read or machine_refresh. c may be NULL. 0
 * or -ENOMEM. */
int cores_read(struct cores *c, const struct kernel *k, const struct machine *m);

/* Read the database again if it was read before, and match all harts with it. Existing plans stay
 * as they are until they are made again. 0; CORES_WRONG: a file has a new error, and everything
 * stays as it was (cores_error returns it); -ENOMEM. */
enum { CORES_WRONG = 1 };
int cores_reload(struct cores *c);

/* The online harts for which the database has changed what a sampling plan depends on since they
 * were first read: a daemon that has been sampling since then must be restarted to apply it. */
struct hart_set cores_outdated(const struct cores *c);

/* Never NULL, even if c is NULL or the hart does not exist. Borrowed. The platform and what it
 * points to are valid until cores_reload; the identity until the next cores_read. */
const struct platform *cores_platform(const struct cores *c, int hart);
const struct platform_identity *cores_identity(const struct cores *c, int hart);

/* The platform of that name, also one that no hart here has; NULL if there is none. Borrowed until
 * cores_reload. */
const struct platform *cores_platform_named(const struct cores *c, const char *name);

/* A reference to the current database, for a caller that borrows from it beyond cores_reload; free it with
 * platform_db_free. NULL: nothing was read. */
struct platform_db *cores_database(const struct cores *c);

/* The next online hart from `hart` on that is the first with its platform; -1 if there is none. So
 * for (h = cores_kind(c, 0); h >= 0; h = cores_kind(c, h + 1)) visits each kind of core once.
 * O(n_harts squared) in all. */
int cores_kind(const struct cores *c, int hart);
/* Are there online harts of different platforms? */
bool cores_differ(const struct cores *c);
/* The online harts with that platform. */
struct hart_set cores_of(const struct cores *c, const struct platform *p);

/* Set the counters that always-on sampling has pinned on a hart, as a mask: plans of counts there leave
 * them out. 0: none. c may be NULL. */
void cores_hold(struct cores *c, int hart, uint64_t counters);
/* Counters that are pinned on any of these harts, as a mask. */
uint64_t cores_held(const struct cores *c, const struct hart_set *harts);

/* Trials that failed on these cores a moment ago. NULL if c is NULL. cores_reload forgets them. */
struct trials *cores_trials(const struct cores *c);

/* The counting groups that are open on harts. NULL if c is NULL: nothing is shared. */
struct hart_groups *cores_groups(const struct cores *c);

/* The errors in the database's files at the last read, even if that read failed: "FILE:LINE: a
 * sentence"; NULL after the last. */
const char *cores_error(const struct cores *c, size_t i);
/* Did the last read fail, so that older data is in use? */
bool cores_are_older(const struct cores *c);

/* "0-3, 8" in *buffer. Returns buffer. */
const char *hart_set_says(const struct hart_set *s, char *buffer, size_t size);
