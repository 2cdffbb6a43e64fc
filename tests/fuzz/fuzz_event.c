/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any argument of -e with any text in sysfs: the input is the argument, a newline, and the text of every
 * file that the parser asks for (a format, an alias, an id). Each is parsed twice: on a machine of unknown
 * cores, and on one whose raw codes have fields.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/kernel/machine.h"
#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"
#include "tests/unit/replay.h"

struct input {
	const char *text; /* of every file but types */
	size_t n;
};

static ssize_t fuzz_read(void *u, const char *path, char *buffer, size_t size)
{
	const struct input *in = u;
	const char *text = in->text;
	size_t n = in->n;
	if (strstr(path, "/..") || strstr(path, "/./"))
		abort(); /* a name became a way out of its folder */
	if (strcmp(path + strlen(path) - 5, "/type") == 0) {
		text = "4\n";
		n = 2;
	}
	if (n >= size)
		return -E2BIG;
	memcpy(buffer, text, n);
	buffer[n] = '\0';
	return (ssize_t)n;
}

static int fuzz_list(
	void *u, const char *path, void (*each)(void *userdata, const char *name), void *userdata)
{
	(void)u, (void)path;
	each(userdata, "event");
	each(userdata, "sched_switch");
	return 0;
}

#define ORIGIN "\"source\":\"s\",\"verified\":\"no\"}"
#define EVENT(name, code)                                                                          \
	"{\"name\":\"" name "\",\"code\":" code ",\"topic\":\"one\",\"counters\":\"0x8\"," ORIGIN
#define FIELD(name, bits, rest)                                                                    \
	"{\"quirk\":\"field\",\"name\":\"" name "\",\"bits\":\"" bits "\"," rest "," ORIGIN

/* A core whose codes have fields. It has few names, since an unknown one is compared with each of them. */
static const char platform[] =
	"{\"platform\":\"p\",\"title\":\"P\",\"arch\":\"riscv\",\"source\":\"s\",\"verified\":"
	"\"no\","
	"\"cpus\":[{\"arch\":\"riscv\"," ORIGIN
	"],\"events\":[" EVENT("a", "1") "," EVENT("b", "2") "," EVENT("both",
		"\"0x2000201\"") "],\"quirks\":["
				 "{\"quirk\":\"selector\",\"name\":\"x\"," ORIGIN
				 "," FIELD("E0", "0-7", "\"holds\":\"event\"") "," FIELD("E1",
					 "8-15", "\"holds\":\"event\"") "," FIELD("O0", "50-52",
					 "\"holds\":\"operation\",\"joins\":[\"E0\",\"E1\"],"
					 "\"values\":[\"OR=0\",\"ADD=4\"]") "," FIELD("MINH", "62",
					 "\"holds\":\"inhibit\"") "]}\n";
static const char machine_json[] =
	"{\"source\":\"made\",\"verified\":\"no\",\"files\":{\"/sys/devices/system/cpu/online\":"
	"\"0\\n\",\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0\","
	"\"mvendorid\":\"0x1\",\"marchid\":\"0x1\",\"mimpid\":\"0x0\"}],\"rules\":[]}";

#define FOLDER_BYTES 256

static void write_platform(char folder[static FOLDER_BYTES])
{
	char path[FOLDER_BYTES + 16];
	const char *tmp = getenv("TMPDIR");
	snprintf(folder, FOLDER_BYTES, "%s/fuzz-event-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		abort();
	snprintf(path, sizeof(path), "%s/p.json", folder);
	FILE *f = fopen(path, "we");
	if (!f || fputs(platform, f) < 0 || fclose(f) != 0)
		abort();
}

static void remove_platform(const char *folder)
{
	char path[FOLDER_BYTES + 16];
	snprintf(path, sizeof(path), "%s/p.json", folder);
	unlink(path);
	rmdir(folder);
}

/* Made at the first call. */
static const struct cores *known_cores(void)
{
	static struct cores *cores;
	static struct replay *replay;
	char folder[FOLDER_BYTES];
	struct replay_error error;
	struct machine machine;
	if (cores)
		return cores;
	write_platform(folder);
	if (replay_parse(machine_json, &replay, &error) != 0 ||
		machine_read(replay_kernel(replay), &machine) != 0 ||
		cores_new(folder, "", &cores) != 0 ||
		cores_read(cores, replay_kernel(replay), &machine) != 0 ||
		!*cores_platform(cores, 0)->selector)
		abort();
	remove_platform(folder);
	return cores;
}

static void try(const struct kernel *k, const struct cores *cores, const char *text)
{
	struct event_list list = {0};
	struct event_error error = {""};
	int r = event_parse_for(k, cores, text, &list, &error);
	if (r < 0 || (r == 0) != (list.n_events > 0) || (r > 0 && !error.text[0]))
		abort();
	for (int i = 0; i < list.n_events; i++) {
		struct perf_event_attr attr = {0};
		event_to_attr(&list.event[i], &attr);
		if (list.event[i].group >= list.n_groups)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	char *newline = strchr(text, '\n');
	struct input in = {"", 0};
	if (newline) {
		*newline = '\0';
		in = (struct input){newline + 1, strlen(newline + 1)};
	}

	struct kernel k = {.read_text = fuzz_read, .list = fuzz_list, .userdata = &in};
	try(&k, NULL, text);
	try(&k, known_cores(), text);
	free(text);
	return 0;
}
