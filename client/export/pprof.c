/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* pprof: profile.proto, compressed as pprof's own collectors do
 *
 * Samples of one stack, thread and hart are merged, since pprof has no time. Fields of a message
 * may come in any order and repeated fields in pieces, so each entry is packed as a profile of its
 * own and the pieces are written one after the other: the whole profile is never in memory. Source:
 * https://protobuf.dev/programming-guides/encoding, "Last One Wins".
 *
 * The numbers of struct profile are used: a text's number is its index, a module's its mapping, a
 * frame's its location. An address is an offset in the file (the addresses where it was mapped are
 * not stored), so mappings begin at 0.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/export/format.h"
#include "client/export/gzip.h"
#include "client/export/pair.h"
#include "client/export/pprof.pb-c.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

#define PAGE_BYTES 4096

enum { VALUE_COUNT, VALUE_NS, VALUE_EVENT, VALUE_CYCLES, VALUE_INSTRUCTIONS, N_VALUES };

struct pprof {
	struct gzip *gzip;
	struct pair_table places;    /* task, hart + 1 */
	struct pair_table samples;   /* place, stack */
	uint64_t (*value)[N_VALUES]; /* by sample */
	uint32_t size_values;
	struct pair_table functions; /* name, source */
	bool has[N_VALUES];
	int64_t first_ns; /* CLOCK_REALTIME of the first window; 0: none yet */
	uint8_t *packed;
	size_t size_packed;
	int64_t n_strings; /* written */
	int r;             /* of the first trouble */
};

static int begin(struct export_output *o)
{
	struct pprof *p = calloc(1, sizeof(*p));
	o->state = p;
	if (!p)
		return -ENOMEM;
	p->has[VALUE_COUNT] = p->has[VALUE_NS] = true;
	return gzip_new(o->file, GZIP_FAST, &p->gzip);
}

static int grow_values(struct pprof *p)
{
	return array_grow(&p->value, &p->size_values, p->samples.size, sizeof(*p->value));
}

static void add(struct pprof *p, uint32_t sample, size_t i, uint64_t value)
{
	uint64_t *to = &p->value[sample][i];
	*to = value > INT64_MAX - *to ? INT64_MAX : *to + value;
}

static int take_pair(struct pair_table *t, uint32_t a, uint32_t b, uint32_t *ret_number)
{
	int r = pair_get(t, a, b, ret_number);
	return r == PAIR_FULL ? EXPORT_TOO_LARGE : r;
}

static int sample(struct export_output *o, const struct profile_sample *s)
{
	struct pprof *p = o->state;
	uint32_t place, i;
	int r = take_pair(&p->places, s->task, (uint32_t)(s->hart + 1), &place);
	if (r == 0)
		r = take_pair(&p->samples, place, s->stack, &i);
	if (r == 0)
		r = grow_values(p);
	if (r != 0)
		return r;
	const int64_t ns = o->profile->window[s->window].realtime_ns;
	if (p->first_ns == 0 || (ns > 0 && ns < p->first_ns))
		p->first_ns = ns;
	add(p, i, VALUE_COUNT, s->count);
	add(p, i, VALUE_NS, s->ns);
	add(p, i, VALUE_EVENT, s->value);
	add(p, i, VALUE_CYCLES, s->cycles);
	add(p, i, VALUE_INSTRUCTIONS, s->instructions);
	p->has[VALUE_CYCLES] |= s->has_cycles;
	p->has[VALUE_INSTRUCTIONS] |= s->has_instructions;
	return 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_piece(struct pprof *p, const Pprof__Profile *m)
{
	const size_t n = pprof__profile__get_packed_size(m);
	if (n > p->size_packed) {
		uint8_t *packed = realloc(p->packed, 2 * n);
		if (!packed) {
			p->r = -ENOMEM;
			return;
		}
		p->packed = packed;
		p->size_packed = 2 * n;
	}
	pprof__profile__pack(m, p->packed);
	gzip_write(p->gzip, p->packed, n);
}

/* Append a text; its index. */
static int64_t write_string(struct pprof *p, const char *text)
{
	Pprof__Profile m = PPROF__PROFILE__INIT;
	char *strings[] = {(char *)text};
	m.n_string_table = 1;
	m.string_table = strings;
	write_piece(p, &m);
	return p->n_strings++;
}

static void write_type(struct pprof *p, const char *type, const char *unit)
{
	Pprof__ValueType v = PPROF__VALUE_TYPE__INIT, *types[] = {&v};
	Pprof__Profile m = PPROF__PROFILE__INIT;
	v.type = write_string(p, type);
	v.unit = write_string(p, unit);
	m.n_sample_type = 1;
	m.sample_type = types;
	write_piece(p, &m);
}

static void write_types(struct export_output *o, struct pprof *p)
{
	p->has[VALUE_EVENT] = o->profile->unit == MPERF__UNIT__UNIT_COUNT;
	/* the names that pprof's collectors use */
	write_type(p, "samples", "count");
	write_type(p, "cpu", "nanoseconds");
	if (p->has[VALUE_EVENT])
		write_type(p, *o->event ? o->event : "event", "count");
	if (p->has[VALUE_CYCLES])
		write_type(p, "cycles", "count");
	if (p->has[VALUE_INSTRUCTIONS])
		write_type(p, "instructions", "count");
}

static void write_head(struct export_output *o, struct pprof *p)
{
	Pprof__Profile m = PPROF__PROFILE__INIT;
	Pprof__ValueType cpu = PPROF__VALUE_TYPE__INIT, event = PPROF__VALUE_TYPE__INIT;
	int64_t comments[2];
	cpu.type = write_string(p, "cpu");
	cpu.unit = write_string(p, "nanoseconds");
	event.type =
		p->has[VALUE_EVENT] ? write_string(p, *o->event ? o->event : "event") : cpu.type;
	event.unit = write_string(p, "count");
	m.time_nanos = p->first_ns;
	m.duration_nanos = (int64_t)(o->provenance->seconds * 1e9);
	if (o->provenance->period > 0) {
		m.period_type = &event;
		m.period = (int64_t)o->provenance->period;
	} else if (o->provenance->hz > 0) {
		m.period_type = &cpu;
		m.period = 1000000000 / o->provenance->hz;
	}
	comments[0] = write_string(p, o->title);
	comments[1] = write_string(p, o->provenance_line);
	m.n_comment = 2;
	m.comment = comments;
	m.default_sample_type = event.type;
	write_piece(p, &m);
}

/* pprof names a profile after its first mapping: the program where most of the time went. */
static uint32_t main_module(const struct export_output *o, const struct pprof *p)
{
	const struct profile *f = o->profile;
	uint32_t most = 0;
	_cleanup_(freep) uint64_t *ns = calloc(f->n_modules, sizeof(*ns));
	for (uint32_t i = 0; ns && i < p->samples.n; i++) {
		const uint32_t frame = f->stack[p->samples.pair[i].b].frame;
		const uint32_t module = f->frame[frame].module;
		ns[module] += p->value[i][VALUE_NS];
		if (f->module[module].kind == PROFILE_ELF && (most == 0 || ns[module] > ns[most]))
			most = module;
	}
	return most;
}

static void write_mapping(struct export_output *o, struct pprof *p, uint32_t i)
{
	const struct profile_module *from = &o->profile->module[i];
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings[] = {&mapping};
	Pprof__Profile m = PPROF__PROFILE__INIT;
	mapping.id = i;
	mapping.memory_limit = from->offset_max / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
	if (mapping.memory_limit < from->offset_max)
		mapping.memory_limit = UINT64_MAX;
	mapping.filename = from->path;
	mapping.build_id = from->build_id;
	/* otherwise pprof would look in the file for missing names, by addresses that are offsets
	 * */
	mapping.has_functions = mapping.has_filenames = true;
	mapping.has_line_numbers = mapping.has_inline_frames = true;
	m.n_mapping = 1;
	m.mapping = mappings;
	write_piece(p, &m);
}

static void write_mappings(struct export_output *o, struct pprof *p)
{
	const uint32_t first = main_module(o, p);
	if (first != 0)
		write_mapping(o, p, first);
	for (uint32_t i = 1; i < o->profile->n_modules; i++)
		if (i != first)
			write_mapping(o, p, i);
}

static void write_function(struct pprof *p, const struct pair *function, uint32_t number)
{
	Pprof__Function f = PPROF__FUNCTION__INIT, *functions[] = {&f};
	Pprof__Profile m = PPROF__PROFILE__INIT;
	f.id = number + 1;
	f.name = f.system_name = function->a;
	f.filename = function->b;
	m.n_function = 1;
	m.function = functions;
	write_piece(p, &m);
}

/* A location without a name has no line: pprof shows its address. */
static int write_location(struct export_output *o, struct pprof *p, uint32_t i)
{
	const struct profile_frame *frame = &o->profile->frame[i];
	const struct profile_place *place = &o->profile->place[frame->place];
	const uint32_t n = frame->n_places;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations[] = {&location};
	Pprof__Profile m = PPROF__PROFILE__INIT;
	_cleanup_(freep) Pprof__Line *line = calloc(n + 1, sizeof(*line));
	_cleanup_(freep) Pprof__Line **lines = calloc(n + 1, sizeof(*lines));
	int r = line && lines ? 0 : -ENOMEM;
	for (uint32_t k = 0; k < n && r == 0; k++) {
		const uint32_t known = p->functions.n;
		uint32_t function;
		if (place[k].function == 0)
			continue;
		r = take_pair(&p->functions, place[k].function, place[k].source, &function);
		if (r == 0 && function == known)
			write_function(p, &p->functions.pair[function], function);
		Pprof__Line *to = lines[location.n_line] = &line[location.n_line];
		pprof__line__init(to);
		to->function_id = r == 0 ? function + 1 : 0;
		to->line = place[k].line;
		location.n_line++;
	}
	if (r != 0)
		return r;
	location.id = i;
	location.mapping_id = frame->module;
	location.address = frame->offset;
	location.line = lines;
	m.n_location = 1;
	m.location = locations;
	write_piece(p, &m);
	return 0;
}

/* The location of samples without a stack, after all others. */
static void write_unknown(struct export_output *o, struct pprof *p)
{
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions[] = {&function};
	Pprof__Line line = PPROF__LINE__INIT, *lines[] = {&line};
	Pprof__Location location = PPROF__LOCATION__INIT, *locations[] = {&location};
	Pprof__Profile m = PPROF__PROFILE__INIT;
	function.id = line.function_id = p->functions.n + 1;
	function.name = function.system_name = write_string(p, "[unknown]");
	location.id = o->profile->n_frames;
	location.n_line = 1;
	location.line = lines;
	m.n_function = m.n_location = 1;
	m.function = functions;
	m.location = locations;
	write_piece(p, &m);
}

enum { LABEL_PID, LABEL_TID, LABEL_PROCESS, LABEL_THREAD, LABEL_CGROUP, LABEL_HART, N_LABELS };

/* pprof's users know "pid" and "thread id" from other collectors. */
static const char *const label_name[] = {"pid", "thread id", "process", "thread", "cgroup", "hart"};

/* pprof treats the number 0 as no value, so harts are texts. */
static size_t set_labels(const struct export_output *o, const struct pair *place,
	const int64_t key[N_LABELS], const int64_t *hart_text, Pprof__Label label[N_LABELS])
{
	const struct profile_task *t = &o->profile->task[place->a];
	const int64_t value[] = {[LABEL_PID] = t->pid,
		[LABEL_TID] = t->tid,
		[LABEL_PROCESS] = t->process,
		[LABEL_THREAD] = t->comm,
		[LABEL_CGROUP] = t->cgroup,
		[LABEL_HART] = hart_text[place->b]};
	size_t n = 0;
	for (size_t i = 0; i < N_LABELS; i++) {
		if (value[i] == 0)
			continue;
		pprof__label__init(&label[n]);
		label[n].key = key[i];
		*(i <= LABEL_TID ? &label[n].num : &label[n].str) = value[i];
		n++;
	}
	return n;
}

static void write_sample(
	struct pprof *p, uint32_t i, const struct profile *f, Pprof__Label *label, size_t n_labels)
{
	uint64_t path[PROFILE_DEPTH_MAX];
	int64_t value[N_VALUES];
	Pprof__Label *labels[N_LABELS];
	Pprof__Sample s = PPROF__SAMPLE__INIT, *samples[] = {&s};
	Pprof__Profile m = PPROF__PROFILE__INIT;
	for (uint32_t at = p->samples.pair[i].b; at != 0 && s.n_location_id < PROFILE_DEPTH_MAX;
		at = f->stack[at].caller)
		path[s.n_location_id++] = f->stack[at].frame;
	if (s.n_location_id == 0)
		path[s.n_location_id++] = f->n_frames;
	for (size_t k = 0; k < N_VALUES; k++)
		if (p->has[k])
			value[s.n_value++] = (int64_t)p->value[i][k];
	for (size_t k = 0; k < n_labels; k++)
		labels[k] = &label[k];
	s.location_id = path;
	s.value = value;
	s.n_label = n_labels;
	s.label = labels;
	m.n_sample = 1;
	m.sample = samples;
	write_piece(p, &m);
}

static int write_samples(struct export_output *o, struct pprof *p)
{
	int64_t key[N_LABELS];
	uint32_t harts = 1;
	for (uint32_t i = 0; i < p->places.n; i++)
		if (p->places.pair[i].b >= harts && p->places.pair[i].b < 1u << 16)
			harts = p->places.pair[i].b + 1;
	_cleanup_(freep) int64_t *hart_text = calloc(harts, sizeof(*hart_text));
	if (!hart_text)
		return -ENOMEM;
	for (size_t i = 0; i < N_LABELS; i++)
		key[i] = write_string(p, label_name[i]);
	for (uint32_t i = 0; i < p->samples.n && p->r == 0; i++) {
		struct pair place = p->places.pair[p->samples.pair[i].a];
		Pprof__Label label[N_LABELS];
		if (place.b >= harts)
			place.b = 0;
		if (place.b > 0 && hart_text[place.b] == 0) {
			char text[16];
			snprintf(text, sizeof(text), "%u", place.b - 1);
			hart_text[place.b] = write_string(p, text);
		}
		write_sample(p, i, o->profile, label, set_labels(o, &place, key, hart_text, label));
	}
	return p->r;
}

static int end(struct export_output *o)
{
	struct pprof *p = o->state;
	int r = 0;
	for (uint32_t i = 0; i < o->profile->n_texts; i++)
		(void)write_string(p, o->profile->text[i]);
	write_types(o, p);
	write_head(o, p);
	write_mappings(o, p);
	for (uint32_t i = 1; i < o->profile->n_frames && r == 0; i++)
		r = write_location(o, p, i);
	write_unknown(o, p);
	if (r == 0)
		r = write_samples(o, p);
	gzip_end(p->gzip);
	return r == 0 ? p->r : r;
}

static void clear(struct export_output *o)
{
	struct pprof *p = o->state;
	if (!p)
		return;
	gzip_free(p->gzip);
	pair_clear(&p->places);
	pair_clear(&p->samples);
	pair_clear(&p->functions);
	free(p->value);
	free(p->packed);
	free(p);
}

const struct export_format export_pprof = {.name = "pprof",
	.is_binary = true,
	.begin = begin,
	.sample = sample,
	.end = end,
	.clear = clear};
