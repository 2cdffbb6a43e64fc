/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A note is all key and no value, so that a note which many sources of a roll-up have is there
 * once.
 */
#include "daemon/store/note.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/cores.h"

bool note_parse(const char *key, struct note *ret_note)
{
	static const char begin[] = "note:";
	char list[NOTE_KEY_BYTES_MAX], *end;
	if (strncmp(key, begin, strlen(begin)) != 0)
		return false;
	const char *harts = key + strlen(begin);
	size_t n = strcspn(harts, ":");
	if (harts[n] != ':' || n == 0 || n >= sizeof(list))
		return false;
	memcpy(list, harts, n);
	list[n] = '\0';
	struct note note = {0};
	if (hart_set_parse(list, &note.harts) != 0)
		return false;
	errno = 0;
	note.event = strtoll(harts + n + 1, &end, 10);
	if (errno || *end != ':' || note.event < 0 || !end[1])
		return false;
	note.says = end + 1;
	*ret_note = note;
	return true;
}

const char *note_key(const struct note *note, char key[static NOTE_KEY_BYTES_MAX])
{
	char harts[NOTE_KEY_BYTES_MAX / 4];
	snprintf(key, NOTE_KEY_BYTES_MAX, "note:%s:%lld:%s",
		hart_set_says(&note->harts, harts, sizeof(harts)), (long long)note->event,
		note->says);
	return key;
}
