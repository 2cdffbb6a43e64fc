/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The screen of top: all that curses has to do with
 *
 * Only one may be open at a time, since a program has one terminal. While it is open, nothing else
 * may be written to the terminal; top_screen_free gives it back as it was, also in part-way states.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/options.h"
#include "client/top_keys.h"
#include "client/top_model.h"

#define TOP_SCREEN_ROWS 200 /* asked for, to scroll and filter in, unless -n */

enum {
	TOP_SCREEN_UNABLE = 1, /* the terminal cannot place text; frames as text will do */
};

struct top_screen;

/* Take the terminal on stdin and stdout. `o` is borrowed. 0, TOP_SCREEN_UNABLE, -errno. */
int top_screen_open(const struct options *o, struct top_screen **ret_screen);
struct top_screen *top_screen_free(struct top_screen *s);

/* Draw the model; sets its page. */
void top_screen_draw(struct top_screen *s, struct top_model *m);

/* The next key that was pressed. False if none is left. */
bool top_screen_key(struct top_screen *s, uint32_t *ret_key);

/* A descriptor that is readable when the terminal has another size or SIGQUIT came; then call
 * top_screen_notice, which returns false if it is time to leave. */
int top_screen_fd(const struct top_screen *s);
bool top_screen_notice(struct top_screen *s);
