/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* libiberty knows the grammars; this file bounds it. A few hundred bytes of mangled name can expand
 * to gigabytes of text (each substitution doubles it), so the text is taken piece by piece through
 * the callback, and a longjmp leaves the demangler as soon as the buffer is full. For C++, whose
 * printer is on the stack, this leaks nothing; a Rust identifier in Punycode may leak one buffer
 * per hostile name. libiberty limits recursion itself (DEMANGLE_RECURSION_LIMIT) and therefore
 * refuses C++ names of more than 1024 bytes: those stay mangled. libiberty also parses parts of a
 * Rust name that it does not print, without callbacks: "for" with 2^64 lifetimes would be parsed to
 * its end.
 */

#include "daemon/namer/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "daemon/namer/name_cut.h"
#include "daemon/namer/names.h"

/* Real mangled names reach a few kilobytes; the demangler's stack grows with this. */
#define MANGLED_BYTES_MAX 4096
/* Digits of a number of lifetimes: one digit means up to 62 lifetimes, more than any real name
 * has. */
#define LIFETIME_DIGITS_MAX 1
/* Bytes of a demangled name that are taken before it is cut. */
#define DEMANGLED_TEXT_MAX (16 * IMAGE_NAME_BYTES_MAX)

struct output {
	jmp_buf full;
	char text[DEMANGLED_TEXT_MAX];
	size_t n;
};

static void output_take(const char *piece, size_t n, void *userdata)
{
	struct output *o = userdata;
	size_t room = sizeof(o->text) - 1 - o->n;
	size_t taken = n < room ? n : room;

	if (taken) /* libiberty also calls back with a null pointer and no bytes */
		memcpy(o->text + o->n, piece, taken);
	o->n += taken;
	if (taken < n)
		longjmp(o->full, 1);
}

typedef int demangler(const char *, int, demangle_callbackref, void *);

static bool output_run(struct output *o, demangler *run, const char *mangled)
{
	o->n = 0;
	if (setjmp(o->full))
		return true; /* all that fits */

	/* DMGL_ANSI without DMGL_PARAMS: "f() const" and "f(int)" are both "f". */
	return run(mangled, DMGL_ANSI, output_take, o) && o->n;
}

static void output_add(struct output *o, const char *text)
{
	size_t n = strlen(text), room = sizeof(o->text) - 1 - o->n;

	memcpy(o->text + o->n, text, n < room ? n : room);
	o->n += n < room ? n : room;
}

/* Itanium names have neither '.' nor '@': a suffix from there on was added later. */
static bool demangle_cplus(struct output *o, const char *mangled)
{
	char base[MANGLED_BYTES_MAX + 1];
	size_t n = strcspn(mangled, ".@");
	const char *suffix = mangled + n;

	memcpy(base, mangled, n);
	base[n] = '\0';
	if (!output_run(o, cplus_demangle_v3_callback, base))
		return false;

	if (*suffix == '@') {
		output_add(o, suffix);
	} else if (*suffix == '.' && strncmp(suffix, ".llvm.", 6) != 0) {
		output_add(o, " [clone ");
		output_add(o, suffix);
		output_add(o, "]");
	}
	return true;
}

/* "for<…>" is G, a number in base 62 and "_", before the parameters of a function type (F) or the
 * bounds of a trait object (D). A name with an identifier that looks like it stays mangled. Source:
 * the Rust RFC 2603, <fn-sig>, <dyn-bounds> and <binder>. */
static bool has_many_lifetimes(const char *mangled)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (const char *p = mangled + 2; (p = strchr(p, 'G')); p++) {
		size_t n = strspn(p + 1, digits);

		if ((p[-1] == 'F' || p[-1] == 'D') && n > LIFETIME_DIGITS_MAX && p[1 + n] == '_')
			return true;
	}
	return false;
}

static bool demangle_rust(struct output *o, const char *mangled)
{
	char base[MANGLED_BYTES_MAX + 1];
	size_t n = strcspn(mangled, "@");

	memcpy(base, mangled, n);
	base[n] = '\0';
	if (mangled[1] == 'R' && has_many_lifetimes(mangled))
		return false;
	if (!output_run(o, rust_demangle_callback, base))
		return false;

	output_add(o, mangled + n);
	return true;
}

int demangle(const char *mangled, char ret_readable[DEMANGLED_BYTES])
{
	if (mangled[0] != '_' || (mangled[1] != 'Z' && mangled[1] != 'R'))
		return DEMANGLE_PLAIN;
	if (strnlen(mangled, MANGLED_BYTES_MAX + 1) > MANGLED_BYTES_MAX)
		return DEMANGLE_PLAIN;

	/* Rust first: its older names are C++ names with a hash as the last component. */
	struct output output;
	if (!demangle_rust(&output, mangled) && !demangle_cplus(&output, mangled))
		return DEMANGLE_PLAIN;

	name_cut(output.text, output.n, ret_readable);
	return 0;
}
