/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Keys of top
 *
 * A key changes the model; the returned action says what must follow. Keys without a character
 * are listed here, so that only the screen knows curses.
 */

#include <stddef.h>
#include <stdint.h>

#include "client/top/model.h"

/* Above every character of Unicode. */
enum top_key {
	TOP_KEY_UP = 0x110000,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_BACKSPACE,
	TOP_KEY_ESCAPE,
	TOP_KEY_OTHER,
};

enum top_action {
	TOP_DRAW,  /* show the model again */
	TOP_ASK,   /* the request has changed: send it */
	TOP_LEAVE, /* quit */
};

/* Press a key: a Unicode character, or an enum top_key. */
enum top_action top_keys_press(struct top_model *m, uint32_t key);

/* The help's lines, NULL-terminated; static. */
const char *const *top_keys_help(void);
