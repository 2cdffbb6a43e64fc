/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as an access control list of a file, for readers of all kinds, and as the text of
 * /proc/PID/status. What grants to a user of whom nothing is known must grant to everybody.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/file_access.h"

static const struct reader readers[] = {
	{.uid = 1000, .groups_known = true, .n_groups = 2, .group = {100, 1000}},
	{.uid = 1000, .groups_known = true},
	{.uid = 1000},
	{.uid = 7, .groups_known = true, .n_groups = 1, .group = {7}},
};

static void judge(const uint8_t *acl, size_t n, unsigned want)
{
	static const struct reader nobody = {.uid = READER_NOBODY};
	enum acl_answer to_all = acl_answer(acl, n, &nobody, 100, 0, want);

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		enum acl_answer to_one = acl_answer(acl, n, &readers[i], 100, 0, want);
		if ((to_one == ACL_MALFORMED) != (to_all == ACL_MALFORMED) ||
			(to_all == ACL_GRANTS && to_one != ACL_GRANTS))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reader found;
	pid_t pid = 0;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	judge(data, size, READER_READS);
	judge(data, size, READER_SEARCHES);
	memcpy(text, data, size);
	text[size] = 0;
	if (reader_of_status(text, &found, &pid) &&
		(found.n_groups > READER_GROUPS_MAX || (!found.groups_known && found.n_groups)))
		abort();
	free(text);
	return 0;
}
