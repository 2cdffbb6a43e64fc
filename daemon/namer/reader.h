/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Readers: would the kernel let this user do that with this file?
 *
 * Decided from numbers alone, as the kernel decides for a user without capabilities. What cannot be
 * proved (a group that may or may not be the user's, an access control list that does not parse) is
 * decided so that either way the answer holds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Directory services put people into hundreds of groups; the kernel's limit of 65,536 is for
 * servers that stand for many. Of one with more no group is known. */
#define READER_GROUPS_MAX 1024
#define READER_NOBODY UINT32_MAX /* a user who is not known; no file is that user's */

/* ext4 keeps a list in one block: some 500 entries of 8 bytes. A longer one proves nothing. */
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

/* A file as its reader meets it. */
struct permissions {
	uint32_t mode, uid, gid;
	/* The number that stat gives for owners who have none in our user namespace; 0: all have
	 * one. Two files with that owner need not have the same one. */
	uint32_t unmapped;
	/* system.posix_acl_access, as getxattr gives it; n_acl 0: there is none */
	const uint8_t *acl;
	size_t n_acl;
};

/* The user's number and groups, and the pid in the innermost namespace, out of the text of
 * /proc/PID/status. False if it names no user; ret_pid stays as it was where none is given. */
bool reader_of_status(const char *status, struct reader *ret_reader, pid_t *ret_pid);

/* May it do all of `want`? */
bool reader_may(const struct reader *r, const struct permissions *f, unsigned want);

/* Does an access control list of the file matter to anybody else than its owner? */
bool reader_asks_acl(const struct reader *r, uint32_t mode, uint32_t uid);

/* A user and groups against one list; group_owner is the file's group. Total: any bytes. */
enum acl_answer {
	ACL_REFUSES,
	ACL_GRANTS,
	ACL_MALFORMED,
};
enum acl_answer acl_answer(const uint8_t *acl, size_t n, const struct reader *r,
	uint32_t group_owner, uint32_t unmapped, unsigned want);
