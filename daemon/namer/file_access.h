/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Readers: would the kernel allow this user this access to this file?
 *
 * Decided from ids and modes only, as the kernel decides for a user without capabilities. If
 * something is not certain (a group that may or may not be the user's, an access control list that
 * does not parse), access is granted only if it holds either way.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Directory services put people into hundreds of groups; the kernel's limit of 65,536 is for
 * servers that act for many users. For a user with more groups, none is known. */
#define READER_GROUPS_MAX 1024
#define READER_NOBODY UINT32_MAX /* an unknown user, who owns no file */

/* ext4 keeps a list in one block: about 500 entries of 8 bytes. A longer one is not evaluated. */
#define ACL_BYTES_MAX 8192

enum {
	READER_SEARCHES = 1, /* of a directory */
	READER_READS = 4,
};

struct reader {
	uint32_t uid; /* READER_NOBODY: unknown */
	bool groups_known;
	uint32_t n_groups;
	uint32_t group[READER_GROUPS_MAX];
};

/* Permissions of a file. */
struct permissions {
	uint32_t mode, uid, gid;
	/* The uid that stat gives for owners that are not mapped in our user namespace; 0: all are
	 * mapped. Files with this uid may have different owners. */
	uint32_t unmapped;
	/* system.posix_acl_access, as returned by getxattr; n_acl 0: none */
	const uint8_t *acl;
	size_t n_acl;
};

/* Parse the uid and groups, and the pid in the innermost namespace, from the text of
 * /proc/PID/status. False if it has no uid; ret_pid is untouched if it has no pid. */
bool reader_of_status(const char *status, struct reader *ret_reader, pid_t *ret_pid);

/* Are all of `want` allowed? */
bool reader_may(const struct reader *r, const struct permissions *f, unsigned want);

/* Does an access control list of the file matter to anyone except its owner? */
bool reader_asks_acl(const struct reader *r, uint32_t mode, uint32_t uid);

/* Check a user and groups against one list; group_owner is the file's group. Accepts any bytes.
 * Exported for tests. */
enum acl_answer {
	ACL_REFUSES,
	ACL_GRANTS,
	ACL_MALFORMED,
};
enum acl_answer acl_answer(const uint8_t *acl, size_t n, const struct reader *r,
	uint32_t group_owner, uint32_t unmapped, unsigned want);
