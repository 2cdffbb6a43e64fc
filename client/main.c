/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl: find the command in the table that both sides share, parse its options and run it.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/options/command.h"
#include "client/options/completion.h"
#include "client/options/options.h"
#include "client/show/answer.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "proto/base/memory.h"
#include "proto/syntax/nearest.h"

static const struct command {
	Mperf__Request__BodyCase id;
	const char *name, *summary;
	int (*run)(const struct options *o);
} commands[] = {
#define COMMAND(id, name, summary) {MPERF__REQUEST__BODY_##id, #name, summary, client_##name},
#include "proto/command.inc"
#undef COMMAND
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static void help(FILE *f)
{
	fputs("Usage: mperfctl COMMAND [OPTION...]\n\n"
	      "mperf shows why a program is slow on the machine in front of you. mperfctl asks "
	      "the\n"
	      "mperfd service; if none answers, it starts an mperfd of its own.\n\n"
	      "Commands:\n",
		f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(f, "  %-11s %s\n", commands[i].name, commands[i].summary);
	fputs("  help        show the options of a command, with examples\n"
	      "  completion  print a completion script for bash or zsh\n\n"
	      "Examples:\n"
	      "  mperfctl hotspots -- ./program\n"
	      "  mperfctl record -- ./program && mperfctl flamegraph\n"
	      "  mperfctl help record\n\n"
	      "  --help, --version\n\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage; record, stat and topdown pass on "
	      "that of CMD.\n",
		f);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int unknown(const char *name)
{
	const char *names[N_COMMANDS + 4] = {
		[N_COMMANDS] = "help", "completion", "--help", "--version"};
	char what[256], remedy[128];

	for (size_t i = 0; i < N_COMMANDS; i++)
		names[i] = commands[i].name;
	const char *near = nearest_name(name, names, N_COMMANDS + 4);
	snprintf(what, sizeof(what), "'%.100s' is not %s", name,
		*name == '-' ? "an option" : "a command");
	if (near)
		snprintf(remedy, sizeof(remedy), "Did you mean `mperfctl %s`?", near);
	else
		snprintf(remedy, sizeof(remedy), "`mperfctl --help` lists the commands");
	say_failure(what, remedy);
	return EXIT_USAGE;
}

/* Help may go to a full disk, too. */
static int printed(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	print_say_failed(NULL, errno ? -errno : -EIO, "send stdout elsewhere");
	return EXIT_FAILED;
}

static int help_for(const char *name)
{
	if (!name || strcmp(name, "help") == 0) {
		help(stdout);
		return printed();
	}
	if (strcmp(name, "completion") == 0) {
		completion_help(stdout);
		return printed();
	}
	const struct command *c = find(name);
	if (!c)
		return unknown(name);
	options_help(c->id, stdout);
	return printed();
}

static int run(const struct command *c, int argc, char **argv)
{
	_cleanup_(freep) struct options *o = calloc(1, sizeof(*o));
	if (!o) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	int r = options_parse(c->id, argc, argv, o);
	if (r == OPTIONS_HELPED)
		return printed();
	if (r == OPTIONS_USAGE)
		return EXIT_USAGE;
	if (r < 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	if (o->look.answers_on_stdout)
		answer_is_on_stdout();
	r = answer_begin(o->look.answer, o->force);
	return r == 0 ? answer_end(c->run(o)) : r;
}

/* argv[0] is "completion". */
static int complete(int argc, char **argv)
{
	static const char remedy[] = "Run `mperfctl completion bash` or `mperfctl completion zsh`";
	char what[256];

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help_for("completion");
	if (argc == 2 && completion_print(argv[1], stdout) == 0)
		return printed();
	if (argc < 2)
		snprintf(what, sizeof(what), "completion needs the name of a shell");
	else if (argc > 2)
		snprintf(what, sizeof(what), "'%.100s' is one argument too many", argv[2]);
	else
		snprintf(what, sizeof(what), "there is no completion for '%.100s'", argv[1]);
	say_failure(what, remedy);
	return EXIT_USAGE;
}

/* If the caller closed a standard descriptor, the first file or socket that we open would get its
 * number, and our output would go there. So open one here to which writing fails. */
static bool have_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
			return false;
	return true;
}

/* Handle SIGXFSZ, so that write() fails instead and we can name the file. We do not ignore the signal, since
 * programs that we start would inherit that. */
static void file_too_large(int signal_number)
{
	(void)signal_number;
}

int main(int argc, char **argv)
{
	if (!have_standard_descriptors())
		return EXIT_FAILED;
	signal(SIGXFSZ, file_too_large);
	/* Needed only for the widths of letters: we print UTF-8, and no translations. */
	setlocale(LC_CTYPE, "C.UTF-8");

	if (argc < 2) {
		say_failure("no command was given", "`mperfctl --help` lists the commands");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("mperfctl " MPERF_VERSION);
		return printed();
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help_for(NULL);
	if (strcmp(argv[1], "help") == 0)
		return help_for(argc > 2 ? argv[2] : NULL);
	if (strcmp(argv[1], "completion") == 0)
		return complete(argc - 1, argv + 1);

	const struct command *c = find(argv[1]);
	return c ? run(c, argc - 1, argv + 1) : unknown(argv[1]);
}
