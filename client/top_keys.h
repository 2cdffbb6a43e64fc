/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Keys of top
 *
 * A key changes the model; what else must follow is returned. Keys without a character are listed
 * here, so that nothing but the screen knows curses.
 */

#include <stddef.h>
#include <stdint.h>

#include "client/top_model.h"

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
	TOP_ASK,   /* the request is another one now */
	TOP_LEAVE, /* that is enough */
};

/* Press a key: a Unicode character, or an enum top_key. */
enum top_action top_keys_press(struct top_model *m, uint32_t key);

/* The help's lines, ended by NULL; static. */
const char *const *top_keys_help(void);
