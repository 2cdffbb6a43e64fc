/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What the parser's files share: the table of files, and the spaces of processes. */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"
#include "daemon/namer/message.h"
#include "daemon/namer/parser.h"
#include "daemon/namer/unwind.h"

struct parsed_file {
	uint32_t id;
	int fd[N_PARTS];
	uint32_t kind;
	uint64_t base;
	char module[64];     /* Source: MODULE_NAME_LEN, include/linux/moduleparam.h */
	struct image *image; /* NULL: not loaded */
	off_t bytes;         /* of a file that grows, when it was loaded */
	uint64_t used;       /* clock of the last use */
	uint64_t used_ns;    /* and its time */
	bool rests;          /* image_rest was called since its last use */
	bool debug_belongs;  /* the debug file is its own, as was once found out by reading all of it */
	bool loaded;         /* once: what is no more there is made again when it is asked for */
};

struct parsed_space {
	uint64_t generation;
	uint32_t *file; /* ids of its maps, ascending, each once */
	uint32_t n_files;
	struct unwinder *unwinder;
	uint64_t used;
};

/* Maps that arrive in several messages. */
struct parsed_maps {
	uint64_t generation;
	struct unwind_map *map;
	uint32_t n_maps, n_total;
};

struct parser {
	parser_send *send;
	void *userdata;
	struct parsed_file file[PARSER_FILES_MAX];
	uint32_t n_files;
	struct parsed_space space[PARSER_SPACES_MAX];
	uint32_t n_spaces;
	struct parsed_maps arriving;
	struct kallsyms *kallsyms; /* NULL: not read */
	uint64_t kallsyms_ns;      /* when it was read */
	uint64_t clock;
	uint64_t now_ns;    /* of the request in hand, CLOCK_MONOTONIC */
	uint64_t rested_ns; /* when parser_rest last looked */
	uint8_t out[MESSAGE_BYTES_MAX];
	struct image_naming naming;
	struct unwound unwound;
};

/* NULL if it was not handed over, or was forgotten. */
struct parsed_file *parser_file(struct parser *p, uint32_t id);
void parser_forget_file(struct parser *p, uint32_t id);
/* Free every image and space but the one of `kept`. False if there was nothing to free. */
bool parser_make_room(struct parser *p, const struct parsed_file *kept);

/* Free images that are not worth their memory, and what idle ones need not hold; to be called often,
 * looks once a second. True if any was freed, or laid to rest. */
bool parser_rest(struct parser *p, uint64_t now_ns);
/* Make an image that was freed again. False: it cannot be made, or never was. */
bool parser_load_again(struct parser *p, struct parsed_file *f);

int parser_answer(struct parser *p, const struct message *question, void *answer, uint32_t type,
	size_t bytes);
int parser_done(struct parser *p, const struct message *question, int error);

int parser_take_load(struct parser *p, const void *bytes, size_t n);
/* Takes the part's descriptor, which is in the table already, into the image, and answers. */
int parser_add_part(struct parser *p, const struct message_file *m, struct parsed_file *f);
int parser_take_name(struct parser *p, const void *bytes, size_t n);

int parser_take_space(struct parser *p, const void *bytes, size_t n);
int parser_take_unwind(struct parser *p, const void *bytes, size_t n);
void parser_forget_spaces_of(struct parser *p, uint32_t file); /* 0: all */

/* Test builds spin or crash on images that ask for it; others do nothing. */
void parser_trap_image(int fd);
void parser_trap_stack(const uint8_t *stack, size_t n);
