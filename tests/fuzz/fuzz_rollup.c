/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A file that claims to be a segment is rolled up, and is grown as if it were a tier's file.
 * Whatever it is, it is added or refused.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/store/rollup/rollup.h"
#include "daemon/store/segment/trailer.h"
#include "tests/fuzz/mutate.h"

MUTATE_ALSO_BY(mutate_sqlite)

static char source[] = "/dev/shm/fuzz_rollup.XXXXXX";
static char target[64];

static void forget(void)
{
	char journal[96];
	snprintf(journal, sizeof(journal), "%s-journal", target);
	unlink(journal);
	unlink(source);
	unlink(target);
}

static void put(const char *path, const uint8_t *data, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	/* An attacker who damages a file seals it, too. */
	if (trailer_write(fd) != 0)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	if (fd < 0) {
		fd = mkstemp(source);
		if (fd < 0)
			abort();
		snprintf(target, sizeof(target), "%s.target", source);
		atexit(forget);
	}
	put(source, data, size);
	struct store_error error;
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		unlink(target);
		if (rollup_add(source, target, tier, &error) == 0)
			rollup_seal(target, &error);
		put(target, data, size);
		rollup_add(source, target, tier, &error);
	}
	return 0;
}
