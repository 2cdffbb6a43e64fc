/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as a daemon's profile, in every format and as a page: the first byte chooses the format; then come parts,
 * each two bytes of length and a packed Profile. What profile_add accepts is written in full.
 */
#include <stdlib.h>

#include "client/export/format.h"
#include "client/report/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The page of a report as a format. */
static struct gathered gathered;

static int begin_report(struct export_output *o)
{
	(void)o;
	return gather_init(&gathered);
}

static int add_to_report(struct export_output *o, const struct profile_sample *s)
{
	return gather_sample(&gathered, o->profile, s);
}

static int end_report(struct export_output *o)
{
	const struct report_page page = {.title = "t",
		.samples = &gathered,
		.provenance = o->provenance,
		.provenance_line = "l"};
	int r = gather_finish(&gathered);
	return r == 0 ? report_page_write(&page, o->file) : r;
}

static void clear_report(struct export_output *o)
{
	(void)o;
	gather_clear(&gathered);
}

static const struct export_format report = {.name = "report",
	.begin = begin_report,
	.sample = add_to_report,
	.end = end_report,
	.clear = clear_report};

struct output {
	const struct export_format *format;
	struct export_output o;
};

static int take(void *userdata, const struct profile_sample *s)
{
	struct output *to = userdata;
	struct profile_sample once = *s;
	/* perf-script writes a record for each, up to more than we wait for, and refuses absurd ones */
	once.count = s->count > EXPORT_RECORDS_MAX ? s->count : s->count % 4;
	return to->format->sample(&to->o, &once);
}

static int take_parts(struct output *to, struct profile *p, const uint8_t *data, size_t size)
{
	int r = 0;
	while (size > 2 && r == 0) {
		size_t n = data[0] | (size_t)data[1] << 8;
		n = n < size - 2 ? n : size - 2;
		Mperf__Profile *part = mperf__profile__unpack(NULL, n, data + 2);
		if (part) {
			r = profile_add(p, part, take, to);
			mperf__profile__free_unpacked(part, NULL);
		}
		data += 2 + n;
		size -= 2 + n;
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct export_format *const formats[] = {&export_csv, &export_firefox,
		&export_perf_script, &export_pprof, &export_speedscope, &report};
	Mperf__Provenance provenance = MPERF__PROVENANCE__INIT;
	struct profile p;
	char *text = NULL;
	size_t n;
	if (size < 1 || profile_init(&p) < 0)
		return 0;
	struct output to = {.format = formats[data[0] % 6],
		.o = {.profile = &p,
			.title = "t",
			.event = "e",
			.provenance_line = "l",
			.provenance = &provenance}};
	to.o.file = open_memstream(&text, &n);
	if (to.o.file) {
		int r = to.format->begin ? to.format->begin(&to.o) : 0;
		if (r == 0)
			r = take_parts(&to, &p, data + 1, size - 1);
		if (r == 0 && to.format->end)
			(void)to.format->end(&to.o);
		if (to.format->clear)
			to.format->clear(&to.o);
		fclose(to.o.file);
	}
	free(text);
	profile_clear(&p);
	return 0;
}
