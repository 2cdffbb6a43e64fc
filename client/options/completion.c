/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The tables become case statements of bash and specifications of zsh's _arguments; all logic is in
 * completion.bash, where it can be read and checked. The possible values of an option are its words, or
 * follow from its placeholder (FILE) or letter (-p).
 */
#include "client/options/completion.h"

#include <stdbool.h>
#include <string.h>

#include "client/options/options_private.h"
#include "client/options/table.h"
#include "proto/mperf.pb-c.h"

static const struct command {
	uint32_t bit;
	const char *name, *summary;
} commands[] = {
#define COMMAND(id, name, summary) {COMMAND_BIT(id), #name, summary},
#include "proto/command.inc"
#undef COMMAND
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

/* Commands that mperfctl runs itself, without a daemon. */
#define HELP_SUMMARY "show the options of a command, with examples"
#define COMPLETION_SUMMARY "print a completion script for bash or zsh"

/* Program for awk over the rows of `mperfctl list --raw`: topic, event, code (for metrics their
 * groups), harts, counts. It leaves out events that do not count here; all metrics are those of the
 * core. */
#define KNOWN_AWK                                                                                  \
	"NR > 1 { if (what == \"topic\") print $1; "                                               \
	"else if (what == \"metric\" && $1 == \"metrics\") { gsub(/, /, \"\\n\", $3); print $2; "  \
	"print $3 } "                                                                              \
	"else if (what == \"event\" && $1 != \"metrics\" && $5 == \"yes\") print $2 }"

/* Commands that run a program: at the first argument, or only after -- (see take_argument). */
#define RUNS_ANYWHERE (COMMAND_BIT(RECORD) | COMMAND_BIT(STAT) | COMMAND_BIT(TOPDOWN))
#define RUNS_BEHIND_DASHES                                                                         \
	(COMMAND_BIT(HOTSPOTS) | COMMAND_BIT(FLAMEGRAPH) | COMMAND_BIT(EXPORT) |                   \
		COMMAND_BIT(REPORT) | COMMAND_BIT(TIMELINE) | COMMAND_BIT(ROOFLINE) |              \
		COMMAND_BIT(BLOCKS) | COMMAND_BIT(JOB) | COMMAND_BIT(PARALLEL))

/* Possible first arguments of a command, or their kind as value_kind gives it; NULL: anything. */
static const char *argument_words(uint32_t command)
{
	static const struct {
		uint32_t command;
		const char *words;
	} known[] = {
		{COMMAND_BIT(JOB), JOB_TOPICS},
		{COMMAND_BIT(SCHEDULE), SCHEDULE_TOPICS},
		{COMMAND_BIT(ROOFS), ROOFS_TOPICS},
		{COMMAND_BIT(LIST), "@topic"},
		{COMMAND_BIT(DIFF), "@file"},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].command == command)
			return known[i].words;
	return NULL;
}

/* Kind of a value that the shell looks up: on the disc, in /proc, or by asking mperfctl. */
static const char *value_kind(const struct option_row *row)
{
	return strcmp(row->value, "FILE") == 0 ? "@file"
	       : row->letter == 'p'            ? "@pid"
	       : row->letter == 'e'            ? "@event"
	       : row->letter == 'M'            ? "@metric"
					       : "@any";
}

/* --- bash ------------------------------------------------------------------------------------- */

static void bash_options(const struct command *c, FILE *f)
{
	fprintf(f, "\t%s) echo '", c->name);
	for (size_t i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];
		if (!(row->commands & c->bit))
			continue;
		if (row->letter)
			fprintf(f, "-%c ", row->letter);
		if (row->name)
			fprintf(f, "--%s ", row->name);
	}
	fputs("' ;;\n", f);
}

static void bash_value(const struct command *c, const struct option_row *row, FILE *f)
{
	fputs("\t", f);
	if (row->letter)
		fprintf(f, "'%s -%c'%s", c->name, row->letter, row->name ? " | " : "");
	if (row->name)
		fprintf(f, "'%s --%s'", c->name, row->name);
	fprintf(f, ") echo '%s%s' ;;\n", row->store.optional ? "?" : "",
		row->store.words ? row->store.words : value_kind(row));
}

static void bash_runs(const char *how, uint32_t mask, FILE *f)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i].bit & mask)
			fprintf(f, "\t%s) echo %s ;;\n", commands[i].name, how);
}

static void bash_script(FILE *f)
{
	static const char logic[] =
#include "client/options/completion.bash.inc"
		;
	fputs("# bash completion for mperfctl, made by `mperfctl completion bash`\n"
	      "# shellcheck shell=bash\n\n"
	      "# Events, metrics and topics of this machine.\n"
	      "__mperfctl_known() {\n"
	      "\tcommand mperfctl list --raw 2>/dev/null |\n"
	      "\t\tawk -F '\\t' -v what=\"$1\" '" KNOWN_AWK "' | sort -u\n}\n\n"
	      "__mperfctl_commands() {\n\techo '",
		f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(f, "%s ", commands[i].name);
	fputs("help completion --help --version'\n}\n\n"
	      "__mperfctl_options() {\n\tcase $1 in\n",
		f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		bash_options(&commands[i], f);
	fputs("\tesac\n}\n\n"
	      "# What an option's value can be: @file, @pid, @any, or words; after a ? it is "
	      "optional.\n# Empty if the option takes none.\n"
	      "__mperfctl_value() {\n\tcase \"$1 $2\" in\n",
		f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		for (size_t k = 0; k < n_option_rows; k++)
			if (option_rows[k].commands & commands[i].bit && option_rows[k].value)
				bash_value(&commands[i], &option_rows[k], f);
	fputs("\tesac\n}\n\n"
	      "# Where the program to run may begin.\n"
	      "__mperfctl_runs() {\n\tcase $1 in\n",
		f);
	bash_runs("anywhere", RUNS_ANYWHERE, f);
	bash_runs("dashes", RUNS_BEHIND_DASHES, f);
	fputs("\tesac\n}\n\n"
	      "# What the first argument can be, as above.\n"
	      "__mperfctl_first() {\n\tcase $1 in\n",
		f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (argument_words(commands[i].bit))
			fprintf(f, "\t%s) echo '%s' ;;\n", commands[i].name,
				argument_words(commands[i].bit));
	fputs("\tesac\n}\n", f);
	fputs(logic, f);
}

/* --- zsh -------------------------------------------------------------------------------------- */

/* Text between single quotes, with a backslash before each of `escaped`. */
static void zsh_text(const char *text, const char *escaped, FILE *f)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", f);
		else if (strchr(escaped, *text))
			fprintf(f, "\\%c", *text);
		else
			fputc(*text, f);
	}
}

/* The action of zsh's _arguments for such a kind. */
static const char *zsh_action(const char *kind)
{
	static const char *const actions[][2] = {
		{"@file", "_files"},
		{"@pid", "_mperfctl_pids"},
		{"@event", " _mperfctl_known event"},
		{"@metric", " _mperfctl_known metric"},
		{"@topic", " _mperfctl_known topic"},
	};
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (strcmp(kind, actions[i][0]) == 0)
			return actions[i][1];
	return "";
}

/* The forms of an option in front of its specification: '(-o --output)'{-o+,--output=} */
static void zsh_forms(const struct option_row *row, FILE *f)
{
	const char *short_value = row->value ? "+" : "", *long_value = row->value ? "=" : "";
	bool repeats = strstr(row->says, "may be repeated") || row->letter == 'p';

	if (repeats)
		fputs("'*'", f);
	else if (row->letter && row->name)
		fprintf(f, "'(-%c --%s)'", row->letter, row->name);
	if (row->letter && row->name)
		fprintf(f, "{-%c%s,--%s%s}", row->letter, short_value, row->name, long_value);
	else if (row->letter)
		fprintf(f, "-%c%s", row->letter, short_value);
	else
		fprintf(f, "--%s%s", row->name, long_value);
}

static void zsh_option(const struct option_row *row, FILE *f)
{
	fputs(" \\\n\t\t\t", f);
	zsh_forms(row, f);
	fputs("'[", f);
	zsh_text(row->says, "[]\\", f);
	fputs("]", f);
	if (row->value) {
		fputs(row->store.optional ? "::" : ":", f);
		zsh_text(row->value, ":\\", f);
		if (row->store.words)
			fprintf(f, ":(%s)", row->store.words);
		else
			fprintf(f, ":%s", zsh_action(value_kind(row)));
	}
	fputs("'", f);
}

static void zsh_command(const struct command *c, FILE *f)
{
	/* -A: after the program's name come its own options. */
	bool anywhere = c->bit & RUNS_ANYWHERE;
	fprintf(f, "\t\t%s)\n\t\t_arguments -s -S%s", c->name, anywhere ? " -A '-*'" : "");
	for (size_t i = 0; i < n_option_rows; i++)
		if (option_rows[i].commands & c->bit)
			zsh_option(&option_rows[i], f);
	if (anywhere)
		fputs(" \\\n\t\t\t'(-)1:program:_command_names -e' '*::argument:_normal'", f);
	const char *first = argument_words(c->bit);
	if (first && *first == '@')
		fprintf(f, " \\\n\t\t\t${bare:+'1:argument:%s'} ${bare:+'*:argument:_files'}",
			zsh_action(first));
	else if (first)
		fprintf(f, " \\\n\t\t\t${bare:+'1:argument:(%s)'} ${bare:+'*:argument:_files'}",
			first);
	if (c->bit & RUNS_BEHIND_DASHES)
		fputs(" \\\n\t\t\t${dashes:+'1:program:_command_names -e'}"
		      " ${dashes:+'*::argument:_normal'}",
			f);
	fputs("\n\t\t;;\n", f);
}

static void zsh_script(FILE *f)
{
	/* Do not call a local variable commands: that is zsh's own table of programs. */
	fputs("#compdef mperfctl\n"
	      "# zsh completion for mperfctl, made by `mperfctl completion zsh`\n\n"
	      "_mperfctl_pids() {\n\tcompset -P '*,'\n\t_pids\n}\n\n"
	      "# Events, metrics and topics of this machine, in lists with commas.\n"
	      "_mperfctl_known() {\n\tlocal -a known\n"
	      "\tknown=(${(f)\"$(command mperfctl list --raw 2>/dev/null |\n"
	      "\t\tawk -F '\\t' -v what=$1 '" KNOWN_AWK "')\"})\n"
	      "\tcompset -P '*,'\n\tcompadd -a known\n}\n\n"
	      "_mperfctl() {\n"
	      "\tlocal curcontext=$curcontext context state state_descr line\n"
	      "\tlocal -A opt_args\n"
	      "\tlocal -a ours dashes bare\n\tours=(\n",
		f);
	for (size_t i = 0; i < N_COMMANDS; i++) {
		fprintf(f, "\t\t'%s:", commands[i].name);
		zsh_text(commands[i].summary, "\\", f);
		fputs("'\n", f);
	}
	fputs("\t\t'help:" HELP_SUMMARY "'\n"
	      "\t\t'completion:" COMPLETION_SUMMARY "'\n"
	      "\t)\n"
	      "\t_arguments -C '(- *)'{-h,--help}'[list the commands]' "
	      "'(- *)--version[show the version]' \\\n"
	      "\t\t'1:command:->command' '*::argument:->argument' && return\n"
	      "\tcase $state in\n"
	      "\tcommand) _describe -t commands 'mperfctl command' ours ;;\n"
	      "\targument)\n"
	      "\t\tdashes=(${(M)words[1,CURRENT-1]:#--})\n"
	      "\t\t(($#dashes)) || bare=(yes)\n"
	      "\t\tcase $words[1] in\n"
	      "\t\thelp) _describe -t commands 'mperfctl command' ours ;;\n"
	      "\t\tcompletion) _arguments '(-h --help)'{-h,--help}'[show this help]' "
	      "'1:shell:(bash zsh)' ;;\n",
		f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		zsh_command(&commands[i], f);
	/* If zsh's own search loads the file, it is the function's body; if the file is sourced, it registers the function. */
	fputs("\t\tesac\n\t\t;;\n\tesac\n}\n\n"
	      "if [[ $funcstack[1] == _mperfctl ]]; then\n\t_mperfctl \"$@\"\n"
	      "else\n\tcompdef _mperfctl mperfctl\nfi\n",
		f);
}

int completion_print(const char *shell, FILE *f)
{
	if (strcmp(shell, "bash") == 0)
		bash_script(f);
	else if (strcmp(shell, "zsh") == 0)
		zsh_script(f);
	else
		return COMPLETION_UNKNOWN_SHELL;
	return 0;
}

void completion_help(FILE *f)
{
	fputs("Usage: mperfctl completion bash|zsh\n\n"
	      "Print a script that lets the shell complete mperfctl's commands, options and "
	      "values.\nAn installed mperf brings both; without it:\n\n"
	      "Examples:\n"
	      "  source <(mperfctl completion bash)                  (in ~/.bashrc)\n"
	      "  source <(mperfctl completion zsh)                   (in ~/.zshrc, behind "
	      "compinit)\n",
		f);
}
