/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Modules of code, and names of code that has no place in the segment: in a file that could not be read, in none, or
 * whose name is still to come. Only its offset is known.
 */
#include <string.h>

#include "daemon/query/load.h"

uint32_t loaded_module(const struct loaded *l, const struct loaded_frame *frame)
{
	const struct loaded_file *file = &l->file[frame->file];
	if (file->kind == FILE_KERNEL && !file->hidden && frame->state >= FRAME_OUT_OF_SYMBOL &&
		frame->offset >= FILE_KERNEL_TEXT_BYTES)
		return l->unlisted_name;
	return file->module ? file->module : l->unknown_name;
}

static bool is_of_file(const struct loaded_file *file)
{
	return file->kind == FILE_ELF || file->kind == FILE_VDSO;
}

int loaded_call_code(const struct loaded *l, const struct loaded_frame *f, uint32_t *ret_function)
{
	static const char unknown[] = "[unknown] ";
	const struct loaded_file *file = &l->file[f->file];
	const uint32_t module = loaded_module(l, f);
	const char *path = text_of(l->texts, module);
	char name[CODE_NAME_BYTES] = "";

	*ret_function = l->unknown_name;
	if (!path || module == l->unknown_name)
		return 0;
	if (is_of_file(file))
		(void)file_call_code(path, f->offset, false, name);
	else if (file->kind >= FILE_PERF_MAP && file->kind <= FILE_ANON)
		snprintf(name, sizeof(name), "%s%.*s", unknown,
			(int)(sizeof(name) - sizeof(unknown)), *path == '[' ? path : "[anonymous]");
	return *name ? query_fail_full(l, text_get(l->texts, name, ret_function)) : 0;
}

uint64_t loaded_build(const struct loaded *l, const struct loaded_frame *f)
{
	const struct loaded_file *file = &l->file[f->file];
	return file->kind == FILE_ELF && f->state != FRAME_NAMED ? (uint64_t)file->build_id + 1 : 0;
}

int load_code(struct loaded *l)
{
	for (uint32_t i = 1; i <= l->n_frames; i++) {
		struct loaded_frame *f = &l->frame[i];
		if (f->file == 0 || f->n_places > 0)
			continue;
		uint32_t function;
		int r = loaded_call_code(l, f, &function);
		if (r == 0)
			r = array_grow(
				&l->place, &l->size_places, l->n_places + 1, sizeof(*l->place));
		if (r != 0)
			return r;
		f->place = l->n_places;
		f->n_places = 1;
		l->place[l->n_places++] = (struct loaded_place){.function = function};
	}
	return 0;
}
