/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The service may read files that others may not, so the kernel's answer to its open says nothing
 * about the user for whom a file is opened. This repeats the kernel's decision for that user: the
 * class of the owner, else the access control list, else the class of the group, else that of all
 * others; the first class that applies decides, also by refusing.
 *
 * The groups of users without a process are not known. Then every class that may apply must grant
 * access: mode 0604, for example, refuses the file's group but not others.
 *
 * Root reads all. Capabilities of other users are left out: they may count for a user namespace
 * only. Rules of security modules are left out too: a module cannot be asked about another user.
 *
 * Source: Linux fs/namei.c, acl_permission_check; fs/posix_acl.c, posix_acl_permission and
 * posix_acl_from_xattr; include/uapi/linux/posix_acl.h and posix_acl_xattr.h (6.12).
 */
#include "daemon/namer/file_access.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum belongs {
	NO,
	YES,
	PERHAPS,
};

static enum belongs belongs(const struct reader *r, uint32_t group, uint32_t unmapped)
{
	if (!r->groups_known || (unmapped && group == unmapped))
		return PERHAPS;
	for (uint32_t i = 0; i < r->n_groups; i++)
		if (r->group[i] == group)
			return YES;
	return NO;
}

/* --- access control lists --------------------------------------------------------------------- */

#define ACL_VERSION 2
enum acl_tag {
	ACL_OWNER = 0x01,
	ACL_USER = 0x02,
	ACL_GROUP_OWNER = 0x04,
	ACL_GROUP = 0x08,
	ACL_MASK = 0x10,
	ACL_OTHER = 0x20,
};

struct acl_entry {
	uint16_t tag, rights;
	uint32_t id;
};
_Static_assert(sizeof(struct acl_entry) == 8, "an entry as it is stored");

static struct acl_entry acl_at(const uint8_t *acl, size_t i)
{
	struct acl_entry e;

	memcpy(&e, acl + sizeof(uint32_t) + i * sizeof(e), sizeof(e));
	return (struct acl_entry){le16toh(e.tag), le16toh(e.rights), le32toh(e.id)};
}

static size_t acl_entries(size_t n)
{
	return (n - sizeof(uint32_t)) / sizeof(struct acl_entry);
}

/* Entries are in the order of their tags; owner, group and others once, a mask at most once. */
static bool acl_is_sound(const uint8_t *acl, size_t n)
{
	uint32_t version;
	uint16_t seen = 0, last = 0;

	if (n < sizeof(version) || n > ACL_BYTES_MAX ||
		(n - sizeof(version)) % sizeof(struct acl_entry) != 0)
		return false;
	memcpy(&version, acl, sizeof(version));
	if (le32toh(version) != ACL_VERSION)
		return false;
	for (size_t i = 0; i < acl_entries(n); i++) {
		struct acl_entry e = acl_at(acl, i);
		bool many = e.tag == ACL_USER || e.tag == ACL_GROUP;
		bool known = e.tag && e.tag <= ACL_OTHER && !(e.tag & (e.tag - 1));
		if (!known || e.rights > 7 || e.tag < last || (!many && seen & e.tag))
			return false;
		seen |= e.tag;
		last = e.tag;
	}
	bool named = seen & (ACL_USER | ACL_GROUP);
	return seen & ACL_OWNER && seen & ACL_GROUP_OWNER && seen & ACL_OTHER &&
	       (!named || seen & ACL_MASK);
}

static uint16_t acl_rights(const uint8_t *acl, size_t n, uint16_t tag, uint16_t missing)
{
	for (size_t i = 0; i < acl_entries(n); i++)
		if (acl_at(acl, i).tag == tag)
			return acl_at(acl, i).rights;
	return missing;
}

/* The groups: one of the user's groups that grants is enough; if the user is in a group that does
 * not grant, the entry for others does not apply. */
struct groups_say {
	bool grant, refuse; /* certainly a group of the user */
	bool may_refuse;    /* possibly a group of the user */
};

static struct groups_say acl_groups(const uint8_t *acl, size_t n, const struct reader *r,
	uint32_t group_owner, uint32_t unmapped, unsigned want)
{
	uint16_t mask = acl_rights(acl, n, ACL_MASK, 7);
	struct groups_say say = {0};

	for (size_t i = 0; i < acl_entries(n); i++) {
		struct acl_entry e = acl_at(acl, i);
		if (e.tag != ACL_GROUP_OWNER && e.tag != ACL_GROUP)
			continue;
		enum belongs in = belongs(r, e.tag == ACL_GROUP ? e.id : group_owner, unmapped);
		bool grants = (e.rights & mask & want) == want;
		say.grant |= in == YES && grants;
		say.refuse |= in == YES;
		say.may_refuse |= in != NO && !grants;
	}
	return say;
}

enum acl_answer acl_answer(const uint8_t *acl, size_t n, const struct reader *r,
	uint32_t group_owner, uint32_t unmapped, unsigned want)
{
	if (!acl_is_sound(acl, n))
		return ACL_MALFORMED;

	uint16_t mask = acl_rights(acl, n, ACL_MASK, 7);
	for (size_t i = 0; i < acl_entries(n); i++) {
		struct acl_entry e = acl_at(acl, i);
		if (e.tag != ACL_USER)
			continue;
		bool grants = (e.rights & mask & want) == want;
		if (e.id == r->uid && r->uid != READER_NOBODY && (!unmapped || e.id != unmapped))
			return grants ? ACL_GRANTS : ACL_REFUSES;
		/* an unknown user may be this one */
		if ((r->uid == READER_NOBODY || (unmapped && e.id == unmapped)) && !grants)
			return ACL_REFUSES;
	}
	struct groups_say say = acl_groups(acl, n, r, group_owner, unmapped, want);
	if (say.grant)
		return ACL_GRANTS;
	if (say.refuse || say.may_refuse)
		return ACL_REFUSES;
	return (acl_rights(acl, n, ACL_OTHER, 0) & want) == want ? ACL_GRANTS : ACL_REFUSES;
}

/* --- modes ------------------------------------------------------------------------------------ */

static bool is_owner(const struct reader *r, const struct permissions *f)
{
	return r->uid == f->uid && r->uid != READER_NOBODY &&
	       (!f->unmapped || f->uid != f->unmapped);
}

/* If the reader or the owner is unknown, the reader may be the owner; so the owner's class must
 * grant access too. */
static bool owner_is_unknown(const struct reader *r, const struct permissions *f)
{
	return r->uid == READER_NOBODY || (f->unmapped && f->uid == f->unmapped);
}

bool reader_asks_acl(const struct reader *r, uint32_t mode, uint32_t uid)
{
	return r->uid != 0 && r->uid != uid && mode & S_IRWXG;
}

bool reader_may(const struct reader *r, const struct permissions *f, unsigned want)
{
	if (r->uid == 0)
		return true;
	if (is_owner(r, f))
		return (f->mode >> 6 & want) == want;
	if (owner_is_unknown(r, f) && (f->mode >> 6 & want) != want)
		return false;
	if (f->n_acl && f->mode & S_IRWXG)
		return acl_answer(f->acl, f->n_acl, r, f->gid, f->unmapped, want) == ACL_GRANTS;

	bool group = (f->mode >> 3 & want) == want, other = (f->mode & want) == want;
	switch (belongs(r, f->gid, f->unmapped)) {
	case YES:
		return group;
	case NO:
		return other;
	default:
		return group && other;
	}
}

/* --- who it is -------------------------------------------------------------------------------- */

/* The numbers of a line, at most `size`. If there are more, or the line does not end: none. */
static bool numbers(const char *p, uint32_t *ret_number, uint32_t size, uint32_t *ret_n)
{
	uint32_t n = 0;

	for (;;) {
		while (*p == ' ' || *p == '\t')
			p++;
		if (*p == '\n') {
			*ret_n = n;
			return true;
		}
		char *end;
		unsigned long number = strtoul(p, &end, 10);
		if (end == p || n == size || number > UINT32_MAX)
			return false;
		ret_number[n++] = (uint32_t)number;
		p = end;
	}
}

static const char *line_of(const char *status, const char *key)
{
	const char *p = strstr(status, key);

	return p ? p + strlen(key) : NULL;
}

bool reader_of_status(const char *status, struct reader *ret_reader, pid_t *ret_pid)
{
	/* real, effective, saved and file system id. Source: man proc_pid_status */
	uint32_t uid[4], gid[4], n_uids = 0, n_gids = 0, n_pids = 0, n = 0;
	uint32_t pid[32]; /* as deep as pid namespaces nest: MAX_PID_NS_LEVEL */
	const char *uids = line_of(status, "\nUid:"), *gids = line_of(status, "\nGid:");
	const char *groups = line_of(status, "\nGroups:"), *pids = line_of(status, "\nNSpid:");

	if (!uids || !numbers(uids, uid, 4, &n_uids) || n_uids != 4)
		return false;
	ret_reader->uid = uid[3];
	ret_reader->groups_known = gids && numbers(gids, gid, 4, &n_gids) && n_gids == 4 &&
				   groups &&
				   numbers(groups, ret_reader->group, READER_GROUPS_MAX - 1, &n);
	ret_reader->n_groups = 0;
	if (ret_reader->groups_known) {
		ret_reader->group[n] = gid[3];
		ret_reader->n_groups = n + 1;
	}
	if (pids && numbers(pids, pid, 32, &n_pids) && n_pids > 0)
		*ret_pid = (pid_t)pid[n_pids - 1];
	return true;
}
