/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Names of events that both sides know */

#include <stdbool.h>
#include <string.h>

/* "waiting", or "off-cpu": the time that threads waited, for whatever it was. */
static inline bool event_name_is_all_waiting(const char *name)
{
	return strcmp(name, "waiting") == 0 || strcmp(name, "off-cpu") == 0;
}

/* The same, or of one kind: "waiting:lock". */
static inline bool event_name_is_waiting(const char *name)
{
	return event_name_is_all_waiting(name) ||
	       strncmp(name, "waiting:", strlen("waiting:")) == 0;
}
