/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperf-generator: timers of the schedules that have a time
 *
 *      nightly.schedule ─▶ mperf-schedule-nightly.timer, wanted by timers.target
 *                          mperf-schedule-nightly.service: mperfctl schedule run nightly
 *
 * systemd runs it early at boot and at each daemon-reload (systemd.generator(7)): it may talk to
 * nobody, and waits for nothing. What is wrong with a schedule goes to the kernel's log, and costs no
 * other; a time that is wrong is refused by systemd when it reads the timer.
 *
 * The service only asks mperfd, which records: it runs as mperfd's user, without any rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/memory.h"
#include "proto/syntax/schedule.h"

#define KMSG "/dev/kmsg"
#define KMSG_ERROR "<3>" /* Source: Linux 6.12, Documentation/ABI/testing/dev-kmsg */
/* Another folder of schedules, for tests and to see what would be made. */
#define FOLDER_VARIABLE "MPERF_SCHEDULES"

static const char *folder(void)
{
	const char *other = getenv(FOLDER_VARIABLE);
	return other && *other ? other : SCHEDULES_PATH;
}

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "mperf-generator: %s\n", text);
	if (getenv(FOLDER_VARIABLE))
		return;
	_cleanup_(closep) int fd = open(KMSG, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0)
		dprintf(fd, KMSG_ERROR "mperf-generator: %s\n", text);
}

/* --- units ------------------------------------------------------------------------------------ */

/* A % begins a specifier of systemd.unit(5). */
static void print_escaped(const char *text, FILE *f)
{
	for (; *text; text++)
		fputs(*text == '%' ? "%%" : (const char[]){*text, '\0'}, f);
}

static void print_head(const struct schedule *s, const char *what, FILE *f)
{
	fprintf(f,
		"# Made by mperf-generator; change %s/%s" SCHEDULE_SUFFIX "\n\n"
		"[Unit]\n"
		"Description=%s of the mperf schedule %s\n"
		"Documentation=man:mperf-schedule(5)\n"
		"SourcePath=",
		folder(), s->name, what, s->name);
	print_escaped(folder(), f);
	fprintf(f, "/%s" SCHEDULE_SUFFIX "\n", s->name);
}

static void print_timer(const struct schedule *s, FILE *f)
{
	print_head(s, "Timer", f);
	fputs("\n[Timer]\n", f);
	for (size_t i = 0; i < s->n_calendars; i++) {
		fputs("OnCalendar=", f);
		print_escaped(s->calendar[i], f);
		fputc('\n', f);
	}
}

/* 3 is what mperfctl says of a recording that was skipped: the reason is in its list. */
static void print_service(const struct schedule *s, FILE *f)
{
	print_head(s, "Recording", f);
	fprintf(f,
		"Wants=mperfd.service\n"
		"After=mperfd.service\n"
		"\n[Service]\n"
		"Type=exec\n"
		"ExecStart=" MPERF_BINDIR "/mperfctl schedule run %s\n"
		"SuccessExitStatus=3\n"
		"User=mperf\n"
		"Group=mperf\n"
		"CapabilityBoundingSet=\n"
		"NoNewPrivileges=yes\n"
		"ProtectSystem=strict\n"
		"ProtectHome=yes\n"
		"PrivateTmp=yes\n"
		"PrivateDevices=yes\n"
		"PrivateNetwork=yes\n"
		"IPAddressDeny=any\n"
		"RestrictAddressFamilies=AF_UNIX\n"
		"ProtectProc=invisible\n"
		"ProcSubset=pid\n"
		"ProtectClock=yes\n"
		"ProtectHostname=yes\n"
		"ProtectControlGroups=yes\n"
		"ProtectKernelLogs=yes\n"
		"ProtectKernelModules=yes\n"
		"ProtectKernelTunables=yes\n"
		"RestrictNamespaces=yes\n"
		"RestrictRealtime=yes\n"
		"RestrictSUIDSGID=yes\n"
		"LockPersonality=yes\n"
		"MemoryDenyWriteExecute=yes\n"
		"KeyringMode=private\n"
		"SystemCallArchitectures=native\n"
		"SystemCallErrorNumber=EPERM\n"
		"SystemCallFilter=@system-service\n"
		"SystemCallFilter=~@privileged @resources\n"
		"UMask=0077\n",
		s->name);
}

/* --- files ------------------------------------------------------------------------------------ */

static int write_unit(int to, const struct schedule *s, const char *type,
	void (*print)(const struct schedule *s, FILE *f))
{
	char name[SCHEDULE_NAME_BYTES_MAX + 32];
	snprintf(name, sizeof(name), "mperf-schedule-%s.%s", s->name, type);
	int fd = openat(to, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		int error = errno;
		if (fd >= 0)
			close(fd);
		return -error;
	}
	print(s, f);
	return fclose(f) == 0 ? 0 : -errno;
}

static int want_timer(int to, const struct schedule *s)
{
	char target[SCHEDULE_NAME_BYTES_MAX + 32], link[SCHEDULE_NAME_BYTES_MAX + 64];
	snprintf(target, sizeof(target), "../mperf-schedule-%s.timer", s->name);
	snprintf(link, sizeof(link), "timers.target.wants/mperf-schedule-%s.timer", s->name);
	if (mkdirat(to, "timers.target.wants", 0755) < 0 && errno != EEXIST)
		return -errno;
	return symlinkat(target, to, link) == 0 || errno == EEXIST ? 0 : -errno;
}

static int make_units(int to, const struct schedule *s)
{
	int r = write_unit(to, s, "service", print_service);
	if (r == 0)
		r = write_unit(to, s, "timer", print_timer);
	if (r == 0)
		r = want_timer(to, s);
	if (r < 0)
		say("the units of schedule %s cannot be written: %s", s->name, strerror(-r));
	return r;
}

int main(int argc, char **argv)
{
	struct schedule_list l;
	int failed = 0;
	if (argc != 2 && argc != 4) {
		fprintf(stderr, "mperf-generator: it takes one folder, or three as systemd gives "
				"them; see systemd.generator(7)\n");
		return 2;
	}
	_cleanup_(closep) int to = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0) {
		say("%s cannot be written to: %s", argv[1], strerror(errno));
		return 1;
	}
	if (schedules_read(folder(), &l) < 0) {
		say("there is not enough memory to read %s", folder());
		return 1;
	}
	for (size_t i = 0; i < l.n_errors; i++)
		say("%s; this schedule is left out", l.error[i].text);
	for (size_t i = 0; i < l.n; i++)
		if (l.schedule[i].kind == SCHEDULE_CALENDAR)
			failed |= make_units(to, &l.schedule[i]) != 0;
	schedules_clear(&l);
	return failed;
}
