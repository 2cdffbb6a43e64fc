/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The screen of top: the only user of curses
 *
 * Only one may be open at a time, since a program has one terminal. While it is open, nothing else
 * may write to the terminal; top_screen_free restores it, even if only half set up.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/options/options.h"
#include "client/top/keys.h"
#include "client/top/model.h"

#define TOP_SCREEN_ROWS 200 /* requested unless -n, to scroll and filter */

enum {
	TOP_SCREEN_UNABLE = 1, /* the terminal cannot move the cursor; print frames as text */
};

struct top_screen;

/* Take the terminal on stdin and stdout. `o` is borrowed. 0, TOP_SCREEN_UNABLE, -errno. */
int top_screen_open(const struct options *o, struct top_screen **ret_screen);
struct top_screen *top_screen_free(struct top_screen *s);

/* Draw the model; sets its page. */
void top_screen_draw(struct top_screen *s, struct top_model *m);

/* The next key pressed. False if none is left. */
bool top_screen_key(struct top_screen *s, uint32_t *ret_key);

/* A descriptor that is readable after a resize or SIGQUIT; then call top_screen_notice, which
 * returns false if it is time to quit. */
int top_screen_fd(const struct top_screen *s);
bool top_screen_notice(struct top_screen *s);
