/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Mangled names, real ones and forged ones. */

#include "daemon/namer/demangle.h"
#include "daemon/namer/names.h"
#include "tests/unit/test.h"

#define ELLIPSIS "…"

static const struct {
	const char *mangled, *readable;
} known[] = {
	{"_ZN2ns1fEi", "ns::f"},
	{"_Z3fooIiEvT_", "foo<int>"},
	{"_ZNK3Foo3barEv", "Foo::bar"},
	{"_ZN3FooC1Ev", "Foo::Foo"},
	{"_ZN3FooD0Ev", "Foo::~Foo"},
	{"_ZN3FooplERKS_", "Foo::operator+"},
	{"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back"},
	{"_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden"},
	{"_ZN2ns1fEi.cold", "ns::f [clone .cold]"},
	{"_ZN2ns1fEi.constprop.0.isra.0", "ns::f [clone .constprop.0.isra.0]"},
	{"_ZN2ns1fEi.llvm.1234567890", "ns::f"},
	{"_ZN2ns1fEi@plt", "ns::f@plt"},
	{"_ZTVN2ns1CE", "vtable for ns::C"},
	{"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str"},
	{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
	 "3bar17h930b740aa94f1d3aE",
		"<Test + 'static as foo::Bar<Test>>::bar"},
	{"_RNvC6_123foo3bar", "123foo::bar"},
	{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
	{"_RNvNtCs1234_7mycrate3foo3bar.llvm.99", "mycrate::foo::bar"},
};

TEST(mangled_names_become_readable, .times = sizeof(known) / sizeof(*known))
{
	char readable[DEMANGLED_BYTES];

	ck_assert_int_eq(demangle(known[_i].mangled, readable), 0);
	ck_assert_str_eq(readable, known[_i].readable);
}

static const char *const plain[] = {"main", "", "_", "_Z", "_R", "_start", "_ZN", "_Zfoo bar",
	"_ZN99999999999foo1aE", "_Rfoo", "_R", "_RNvC", "_ZZZZZZZZZZ", "_Z\xff\xfe", "_ZN4core3fmt",
	"_RB_", "_RNvB_3foo", "_ZS_", "_ZSt", "_Z1fIXadL", "_Reset", "_ZNSt"};

TEST(what_is_no_mangled_name_stays_untouched, .times = sizeof(plain) / sizeof(*plain))
{
	char readable[DEMANGLED_BYTES] = "untouched";

	ck_assert_int_eq(demangle(plain[_i], readable), DEMANGLE_PLAIN);
	ck_assert_str_eq(readable, "untouched");
}

/* f<p<int, int>, p<S1, S1>, p<S2, S2>, …>: each argument holds the one before twice, by
 * substitution (S_ is f, S0_ is p). */
static void doubling_name(char *to, size_t size, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = (size_t)snprintf(to, size, "_Z1fI1pIiiE");

	for (int i = 1; i <= levels && n + 32 < size; i++)
		n += (size_t)snprintf(to + n, size - n, "S0_IS%c_S%c_E", digits[i], digits[i]);
	snprintf(to + n, size - n, "EvT_");
}

TEST(exponential_expansion_is_cut_at_once)
{
	char mangled[512], readable[DEMANGLED_BYTES];

	doubling_name(mangled, sizeof(mangled), 3);
	ck_assert_int_eq(demangle(mangled, readable), 0);
	ck_assert_ptr_null(strstr(readable, ELLIPSIS));
	doubling_name(mangled, sizeof(mangled), 35);
	ck_assert_int_eq(demangle(mangled, readable), 0);
	ck_assert_uint_le(strlen(readable), IMAGE_NAME_BYTES_MAX);
	ck_assert(strstr(readable, ELLIPSIS) != NULL);
}

TEST(nesting_without_end_is_refused)
{
	static char mangled[6000];
	char readable[DEMANGLED_BYTES];

	for (size_t n = 100; n + 1 < sizeof(mangled); n += 500) {
		memset(mangled, 'P', n);
		memcpy(mangled, "_Z1fI", 5);
		mangled[n] = '\0';
		ck_assert_int_eq(demangle(mangled, readable), DEMANGLE_PLAIN);
		memset(mangled, 'R', n);
		memcpy(mangled, "_RIYR", 5);
		mangled[n] = '\0';
		ck_assert_int_eq(demangle(mangled, readable), DEMANGLE_PLAIN);
	}
}

TEST(lifetimes_without_number_are_refused)
{
	char readable[DEMANGLED_BYTES];

	ck_assert_int_eq(demangle("_RINvC3foo3barFG0_RL0_hRL1_hEuE", readable), 0);
	ck_assert_str_eq(readable, "foo::bar::<for<'a, 'b> fn(&'b u8, &'a u8)>");
	/* two lifetimes, and 62^10: what is left out of the text (an impl's path) is counted too */
	ck_assert_int_eq(demangle("_RNvMINvC3foo3barFG0_RL0_hEuEh3baz", readable), 0);
	ck_assert_int_eq(
		demangle("_RNvMINvC3foo3barFGZZZZZZZZZZ_RL0_hEuEh3baz", readable), DEMANGLE_PLAIN);
	ck_assert_int_eq(
		demangle("_RNvMINvC3foo3barDGZZZZZZZZZZ_EL_Eh3baz", readable), DEMANGLE_PLAIN);
	/* an identifier may look like one, where no function type is */
	ck_assert_int_eq(demangle("_RNvC3foo10AGZZZZZZZ_", readable), 0);
}

TEST(each_prefix_of_a_name_is_survived, .times = sizeof(known) / sizeof(*known))
{
	char mangled[256], readable[DEMANGLED_BYTES];

	for (size_t n = 0; n <= strlen(known[_i].mangled); n++) {
		memcpy(mangled, known[_i].mangled, n);
		mangled[n] = '\0';
		int r = demangle(mangled, readable);
		ck_assert(r == 0 || r == DEMANGLE_PLAIN);
		if (r == 0)
			ck_assert_uint_le(strlen(readable), IMAGE_NAME_BYTES_MAX);
	}
}

/* Names of n bytes: `character` repeated, as one identifier of a namespace. */
TEST(long_names_are_cut_between_characters)
{
	struct names names = {0};
	char text[2 * IMAGE_NAME_BYTES_MAX];

	/* "ä" has two bytes and "€" has three: no offset of the limit may split one. */
	for (size_t shift = 0; shift < 4; shift++) {
		size_t n = shift;
		memset(text, 'x', shift);
		while (n + 3 < sizeof(text)) {
			memcpy(text + n, "€", 3);
			n += 3;
		}
		const char *cut = names_copy(&names, text, n);
		ck_assert_ptr_nonnull(cut);
		size_t length = strlen(cut);
		ck_assert_uint_le(length, IMAGE_NAME_BYTES_MAX);
		ck_assert_uint_gt(length, IMAGE_NAME_BYTES_MAX - 8);
		const char *middle = strstr(cut, ELLIPSIS);
		ck_assert_ptr_nonnull(middle);
		ck_assert_uint_eq(((size_t)(middle - cut) - shift) % 3, 0);
		ck_assert_uint_eq(strspn(middle + 3, "0123456789abcdef"), 8);
		ck_assert_int_eq(strncmp(middle + 11, ELLIPSIS "€", 6), 0);
	}
	names_clear(&names);
}

TEST(long_names_that_differ_stay_two)
{
	struct names names = {0};
	char text[2 * IMAGE_NAME_BYTES_MAX];

	memset(text, 'x', sizeof(text));
	memcpy(text + sizeof(text) - 6, "::poll", 6);
	const char *poll = names_copy(&names, text, sizeof(text));
	ck_assert_str_eq(poll + strlen(poll) - 6, "::poll");
	text[IMAGE_NAME_BYTES_MAX] = 'y'; /* in the middle, which is cut */
	const char *other = names_copy(&names, text, sizeof(text));
	ck_assert_str_ne(poll, other);
	ck_assert_uint_eq(strlen(poll), strlen(other));
	names_clear(&names);
}

TEST(names_at_the_limit_are_whole)
{
	struct names names = {0};
	char text[IMAGE_NAME_BYTES_MAX + 2];

	memset(text, 'x', sizeof(text));
	ck_assert_uint_eq(
		strlen(names_copy(&names, text, IMAGE_NAME_BYTES_MAX)), IMAGE_NAME_BYTES_MAX);
	ck_assert_ptr_null(strstr(names_copy(&names, text, IMAGE_NAME_BYTES_MAX), ELLIPSIS));
	ck_assert_ptr_nonnull(strstr(names_copy(&names, text, IMAGE_NAME_BYTES_MAX + 1), ELLIPSIS));
	ck_assert_str_eq(names_copy(&names, "a\0b", 3), "a");
	ck_assert_str_eq(names_join(&names, "memcpy", "@plt"), "memcpy@plt");
	ck_assert_str_eq(names_symbol(&names, "clock_gettime@@GLIBC_2.17"), "clock_gettime");
	ck_assert_str_eq(names_symbol(&names, "_ZN2ns1fEi@@V1"), "ns::f");
	ck_assert_str_eq(names_symbol(&names, "@@"), "@@");
	ck_assert_str_eq(names_demangle(&names, "JS:~@@iterator a.js:1"), "JS:~@@iterator a.js:1");
	names_clear(&names);
}

TEST(a_name_is_demangled_once)
{
	static const char mangled[] = "_ZN2ns1fEi";
	struct names names = {0};

	const char *first = names_demangle(&names, mangled);
	size_t n_bytes = names.n_bytes;
	ck_assert_str_eq(first, "ns::f");
	ck_assert_ptr_eq(names_demangle(&names, mangled), first);
	ck_assert_uint_eq(names.n_bytes, n_bytes);
	ck_assert_ptr_null(names_demangle(&names, NULL));
	static const char plain_name[] = "main";
	ck_assert_ptr_eq(names_demangle(&names, plain_name), plain_name);
	names_clear(&names);
}
