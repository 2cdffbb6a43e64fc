/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Notes of a segment, as keys of its meta: "note:HARTS:EVENT:TEXT" (schema.sql); and the keys of how far turns
 * put counts off, "turn:HARTS:PASS" */

#include "daemon/kernel/machine.h"
#include "daemon/sampler/stream.h"

#define NOTES_MAX 512 /* read from one file; a session has about twenty */
#define NOTE_KEY_BYTES_MAX 512

struct note {
	struct hart_set harts;
	int64_t event;    /* of the file; 0: of no single event */
	const char *says; /* borrowed from the key */
};

/* False if the key is not a note. */
bool note_parse(const char *key, struct note *ret_note);
/* Returns key; a note that is too long is cut off at its end. */
const char *note_key(const struct note *note, char key[static NOTE_KEY_BYTES_MAX]);

#define TURN_PASSES_MAX (RUNG_COUNTED_LAST - RUNG_COUNTED + 1)

/* False if the key is not one of turns, or its pass is none. */
bool note_turn_parse(const char *key, struct hart_set *ret_harts, unsigned *ret_pass);
/* Returns key. */
const char *note_turn_key(
	const struct hart_set *harts, unsigned pass, char key[static NOTE_KEY_BYTES_MAX]);
