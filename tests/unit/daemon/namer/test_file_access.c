/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Decisions to read by numbers alone: modes, groups and access control lists, as the kernel
 * decides; where something is not known, only what every case grants.
 */

#include "daemon/namer/file_access.h"

#include "tests/unit/test.h"

#define OWNER 1000u
#define GROUP 500u
#define OTHER_GROUP 501u

static struct reader member = {.uid = 2000, .groups_known = true, .n_groups = 1, .group = {GROUP}};
static struct reader stranger = {.uid = 3000, .groups_known = true, .n_groups = 1, .group = {9}};
static struct reader owner = {.uid = OWNER, .groups_known = true, .n_groups = 1, .group = {9}};
static struct reader gone = {.uid = 2000}; /* whose groups nobody knows */
static struct reader nobody = {.uid = READER_NOBODY};
static struct reader root = {.uid = 0, .groups_known = true};

static bool reads(const struct reader *r, uint32_t mode)
{
	struct permissions f = {.mode = mode, .uid = OWNER, .gid = GROUP};

	return reader_may(r, &f, READER_READS);
}

TEST(one_class_decides_alone)
{
	ck_assert(reads(&owner, 0400) && !reads(&owner, 0077));
	ck_assert(reads(&member, 0040) && !reads(&member, 0704));
	ck_assert(reads(&stranger, 0004) && !reads(&stranger, 0770));
	ck_assert(reads(&root, 0));
}

TEST(searching_is_not_reading)
{
	struct permissions f = {.mode = 0711, .uid = OWNER, .gid = GROUP};

	ck_assert(reader_may(&stranger, &f, READER_SEARCHES));
	ck_assert(!reader_may(&stranger, &f, READER_READS));
	ck_assert(!reader_may(&stranger, &f, READER_READS | READER_SEARCHES));
}

TEST(groups_that_are_not_known_must_all_grant)
{
	ck_assert(reads(&gone, 0044));
	ck_assert(!reads(&gone, 0004)); /* may be of the group, which is refused */
	ck_assert(!reads(&gone, 0040)); /* may not be of the group */
}

TEST(user_who_is_not_known_reads_what_all_do)
{
	ck_assert(reads(&nobody, 0444));
	ck_assert(!reads(&nobody, 0044) && !reads(&nobody, 0404) && !reads(&nobody, 0440));
}

TEST(owner_without_a_number_here_is_not_another_one)
{
	struct reader unmapped = {
		.uid = 65534, .groups_known = true, .n_groups = 1, .group = {65534}};
	struct permissions f = {.mode = 0600, .uid = 65534, .gid = 65534};

	ck_assert(reader_may(&unmapped, &f, READER_READS)); /* it is somebody's number */
	f.unmapped = 65534;
	ck_assert(!reader_may(&unmapped, &f, READER_READS));
	f.mode = 0660;
	ck_assert(!reader_may(&unmapped, &f, READER_READS));
	f.mode = 0644;
	ck_assert(reader_may(&unmapped, &f, READER_READS));
}

/* --- access control lists --------------------------------------------------------------------- */

struct entry {
	uint16_t tag, rights;
	uint32_t id;
};
static uint8_t acl[ACL_BYTES_MAX + 8];

static size_t list(const struct entry *e, size_t n)
{
	memcpy(acl, &(uint32_t){2}, 4);
	memcpy(acl + 4, e, n * sizeof(*e));
	return 4 + n * sizeof(*e);
}
#define LIST(...)                                                                                  \
	list((const struct entry[]){__VA_ARGS__},                                                  \
		sizeof((const struct entry[]){__VA_ARGS__}) / sizeof(struct entry))
#define NO_ID UINT32_MAX

static enum acl_answer answer(size_t n, const struct reader *r)
{
	return acl_answer(acl, n, r, GROUP, 0, READER_READS);
}

TEST(named_user_is_granted_within_the_mask)
{
	size_t n = LIST({1, 6, NO_ID}, {2, 4, 3000}, {4, 0, NO_ID}, {16, 4, NO_ID}, {32, 0, NO_ID});

	ck_assert_int_eq(answer(n, &stranger), ACL_GRANTS);
	ck_assert_int_eq(answer(n, &member), ACL_REFUSES);
	n = LIST({1, 6, NO_ID}, {2, 4, 3000}, {4, 0, NO_ID}, {16, 1, NO_ID}, {32, 4, NO_ID});
	ck_assert_int_eq(answer(n, &stranger), ACL_REFUSES);
}

TEST(named_user_is_refused_what_all_others_are_granted)
{
	size_t n = LIST({1, 6, NO_ID}, {2, 0, 3000}, {4, 4, NO_ID}, {16, 7, NO_ID}, {32, 4, NO_ID});

	ck_assert_int_eq(answer(n, &stranger), ACL_REFUSES);
	ck_assert_int_eq(answer(n, &member), ACL_GRANTS);
	ck_assert_int_eq(answer(n, &gone), ACL_GRANTS);
	ck_assert_int_eq(answer(n, &nobody), ACL_REFUSES); /* may be the one */
}

TEST(one_group_that_grants_suffices_and_one_that_does_not_keeps_from_the_others)
{
	struct reader both = {
		.uid = 7, .groups_known = true, .n_groups = 2, .group = {GROUP, OTHER_GROUP}};
	size_t n = LIST(
		{1, 6, NO_ID}, {4, 0, NO_ID}, {8, 4, OTHER_GROUP}, {16, 7, NO_ID}, {32, 4, NO_ID});

	ck_assert_int_eq(answer(n, &both), ACL_GRANTS);
	ck_assert_int_eq(answer(n, &member), ACL_REFUSES);
	ck_assert_int_eq(answer(n, &stranger), ACL_GRANTS);
	ck_assert_int_eq(answer(n, &gone), ACL_REFUSES);
}

TEST(list_decides_in_place_of_the_group_bits)
{
	size_t n = LIST({1, 6, NO_ID}, {4, 0, NO_ID}, {8, 4, 9}, {16, 4, NO_ID}, {32, 0, NO_ID});
	struct permissions f = {.mode = 0640, .uid = OWNER, .gid = GROUP, .acl = acl, .n_acl = n};

	ck_assert(!reader_may(&member, &f, READER_READS)); /* the bits of the mode are the mask */
	ck_assert(reader_may(&stranger, &f, READER_READS));
	ck_assert(reader_may(&owner, &f, READER_READS));
	f.mode = 0600; /* an empty mask */
	ck_assert(!reader_may(&stranger, &f, READER_READS));
}

TEST(list_that_is_none_refuses)
{
	ck_assert_int_eq(
		answer(LIST({1, 7, NO_ID}, {4, 7, NO_ID}, {32, 7, NO_ID}), &stranger), ACL_GRANTS);
	ck_assert_int_eq(answer(LIST({1, 7, NO_ID}, {4, 7, NO_ID}, {32, 7, NO_ID}) - 1, &stranger),
		ACL_MALFORMED);
	ck_assert_int_eq(answer(LIST({4, 7, NO_ID}, {32, 7, NO_ID}), &stranger), ACL_MALFORMED);
	ck_assert_int_eq(answer(LIST({1, 7, NO_ID}, {32, 7, NO_ID}), &stranger), ACL_MALFORMED);
	ck_assert_int_eq(answer(LIST({1, 7, NO_ID}, {4, 7, NO_ID}), &stranger), ACL_MALFORMED);
	ck_assert_int_eq(answer(LIST({1, 7, NO_ID}, {32, 7, NO_ID}, {4, 7, NO_ID}), &stranger),
		ACL_MALFORMED);
	ck_assert_int_eq(answer(LIST({1, 7, NO_ID}, {4, 7, NO_ID}, {32, 7, NO_ID}, {32, 7, NO_ID}),
				 &stranger),
		ACL_MALFORMED);
	/* a named one without a mask */
	ck_assert_int_eq(
		answer(LIST({1, 7, NO_ID}, {2, 7, 3000}, {4, 7, NO_ID}, {32, 7, NO_ID}), &stranger),
		ACL_MALFORMED);
	ck_assert_int_eq(answer(LIST({1, 7, NO_ID}, {3, 7, NO_ID}, {4, 7, NO_ID}, {32, 7, NO_ID}),
				 &stranger),
		ACL_MALFORMED);
	ck_assert_int_eq(answer(LIST({1, 7, NO_ID}, {4, 8, NO_ID}, {32, 7, NO_ID}), &stranger),
		ACL_MALFORMED);
	size_t n = LIST({1, 7, NO_ID}, {4, 7, NO_ID}, {32, 7, NO_ID});
	acl[0] = 1; /* another version */
	ck_assert_int_eq(answer(n, &stranger), ACL_MALFORMED);
	ck_assert_int_eq(answer(3, &stranger), ACL_MALFORMED);
	ck_assert_int_eq(answer(0, &stranger), ACL_MALFORMED);
	struct permissions f = {.mode = 0777, .uid = OWNER, .gid = GROUP, .acl = acl, .n_acl = 3};
	ck_assert(!reader_may(&stranger, &f, READER_READS));
}

TEST(list_of_a_thousand_entries_is_the_longest)
{
	size_t most = (ACL_BYTES_MAX - 4) / 8;
	struct entry *many = calloc(most + 1, sizeof(*many));
	ck_assert_ptr_nonnull(many);
	for (size_t with = most; with <= most + 1; with++) {
		many[0] = (struct entry){1, 7, NO_ID};
		for (size_t i = 1; i < with - 3; i++)
			many[i] = (struct entry){2, 7, (uint32_t)i};
		many[with - 3] = (struct entry){4, 7, NO_ID};
		many[with - 2] = (struct entry){16, 7, NO_ID};
		many[with - 1] = (struct entry){32, 7, NO_ID};
		ck_assert_int_eq(answer(list(many, with), &stranger),
			with == most ? ACL_GRANTS : ACL_MALFORMED);
	}
	free(many);
}

/* --- /proc/PID/status ------------------------------------------------------------------------- */

static struct reader found;
static pid_t inside;

static bool parse(const char *status)
{
	found = (struct reader){.uid = 77};
	inside = 5;
	return reader_of_status(status, &found, &inside);
}

#define UIDS "Name:\tx\nUid:\t1\t2\t3\t4\n"

TEST(file_system_user_and_all_groups_are_read)
{
	ck_assert(parse(UIDS "Gid:\t5\t6\t7\t8\nGroups:\t24 25 \nNSpid:\t4711\t12\t1\n"));
	ck_assert_uint_eq(found.uid, 4);
	ck_assert(found.groups_known);
	ck_assert_uint_eq(found.n_groups, 3);
	ck_assert_uint_eq(found.group[0], 24);
	ck_assert_uint_eq(found.group[2], 8);
	ck_assert_int_eq(inside, 1);
}

TEST(process_without_groups_has_its_first)
{
	ck_assert(parse(UIDS "Gid:\t5\t6\t7\t8\nGroups:\t \n"));
	ck_assert(found.groups_known && found.n_groups == 1 && found.group[0] == 8);
	ck_assert_int_eq(inside, 5);
}

TEST(more_groups_than_are_read_are_not_known)
{
	char text[32 + 12 * READER_GROUPS_MAX];

	for (int n = READER_GROUPS_MAX - 1; n <= READER_GROUPS_MAX; n++) {
		char *p = text + sprintf(text, UIDS "Gid:\t5\t6\t7\t8\nGroups:\t");
		for (int i = 0; i < n; i++)
			p += sprintf(p, "%d ", i);
		strcpy(p, "\n");
		ck_assert(parse(text));
		ck_assert_uint_eq(found.uid, 4);
		ck_assert(found.groups_known == (n < READER_GROUPS_MAX));
		ck_assert_uint_eq(found.n_groups, n < READER_GROUPS_MAX ? READER_GROUPS_MAX : 0);
	}
}

TEST(text_that_names_no_user_is_nobody)
{
	ck_assert(!parse(""));
	ck_assert(!parse("Uid:\t1\t2\t3\t4\n")); /* not in a line of its own */
	ck_assert(!parse("Name:\tx\nUid:\t1\t2\t3\n"));
	ck_assert(!parse("Name:\tx\nUid:\t1\t2\t3\t4"));
	ck_assert(!parse("Name:\tx\nUid:\t1\t2\t3\t4294967296\n"));
	ck_assert(!parse("Name:\tx\nUid:\t1 2 3 x\n"));
	ck_assert(parse(UIDS) && !found.groups_known);
	ck_assert(parse(UIDS "Gid:\t5\t6\t7\t8\nGroups:\t1 2") && !found.groups_known);
}
