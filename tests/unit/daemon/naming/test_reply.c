/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Replies of workers as outside bytes, and requests as the workers check them.
 */

#include "daemon/namer/opener.h"
#include "daemon/namer/parser.h"
#include "daemon/naming/reply.h"
#include "tests/unit/test.h"

static uint8_t message[MESSAGE_BYTES_MAX];
static size_t n_message;

static void put(const void *bytes, size_t n)
{
	memcpy(message + n_message, bytes, n);
	n_message += n;
}

/* "main" inlined into nothing, in a.c:7; then an offset outside of symbols. */
static void put_names(void)
{
	struct message_named m = {.head = {.type = MESSAGE_NAMED},
		.file = 1,
		.state = STATE_READY,
		.n = 2,
		.last = 1};
	struct message_naming named = {.outcome = NAMING_NAMED, .n_places = 1},
			      out = {.outcome = NAMING_OUT_OF_SYMBOL};
	struct message_place place = {.line = 7, .n_function = 4, .n_source = 3};

	n_message = 0;
	put(&m, sizeof(m));
	put(&named, sizeof(named));
	put(&place, sizeof(place));
	put("maina.c", 7);
	put(&out, sizeof(out));
}

/* 0 if the whole message is well-formed, else what refused it. The bytes are copied to the end of
 * an allocation, so that a sanitizer sees one read too far. */
static int read_names(size_t n)
{
	struct reply_names names;
	struct reply_naming naming;
	uint8_t *exact = malloc(n ? n : 1);

	memcpy(exact, message, n);
	int r = reply_names_begin(&names, exact, n);
	while (r == 0)
		r = reply_names_next(&names, &naming);
	free(exact);
	return r == REPLY_END ? 0 : r;
}

TEST(names_are_read)
{
	struct reply_names names;
	struct reply_naming naming;

	put_names();
	ck_assert_int_eq(reply_names_begin(&names, message, n_message), 0);
	ck_assert_int_eq(reply_names_next(&names, &naming), 0);
	ck_assert_uint_eq(naming.n_places, 1);
	ck_assert_mem_eq(naming.place[0].function, "main", 4);
	ck_assert_mem_eq(naming.place[0].source, "a.c", 3);
	ck_assert_uint_eq(naming.place[0].line, 7);
	ck_assert_int_eq(reply_names_next(&names, &naming), 0);
	ck_assert_uint_eq(naming.outcome, NAMING_OUT_OF_SYMBOL);
	ck_assert_int_eq(reply_names_next(&names, &naming), REPLY_END);
}

TEST(names_cut_anywhere_are_refused)
{
	put_names();
	for (size_t n = 0; n < n_message; n++)
		ck_assert_int_eq(read_names(n), -EBADMSG);
	ck_assert_int_eq(read_names(n_message), 0);
}

TEST(names_with_bytes_left_over_are_refused)
{
	put_names();
	put("x", 1);
	ck_assert_int_eq(read_names(n_message), -EBADMSG);
}

TEST(name_with_nul_inside_is_refused)
{
	put_names();
	uint8_t *name = memmem(message, n_message, "main", 4);
	name[2] = 0;
	ck_assert_int_eq(read_names(n_message), -EBADMSG);
}

static int read_grown(
	uint32_t state, uint32_t order, uint32_t n, const struct message_change *change)
{
	struct message_grown m = {
		.head = {.type = MESSAGE_GROWN}, .state = state, .order = order, .n = n};
	static struct reply_grown grown;

	n_message = 0;
	put(&m, sizeof(m));
	put(change, n * sizeof(*change));
	for (size_t cut = 0; cut < n_message; cut++)
		ck_assert_int_eq(reply_grown(message, cut, &grown), -EBADMSG);
	return reply_grown(message, n_message, &grown);
}

TEST(changes_that_contradict_themselves_are_refused)
{
	static const struct message_change good[] = {{0x10, 0x20, 7, 3, 0}, {0x10, 0x20, 0, 5, 0}};
	static const struct message_change bad[][2] = {
		{{0x10, 0x10, 7, 3, 0}, {0x10, 0x20, 7, 4, 0}},
		{{0x10, 0x20, 7, 3, 0}, {0x20, 0x10, 7, 4, 0}},
		{{0x10, 0x20, 7, 3, 0}, {0x10, 0x20, 7, 3, 0}},
		{{0x10, 0x20, 7, 3, 0}, {0x10, 0x20, 7, 6, 0}},
		{{0x10, 0x20, 7, 0, 0}, {0x10, 0x20, 7, 1, 0}},
	};

	ck_assert_int_eq(read_grown(STATE_READY, 5, 2, good), 0);
	ck_assert_int_eq(read_grown(STATE_READY, 0, 0, good), 0);
	ck_assert_int_eq(read_grown(STATE_FORGOTTEN, 0, 0, good), 0);
	ck_assert_int_eq(read_grown(STATE_FORGOTTEN, 5, 2, good), -EBADMSG);
	ck_assert_int_eq(read_grown(77, 0, 0, good), -EBADMSG);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(read_grown(STATE_READY, 5, 2, bad[i]), -EBADMSG);
}

static int read_head(uint32_t type, uint32_t state, uint32_t n, uint32_t last)
{
	struct message_named m = {.head = {.type = type}, .state = state, .n = n, .last = last};

	n_message = 0;
	put(&m, sizeof(m));
	return read_names(n_message);
}

TEST(names_that_contradict_themselves_are_refused)
{
	ck_assert_int_eq(read_head(MESSAGE_NAMED, STATE_READY, 0, 1), 0);
	ck_assert_int_eq(read_head(MESSAGE_LOADED, STATE_READY, 0, 1), -EBADMSG);
	ck_assert_int_eq(read_head(MESSAGE_NAMED, STATE_MALFORMED, 0, 1), -EBADMSG);
	ck_assert_int_eq(read_head(MESSAGE_NAMED, STATE_READY, 0, 2), -EBADMSG);
	ck_assert_int_eq(read_head(MESSAGE_NAMED, STATE_READY, UINT32_MAX, 1), -EBADMSG);
	ck_assert_int_eq(read_head(MESSAGE_NAMED, STATE_FORGOTTEN, 0, 1), 0);
	ck_assert_int_eq(read_head(MESSAGE_NAMED, STATE_FORGOTTEN, 0, 0), -EBADMSG);
	ck_assert_int_eq(read_head(MESSAGE_NAMED, STATE_FORGOTTEN, 1, 1), -EBADMSG);
}

static int read_split(const struct message_named *m, const void *path, size_t n_path)
{
	n_message = 0;
	put(m, sizeof(*m));
	put(path, n_path);
	return read_names(n_message);
}

TEST(a_wanted_split_unit_ends_the_names)
{
	static const char path[] = "/src/a.dwo";
	const size_t n = sizeof(path) - 1;
	const struct message_named good = {.head = {.type = MESSAGE_NAMED},
		.state = STATE_READY,
		.last = 1,
		.wants_split = 1,
		.n_split = (uint32_t)n};
	struct message_named bad[] = {good, good, good, good, good, good};
	bad[0].wants_split = 0; /* but a path */
	bad[1].wants_split = 2;
	bad[2].last = 0;
	bad[3].n_split = (uint32_t)n + 1; /* beyond the message */
	bad[4].n_split = MESSAGE_PATH_BYTES_MAX + 1;
	bad[5].state = STATE_FORGOTTEN;

	ck_assert_int_eq(read_split(&good, path, n), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(read_split(&bad[i], path, n), -EBADMSG);
	ck_assert_int_eq(read_split(&good, path, n - 1), -EBADMSG);
	ck_assert_int_eq(read_split(&good, path, n + 1), -EBADMSG); /* bytes left over */
	ck_assert_int_eq(read_split(&good, "/src/\0.dwo", n), -EBADMSG);
}

TEST(outcome_place_count_or_range_out_of_range_is_refused)
{
	struct message_named m = {
		.head = {.type = MESSAGE_NAMED}, .state = STATE_READY, .n = 1, .last = 1};
	struct message_naming bad[] = {{.outcome = 0}, {.outcome = NAMING_PLACED + 1},
		{.outcome = NAMING_NAMED, .n_places = MESSAGE_PLACES_MAX + 1},
		{.outcome = NAMING_PLACED, .from = 2, .to = 1}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		n_message = 0;
		put(&m, sizeof(m));
		put(&bad[i], sizeof(bad[i]));
		memset(message + n_message, 0, 4096);
		ck_assert_int_eq(read_names(n_message + (i == 2) * 33 * 12), -EBADMSG);
	}
}

TEST(a_place_says_whether_its_split_unit_is_missing)
{
	const size_t at = sizeof(struct message_named) + sizeof(struct message_naming) +
			  offsetof(struct message_place, split_missing);
	struct reply_names names;
	struct reply_naming naming;

	put_names();
	for (uint8_t missing = 0; missing < 2; missing++) {
		message[at] = missing;
		ck_assert_int_eq(reply_names_begin(&names, message, n_message), 0);
		ck_assert_int_eq(reply_names_next(&names, &naming), 0);
		ck_assert_int_eq(naming.place[0].split_missing, missing);
	}
	message[at] = 2;
	ck_assert_int_eq(read_names(n_message), -EBADMSG);
}

TEST(opened_is_read_or_refused)
{
	struct message_opened m = {.head = {.type = MESSAGE_OPENED},
				      .state = STATE_READY,
				      .n_path = 2},
			      got;
	const char *path;

	n_message = 0;
	put(&m, sizeof(m));
	put("/a", 2);
	ck_assert_int_eq(reply_opened(message, n_message, &got, &path), 0);
	ck_assert_mem_eq(path, "/a", 2);
	for (size_t n = 0; n < n_message; n++)
		ck_assert_int_eq(reply_opened(message, n, &got, &path), -EBADMSG);
	m.state = 1;
	memcpy(message, &m, sizeof(m));
	ck_assert_int_eq(reply_opened(message, n_message, &got, &path), -EBADMSG);
	m.state = STATE_FORGOTTEN;
	memcpy(message, &m, sizeof(m));
	ck_assert_int_eq(reply_opened(message, n_message, &got, &path), -EBADMSG);
	m.state = STATE_READY;
	m.n_path = UINT32_MAX;
	memcpy(message, &m, sizeof(m));
	ck_assert_int_eq(reply_opened(message, n_message, &got, &path), -EBADMSG);
}

TEST(loaded_without_ends_of_strings_is_refused)
{
	struct message_loaded m = {.head = {.type = MESSAGE_LOADED}, .state = STATE_READY}, got;

	ck_assert_int_eq(reply_loaded((uint8_t *)&m, sizeof(m), &got), 0);
	ck_assert_int_eq(reply_loaded((uint8_t *)&m, sizeof(m) - 1, &got), -EBADMSG);
	memset(m.debuglink, 'x', sizeof(m.debuglink));
	ck_assert_int_eq(reply_loaded((uint8_t *)&m, sizeof(m), &got), -EBADMSG);
	m.debuglink[255] = 0;
	ck_assert_int_eq(reply_loaded((uint8_t *)&m, sizeof(m), &got), 0);
	memset(m.alt_link, 'x', sizeof(m.alt_link));
	ck_assert_int_eq(reply_loaded((uint8_t *)&m, sizeof(m), &got), -EBADMSG);
	m.alt_link[0] = 0;
	m.n_build_id = 21;
	ck_assert_int_eq(reply_loaded((uint8_t *)&m, sizeof(m), &got), -EBADMSG);
}

TEST(unwound_is_read_or_refused)
{
	static struct reply_unwound got;
	struct message_unwound m = {
		.head = {.type = MESSAGE_UNWOUND}, .outcome = UNWINDING_DONE, .n = 1};
	struct message_frame frame = {.offset = 5, .file = 3};

	n_message = 0;
	put(&m, sizeof(m));
	put(&frame, sizeof(frame));
	ck_assert_int_eq(reply_unwound(message, n_message, &got), 0);
	ck_assert_uint_eq(got.frame[0].offset, 5);
	for (size_t n = 0; n < n_message; n++)
		ck_assert_int_eq(reply_unwound(message, n, &got), -EBADMSG);
	m.outcome = UNWINDING_FAILED; /* with frames */
	memcpy(message, &m, sizeof(m));
	ck_assert_int_eq(reply_unwound(message, n_message, &got), -EBADMSG);
	m.outcome = UNWINDING_DONE;
	m.n = MESSAGE_FRAMES_MAX + 1;
	memcpy(message, &m, sizeof(m));
	ck_assert_int_eq(
		reply_unwound(message, sizeof(m) + (MESSAGE_FRAMES_MAX + 1) * sizeof(frame), &got),
		-EBADMSG);
}

TEST(done_with_a_positive_error_is_refused)
{
	struct message_done m = {.head = {.type = MESSAGE_DONE}, .error = -12}, got;

	ck_assert_int_eq(reply_done((uint8_t *)&m, sizeof(m), &got), 0);
	m.error = 1;
	ck_assert_int_eq(reply_done((uint8_t *)&m, sizeof(m), &got), -EBADMSG);
	ck_assert_int_eq(reply_done((uint8_t *)&m, sizeof(m) - 1, &got), -EBADMSG);
}

/* --- requests --------------------------------------------------------------------------------- */

TEST(question_to_the_opener_is_read_or_refused)
{
	static struct opener_question q;
	struct message_open m = {.head = {.type = MESSAGE_OPEN}, .n_path = 4, .n_link = 2};

	n_message = 0;
	put(&m, sizeof(m));
	put("/bin", 4);
	put("ab", 2);
	ck_assert_int_eq(opener_decode(message, n_message, &q), 0);
	ck_assert_str_eq(q.path, "/bin");
	ck_assert_str_eq(q.link, "ab");
	for (size_t n = 0; n < n_message; n++)
		ck_assert_int_eq(opener_decode(message, n, &q), -EBADMSG);
	message[sizeof(m) + 1] = 0;
	ck_assert_int_eq(opener_decode(message, n_message, &q), -EBADMSG);
	m.part = N_PARTS;
	memcpy(message, &m, sizeof(m));
	message[sizeof(m) + 1] = 'b';
	ck_assert_int_eq(opener_decode(message, n_message, &q), -EBADMSG);
}

static uint8_t answer[MESSAGE_BYTES_MAX];

static int keep_answer(void *userdata, const void *bytes, size_t n)
{
	*(size_t *)userdata = n;
	memcpy(answer, bytes, n);
	return 0;
}

static uint32_t answer_type(void)
{
	struct message m;

	memcpy(&m, answer, sizeof(m));
	return m.type;
}

TEST(parser_says_that_it_does_not_have_a_file_or_space)
{
	struct parser *p = NULL;
	size_t n = 0;
	struct message_load load = {.head = {.type = MESSAGE_LOAD}, .file = 5, .kind = KIND_ELF};
	struct message_loaded loaded;
	struct message_unwind unwind = {.head = {.type = MESSAGE_UNWIND}, .generation = 3};
	struct message_unwound unwound;

	ck_assert_int_eq(parser_new(keep_answer, &n, &p), 0);
	ck_assert_int_eq(parser_take(p, &load, sizeof(load), -1), 0);
	ck_assert_uint_eq(answer_type(), MESSAGE_LOADED);
	memcpy(&loaded, answer, sizeof(loaded));
	ck_assert_uint_eq(loaded.state, STATE_FORGOTTEN);
	ck_assert_int_eq(parser_take(p, &unwind, sizeof(unwind), -1), 0);
	ck_assert_uint_eq(answer_type(), MESSAGE_UNWOUND);
	memcpy(&unwound, answer, sizeof(unwound));
	ck_assert_uint_eq(unwound.outcome, UNWINDING_NO_SPACE);
	parser_free(p);
}

TEST(parser_refuses_malformed_requests)
{
	struct parser *p = NULL;
	size_t n = 0;
	struct message_file file = {.head = {.type = MESSAGE_FILE}, .file = 1};
	struct message_name name = {.head = {.type = MESSAGE_NAME}, .file = 1, .n = 1};
	struct message_space space = {
		.head = {.type = MESSAGE_SPACE}, .n_total = MESSAGE_SPACE_MAPS_MAX + 1};
	struct message_unwind unwind = {.head = {.type = MESSAGE_UNWIND}, .regs_mask = 1};
	struct message hello = {.type = MESSAGE_HELLO};

	ck_assert_int_eq(parser_new(keep_answer, &n, &p), 0);
	ck_assert_int_eq(parser_take(p, &hello, sizeof(hello), -1), -EBADMSG);
	ck_assert_int_eq(parser_take(p, &hello, 3, -1), -EBADMSG);
	ck_assert_int_eq(parser_take(p, &file, sizeof(file), -1), -EBADMSG); /* no descriptor */
	ck_assert_int_eq(parser_take(p, &name, sizeof(name), -1), -EBADMSG); /* no offset */
	ck_assert_int_eq(parser_take(p, &space, sizeof(space), -1), -EBADMSG);
	space.n_total = 2;
	space.first = 1; /* without its beginning */
	ck_assert_int_eq(parser_take(p, &space, sizeof(space), -1), -EBADMSG);
	ck_assert_int_eq(parser_take(p, &unwind, sizeof(unwind), -1), -EBADMSG);
	parser_free(p);
}
