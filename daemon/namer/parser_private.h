/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the parser's files: the table of files, and the spaces of processes. */

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"
#include "daemon/namer/message.h"
#include "daemon/namer/parser.h"
#include "daemon/namer/unwind.h"

/* Heap up to which idle images are kept: the kernel's symbols, one unpacked C library, and the
 * symbols of the programs of a machine that compiles. */
#define PARSER_KEPT_BYTES ((size_t)22 << 20)
/* Heap above which images in use are dropped, too, except the image used last. */
#define PARSER_CROWDED_BYTES ((size_t)26 << 20)

/* The cost of making something: the CPU time that it took, and the heap that it takes. */
struct effort {
	uint64_t cpu_ns;
	size_t heap_bytes;
};

/* Identity of a file when it was read. */
struct identity {
	dev_t device;
	ino_t inode;
	off_t bytes;
	int64_t written_ns, changed_ns;
};

struct parsed_file {
	uint32_t id;
	int fd[N_PARTS];
	uint32_t kind;
	uint64_t base;
	char module[64];     /* Source: MODULE_NAME_LEN, include/linux/moduleparam.h */
	struct image *image; /* NULL: not loaded; other files may have the same one */
	struct identity identity[N_PARTS]; /* identity of each file that the image was made of */
	uint64_t used;                     /* counter value of the last use */
	uint64_t used_ns;                  /* and its time */
	bool rests;                        /* its pages were released since its last use */
	uint64_t released_ns;              /* and when they were released last */
	struct effort load;                /* of the image without its lines */
	struct effort lines;               /* effort to unpack the lines */
	struct effort units;               /* effort to read the requested units, estimated */
	/* the debug file was verified as its own, by reading all of it */
	bool debug_belongs;
	bool loaded; /* loaded once: if freed, it is made again on request */
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
	uint64_t modules_ns;       /* when all its modules were read; 0: not yet */
	uint32_t n_unreleased; /* names since an image last released its pages for their number */
	uint64_t clock;
	uint64_t now_ns;    /* of the request in hand, CLOCK_MONOTONIC */
	uint64_t rested_ns; /* when parser_rest last looked */
	bool grown;         /* something was loaded since */
	uint8_t out[MESSAGE_BYTES_MAX];
	struct image_naming naming;
	struct unwound unwound;
};

/* NULL if it was not received, or was forgotten. */
struct parsed_file *parser_file(struct parser *p, uint32_t id);
void parser_forget_file(struct parser *p, uint32_t id);
void parser_file_clear(struct parsed_file *f);
void parser_space_clear(struct parsed_space *s);
/* Free every image and space except that of `kept`. False if there was nothing to free. */
bool parser_make_room(struct parser *p, const struct parsed_file *kept);

/* Free parts of other images, until this one can grow by that many bytes and the heap stays within its limit. */
void parser_leave_room(struct parser *p, struct parsed_file *f, size_t bytes);

/* Free parts that are not worth their memory, and parts that idle images need not hold. Call it often; it
 * acts once a second, and after a load. True if any was freed or shrunk. */
bool parser_rest(struct parser *p, uint64_t now_ns);
/* The milliseconds until parser_rest has to be called again although no request came; -1: only after a
 * request. */
int parser_rest_ms(const struct parser *p, uint64_t now_ns);

/* Give it the image of another file that is the same in all its parts. False: there is none. */
bool parser_share(struct parser *p, struct parsed_file *f);
bool parser_identify(int fd, struct identity *ret_identity);
/* Note a use of all files that have the same image. */
void parser_touch_shared(struct parser *p, const struct parsed_file *f);

/* Exported for tests. */
size_t parser_heap_bytes(void);
/* The effort since effort_now. */
struct effort effort_now(void);
struct effort effort_since(const struct effort *begin);

int parser_answer(struct parser *p, const struct message *question, void *answer, uint32_t type,
	size_t bytes);
int parser_done(struct parser *p, const struct message *question, int error);

int parser_take_load(struct parser *p, const void *bytes, size_t n);
/* Add the part's descriptor, which is already in the table, to the image, and answer. */
int parser_add_part(struct parser *p, const struct message_file *m, struct parsed_file *f);
/* Add the .dwo that was wanted, whose descriptor is borrowed, and answer. */
int parser_add_split(struct parser *p, const struct message_file *m, struct parsed_file *f, int fd);
int parser_take_name(struct parser *p, const void *bytes, size_t n);
int parser_take_grow(struct parser *p, const void *bytes, size_t n);

int parser_take_table(struct parser *p, const void *bytes, size_t n);
int parser_take_space(struct parser *p, const void *bytes, size_t n);
int parser_take_unwind(struct parser *p, const void *bytes, size_t n);
void parser_forget_spaces_of(struct parser *p, uint32_t file); /* 0: all */
/* Forget mappings of which not all have arrived. */
void parser_drop_arriving(struct parser *p);

/* Test builds spin or crash on images that request it; others do nothing. */
void parser_trap_image(int fd);
void parser_trap_stack(const uint8_t *stack, size_t n);
