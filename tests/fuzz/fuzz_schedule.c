/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as a schedule. What is taken is within its limits and can be said; what is refused says so in
 * one plain line and changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/syntax/schedule.h"

static void must_be_a_line(const char *text, size_t size)
{
	size_t n = strnlen(text, size);
	if (n == 0 || n == size)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct schedule s, before;
	struct schedule_error error = {""};
	char text[4096];
	memset(&s, 0x5a, sizeof(s));
	before = s;
	int r = schedule_parse((const char *)data, size, "/f/a.schedule", &s, &error);
	if (r == 0) {
		if (s.duration_ns == 0 || s.keep == 0 || s.max_use == 0 || s.share_ppm == 0 ||
			s.share_ppm > 1000000 ||
			(s.kind == SCHEDULE_CALENDAR) != (s.n_calendars > 0))
			abort();
		must_be_a_line(schedule_says(&s, text, sizeof(text)), sizeof(text));
	} else if (memcmp(&s, &before, sizeof(s)) != 0) {
		abort();
	} else if (r == SCHEDULE_WRONG) {
		must_be_a_line(error.text, sizeof(error.text));
	}
	return 0;
}
