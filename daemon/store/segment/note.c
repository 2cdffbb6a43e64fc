/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A note is all key and no value, so that a note which many sources of a roll-up have is there
 * once.
 */
#include "daemon/store/segment/note.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/cores.h"

/* "BEGIN:HARTS:"; what is behind it, or NULL. */
static const char *harts_parse(const char *key, const char *begin, struct hart_set *ret_harts)
{
	char list[NOTE_KEY_BYTES_MAX];
	if (strncmp(key, begin, strlen(begin)) != 0)
		return NULL;
	const char *harts = key + strlen(begin);
	size_t n = strcspn(harts, ":");
	if (harts[n] != ':' || n == 0 || n >= sizeof(list))
		return NULL;
	memcpy(list, harts, n);
	list[n] = '\0';
	return hart_set_parse(list, ret_harts) == 0 ? harts + n + 1 : NULL;
}

bool note_parse(const char *key, struct note *ret_note)
{
	struct note note = {0};
	char *end;
	const char *event = harts_parse(key, "note:", &note.harts);
	if (!event)
		return false;
	errno = 0;
	note.event = strtoll(event, &end, 10);
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

bool note_turn_parse(const char *key, struct hart_set *ret_harts, unsigned *ret_pass)
{
	struct hart_set harts;
	char *end;
	const char *text = harts_parse(key, "turn:", &harts);
	if (!text || *text < '0' || *text > '9')
		return false;
	unsigned long pass = strtoul(text, &end, 10);
	if (*end || pass >= TURN_PASSES_MAX)
		return false;
	*ret_harts = harts;
	*ret_pass = (unsigned)pass;
	return true;
}

const char *note_turn_key(
	const struct hart_set *harts, unsigned pass, char key[static NOTE_KEY_BYTES_MAX])
{
	char list[NOTE_KEY_BYTES_MAX - sizeof("turn::4294967295")];
	snprintf(key, NOTE_KEY_BYTES_MAX, "turn:%s:%u", hart_set_says(harts, list, sizeof(list)),
		pass);
	return key;
}
