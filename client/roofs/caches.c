/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/roofs/caches.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading ---------------------------------------------------------------------------------- */

/* "32768/1,2097152/4": false if it is not. */
static bool read_levels(
	const char *at, const char *end, uint32_t n_harts, struct machine_caches *ret)
{
	struct machine_caches c = {.n_levels = 0};
	while (at < end && c.n_levels < MACHINE_CACHES_MAX) {
		uint64_t bytes;
		uint32_t shared;
		int n = 0;
		if (sscanf(at, "%" SCNu64 "/%" SCNu32 "%n", &bytes, &shared, &n) != 2 ||
			bytes == 0 || at + n > end || (at + n < end && at[n] != ','))
			return false;
		c.level[c.n_levels].bytes = bytes;
		c.level[c.n_levels++].n_sharing = shared > 0 ? shared : n_harts;
		at += n + (at + n < end);
	}
	*ret = c;
	return at == end && c.n_levels > 0;
}

struct machine_caches caches_of(const char *text, uint32_t hart)
{
	struct machine_caches found = {.n_levels = 0};
	for (const char *at = text; *at;) {
		const size_t n = strcspn(at, ";"), n_harts = strcspn(at, ":");
		char harts[ROOF_TEXT_BYTES];
		cpu_set_t set;
		if (n_harts >= n || n_harts >= sizeof(harts))
			return (struct machine_caches){.n_levels = 0};
		memcpy(harts, at, n_harts);
		harts[n_harts] = '\0';
		if (machine_list(harts, &set) && hart < CPU_SETSIZE && CPU_ISSET(hart, &set) &&
			read_levels(at + n_harts + 1, at + n, (uint32_t)CPU_COUNT(&set), &found))
			return found;
		at += n + (at[n] == ';');
	}
	return (struct machine_caches){.n_levels = 0};
}

bool caches_are_stated(const struct machine_caches *caches)
{
	for (size_t i = 0; i < caches->n_levels; i++)
		if (caches->level[i].bytes == 0)
			return false;
	return caches->n_levels > 0;
}
