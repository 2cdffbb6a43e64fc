/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl export: samples in the format of another tool. The output is written while the daemon
 * still reads, so that a recording of any size takes the memory of its names, and in formats that
 * sum or group also that of their sums. A file appears under its name when it is complete.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/export/format.h"
#include "client/measure/capture.h"
#include "client/options/command.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"

struct exporting {
	const struct options *options;
	struct source_request from;
	const struct export_format *format;
	struct source source;
	struct profile profile;
	struct export_output output;
	char *title, *event, *provenance_line;
	Mperf__Provenance *provenance; /* a copy; NULL until it arrives */
	struct say_progress progress;
	bool began; /* to write */
	int exit_status;
};

static const struct export_format *find_format(const char *name)
{
	static const struct export_format *const formats[] = {&export_csv, &export_firefox,
		&export_perf_script, &export_pprof, &export_speedscope};
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

static int take_sample(void *userdata, const struct profile_sample *s)
{
	struct exporting *x = userdata;
	return x->format->sample(&x->output, s);
}

static int take_provenance(struct exporting *x, const Mperf__Provenance *p)
{
	if (x->provenance)
		return PROFILE_MALFORMED;
	x->provenance = reply_copy_provenance(p);
	x->provenance_line = reply_provenance_line(p);
	x->event = escape_terminal_dup(
		x->options->narrowing.of_event ? x->options->narrowing.of_event : p->event);
	return x->provenance && x->provenance_line && x->event ? 0 : -ENOMEM;
}

static void say_trouble(int r)
{
	if (r == PROFILE_TOO_LARGE)
		say_failure("the profile is too large for this format",
			"Narrow it with --pid, --comm, --cpu, --since or --until, or use --as csv");
	else if (r == PROFILE_MALFORMED)
		say_failure("mperfd sent a malformed profile",
			"Install mperfctl and mperfd of the same version");
	else if (r < 0)
		say_failure("out of memory", "Free some memory, and try again");
}

/* Write the head with the first answer, so that nothing is written if the source cannot be read. */
static int begin(struct exporting *x)
{
	if (x->began)
		return 0;
	x->began = true;
	return x->format->begin ? x->format->begin(&x->output) : 0;
}

static int take(void *userdata, const Mperf__Answer *a)
{
	struct exporting *x = userdata;
	int r = 0;
	if (a->body_case == MPERF__ANSWER__BODY_PROVENANCE)
		r = take_provenance(x, a->provenance);
	else if (a->body_case == MPERF__ANSWER__BODY_PROFILE && (r = begin(x)) == 0) {
		r = profile_add(&x->profile, a->profile, take_sample, x);
		if (r == 0 && ferror(x->output.file))
			return 1; /* the end says why */
		say_progress(&x->progress, "writing samples", x->profile.n_samples, 0);
	}
	if (r == 0)
		return 0;
	say_progress_end(&x->progress);
	say_trouble(r);
	return 1;
}

static int ask(struct exporting *x)
{
	Mperf__Filter filter;
	Mperf__ExportRequest export = MPERF__EXPORT_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_EXPORT;
	request.export = &export;
	source_narrow(&x->source, &x->from, &request, &filter);
	return source_ask(&x->source, &request, take, x);
}

/* Ask, and write everything. 0, or an exit status after a message; the stream keeps errors of writing. */
static int write_all(struct exporting *x, FILE *f)
{
	x->output = (struct export_output){.file = f, .profile = &x->profile, .title = x->title};
	say_progress_start(&x->progress);
	x->exit_status = ask(x);
	say_progress_end(&x->progress);
	int r = x->exit_status == 0 ? begin(x) : 0;
	if (r == 0 && x->exit_status == 0) {
		static Mperf__Provenance nothing = MPERF__PROVENANCE__INIT;
		x->output.provenance = x->provenance ? x->provenance : &nothing;
		x->output.provenance_line = x->provenance_line ? x->provenance_line : "";
		x->output.event = x->event ? x->event : "";
		r = x->format->end ? x->format->end(&x->output) : 0;
	}
	if (x->format->clear)
		x->format->clear(&x->output);
	if (r != 0) {
		say_trouble(r);
		x->exit_status = EXIT_FAILED;
	}
	return x->exit_status;
}

/* Write to a descriptor. Returns 0, or -errno of writing; x->exit_status has other failures. */
static int write_to(struct exporting *x, int fd)
{
	struct print p;
	int r = print_open(&p, fd, PRINT_DATA);
	if (r < 0)
		return r;
	(void)write_all(x, p.file);
	return print_close(&p, 0);
}

static int write_file(struct exporting *x, const char *path)
{
	struct outfile out;
	int r = outfile_open(&out, path, outfile_over_answer(x->options->force));
	if (r != 0)
		return r;
	r = write_to(x, out.fd);
	if (r == 0 && x->exit_status == 0)
		r = outfile_commit(&out);
	outfile_clear(&out);
	return r;
}

static int run(struct exporting *x)
{
	const char *path = x->options->output ? x->options->output : "-";
	const bool to_stdout = strcmp(path, "-") == 0;
	x->title = source_title(x->options, x->source.kept, "Samples");
	char *title = x->title ? escape_terminal_dup(x->title) : NULL;
	free(x->title);
	x->title = title;
	if (!x->title || profile_init(&x->profile) < 0) {
		say_trouble(-ENOMEM);
		return EXIT_FAILED;
	}
	int r = to_stdout ? write_to(x, STDOUT_FILENO) : write_file(x, path);
	if (r != 0) {
		outfile_say_failed(to_stdout ? NULL : path, r, "name another file with -o");
		return EXIT_FAILED;
	}
	if (x->exit_status != 0)
		return x->exit_status;
	if (x->profile.n_samples == 0)
		say_note("no samples match; %s",
			x->source.kept ? "choose another time with --since and --until, or relax "
					 "the filters"
				       : "record longer, raise -F, or relax the filters");
	if (!to_stdout)
		say_note("wrote %s; %s", path, x->provenance_line ? x->provenance_line : "");
	return EXIT_DONE;
}

int client_export(const struct options *o)
{
	struct exporting x = {.options = o, .from = source_request_of(o)};
	const bool to_stdout = !o->output || strcmp(o->output, "-") == 0;

	if (strcmp(o->as, "folded") == 0) /* the flame graph's, which sums in the daemon */
		return client_flamegraph(o);
	x.format = find_format(o->as);
	if (x.format->is_binary && to_stdout && isatty(STDOUT_FILENO)) {
		say_failure("pprof's format is binary, and stdout is a terminal",
			"Name a file with -o, such as -o profile.pb.gz");
		return EXIT_USAGE;
	}
	if (source_start(&x.source, &x.from, &x.exit_status) == 0)
		x.exit_status = run(&x);
	source_clear(&x.source);
	profile_clear(&x.profile);
	free(x.title);
	free(x.event);
	free(x.provenance_line);
	if (x.provenance)
		mperf__provenance__free_unpacked(x.provenance, NULL);
	return x.exit_status;
}
