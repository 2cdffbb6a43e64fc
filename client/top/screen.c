/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We take, watch and restore the terminal here. Signals come through a descriptor, so that none
 * interrupts a line being written. The environment says whether letters beyond ASCII may be used:
 * mperfctl's own locale is always UTF-8, the terminal's need not be.
 */
#include "client/top/screen.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <term.h>

#include "client/show/ascii.h"
#include "client/show/table.h"
#include "client/top/draw.h"

#define ESCAPE_MS 50         /* an arrow key's bytes arrive faster, even over slow lines */
#define KEYS_AT_ONCE_MAX 256 /* a paste must not block frames */

struct top_screen {
	struct top_drawing drawing;
	SCREEN *terminal;
	int signal_fd;
	sigset_t before; /* the signal mask to restore */
	unsigned n_keys; /* since the last wait */
};

/* --- taking and giving back ------------------------------------------------------------------- */

static int watch_signals(struct top_screen *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGQUIT);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	return sigprocmask(SIG_BLOCK, &set, &s->before) < 0 ? -errno : 0;
}

/* Can the terminal position the cursor? */
static bool able(void)
{
	int error;
	const char *term = getenv("TERM");
	if (!term || !*term || setupterm(term, STDOUT_FILENO, &error) != OK)
		return false;
	const char *place = tigetstr("cup");
	bool can = place && place != (char *)-1 && *place;
	del_curterm(cur_term);
	return can;
}

static void start_colours(const struct options *o)
{
	const char *no_color = getenv("NO_COLOR");
	if (o->look.no_color || (no_color && *no_color) || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(TOP_PAIR_HOT, COLOR_RED, -1);
	init_pair(TOP_PAIR_WARM, COLOR_GREEN, -1);
}

static void set_up(struct top_screen *s)
{
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	leaveok(stdscr, TRUE);
	curs_set(0);
	start_colours(s->drawing.options);
}

int top_screen_open(const struct options *o, struct top_screen **ret_screen)
{
	if (!able())
		return TOP_SCREEN_UNABLE;
	struct top_screen *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->drawing.options = o;
	s->signal_fd = -1;
	s->drawing.utf8 = !ascii_is_wanted();
	if (!s->drawing.utf8)
		setlocale(LC_CTYPE, "C");

	int r = watch_signals(s);
	if (r == 0) {
		s->terminal = newterm(NULL, stdout, stdin);
		r = s->terminal ? 0 : TOP_SCREEN_UNABLE;
	}
	if (r != 0) {
		top_screen_free(s);
		return r;
	}
	set_up(s);
	*ret_screen = s;
	return 0;
}

struct top_screen *top_screen_free(struct top_screen *s)
{
	if (!s)
		return NULL;
	if (s->terminal) {
		endwin();
		delscreen(s->terminal);
	}
	if (s->signal_fd >= 0) {
		close(s->signal_fd);
		sigprocmask(SIG_SETMASK, &s->before, NULL);
	}
	setlocale(LC_CTYPE, "C.UTF-8"); /* as in main() */
	free(s);
	return NULL;
}

int top_screen_fd(const struct top_screen *s)
{
	return s->signal_fd;
}

bool top_screen_notice(struct top_screen *s)
{
	struct signalfd_siginfo info;
	struct winsize size;
	bool stay = true;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
		stay &= info.ssi_signo != SIGQUIT;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(size.ws_row, size.ws_col);
	clearok(stdscr, TRUE);
	return stay;
}

/* --- keys ------------------------------------------------------------------------------------- */

static uint32_t translate(wint_t c)
{
	static const struct {
		int from;
		enum top_key to;
	} keys[] = {{KEY_UP, TOP_KEY_UP}, {KEY_DOWN, TOP_KEY_DOWN}, {KEY_PPAGE, TOP_KEY_PAGE_UP},
		{KEY_NPAGE, TOP_KEY_PAGE_DOWN}, {KEY_HOME, TOP_KEY_HOME}, {KEY_END, TOP_KEY_END},
		{KEY_ENTER, TOP_KEY_ENTER}, {KEY_BACKSPACE, TOP_KEY_BACKSPACE}};
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if ((int)c == keys[i].from)
			return keys[i].to;
	return TOP_KEY_OTHER;
}

bool top_screen_key(struct top_screen *s, uint32_t *ret_key)
{
	wint_t c;
	int r = s->n_keys++ < KEYS_AT_ONCE_MAX ? get_wch(&c) : ERR;
	if (r == ERR) {
		s->n_keys = 0;
		return false;
	}
	if (r == KEY_CODE_YES)
		*ret_key = translate(c);
	else if (c == '\n' || c == '\r')
		*ret_key = TOP_KEY_ENTER;
	else if (c == 0x7f || c == '\b')
		*ret_key = TOP_KEY_BACKSPACE;
	else if (c == 0x1b)
		*ret_key = TOP_KEY_ESCAPE;
	else
		*ret_key = (uint32_t)c;
	return true;
}

void top_screen_draw(struct top_screen *s, struct top_model *m)
{
	top_draw(&s->drawing, m);
}
