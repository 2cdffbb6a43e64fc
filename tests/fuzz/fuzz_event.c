/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whatever -e is given, and whatever sysfs says: the input is the argument, a newline, and the
 * text of every file that the parser asks for (a format, an alias, an id).
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/event/event.h"

struct input {
	const char *text; /* of every file but types */
	size_t n;
};

static ssize_t fuzz_read(void *u, const char *path, char *buffer, size_t size)
{
	const struct input *in = u;
	const char *text = in->text;
	size_t n = in->n;
	if (strstr(path, "/..") || strstr(path, "/./"))
		abort(); /* a name became a way out of its folder */
	if (strcmp(path + strlen(path) - 5, "/type") == 0) {
		text = "4\n";
		n = 2;
	}
	if (n >= size)
		return -E2BIG;
	memcpy(buffer, text, n);
	buffer[n] = '\0';
	return (ssize_t)n;
}

static int fuzz_list(
	void *u, const char *path, void (*each)(void *userdata, const char *name), void *userdata)
{
	(void)u, (void)path;
	each(userdata, "event");
	each(userdata, "sched_switch");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	char *newline = strchr(text, '\n');
	struct input in = {"", 0};
	if (newline) {
		*newline = '\0';
		in = (struct input){newline + 1, strlen(newline + 1)};
	}

	struct kernel k = {.read_text = fuzz_read, .list = fuzz_list, .userdata = &in};
	struct event_list list = {0};
	struct event_error error = {""};
	int r = event_parse(&k, text, &list, &error);
	if (r < 0 || (r == 0) != (list.n_events > 0) || (r > 0 && !error.text[0]))
		abort();
	for (int i = 0; i < list.n_events; i++) {
		struct perf_event_attr attr = {0};
		event_to_attr(&list.event[i], &attr);
		if (list.event[i].group >= list.n_groups)
			abort();
	}
	free(text);
	return 0;
}
