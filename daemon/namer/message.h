/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Messages between mperfd and its two namer workers
 *
 * A worker owns one end of a SOCK_SEQPACKET pair, so messages always arrive whole. Each begins with
 * a head; the daemon sends one request at a time, and every answer repeats its serial. Both ends
 * come from the same build and run on the same machine: plain structs, native byte order. The hello
 * has a version, in case an upgrade replaces only one of the two files.
 *
 *      opener   HELLO▶   ◀OPEN    OPENED+fd▶
 *      parser   HELLO▶   ◀FILE+fd DONE▶ (main), LOADED▶ (others)
 *                        ◀LOAD    LOADED▶
 *                        ◀NAME    NAMED▶ NAMED▶ … the last one is marked
 *                        ◀GROW    GROWN▶
 *                        ◀SPACE   DONE▶
 *                        ◀UNWIND  UNWOUND▶
 *                        ◀FORGET  DONE▶
 */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MESSAGE_MAGIC 0x6d706e72u /* "mpnr" */
#define MESSAGE_VERSION 10u
/* A copied stack of 64 KiB with its registers, or one offset with 32 inlined places: 66 KB. */
#define MESSAGE_BYTES_MAX (80u << 10)
#define MESSAGE_PATH_BYTES_MAX 4096u /* PATH_MAX; Source: include/uapi/linux/limits.h */
#define MESSAGE_LINK_BYTES_MAX 256u  /* file names are at most 255 bytes */
#define MESSAGE_OFFSETS_MAX 256u     /* per NAME; few, since a batch shares one deadline */
#define MESSAGE_CHANGES_MAX 256u     /* per GROWN; each is entered by the daemon itself */
#define MESSAGE_PLACES_MAX 32u       /* per offset */
#define MESSAGE_NAME_BYTES_MAX                                                                     \
	1024u /* per function or source path; longer ones are cut in their middle (name_cut.h) */
#define MESSAGE_MAPS_MAX 2048u         /* per SPACE message; 64 KB */
#define MESSAGE_SPACE_MAPS_MAX 4096u   /* per space; the unwinder's limit */
#define MESSAGE_REGS_MAX 64u           /* bits of perf's register mask */
#define MESSAGE_STACK_BYTES_MAX 65536u /* perf copies less. Source: man perf_event_open */
#define MESSAGE_FRAMES_MAX 256u        /* per unwound stack */
#define MESSAGE_BUILD_ID_BYTES 20u
#define MESSAGE_KIN 2 /* a script that runs programs, and what runs the script */

/* Resource limits of a worker. The daemon asserts that its own limits are the same. */
#define WORKER_FILE_BYTES_MAX (64ull << 30)
#define WORKER_DATA_BYTES_MAX (3ull << 30)
/* more than the daemon keeps open; at most four descriptors each */
#define PARSER_FILES_MAX 1024u

enum worker_role {
	WORKER_OPENER = 1,
	WORKER_PARSER = 2,
};

enum message_type {
	MESSAGE_HELLO = 1,
	MESSAGE_OPEN,
	MESSAGE_OPENED,
	MESSAGE_FILE,
	MESSAGE_DONE,
	MESSAGE_LOAD,
	MESSAGE_LOADED,
	MESSAGE_NAME,
	MESSAGE_NAMED,
	MESSAGE_SPACE,
	MESSAGE_UNWIND,
	MESSAGE_UNWOUND,
	MESSAGE_FORGET,
	MESSAGE_GROW,
	MESSAGE_GROWN,
	MESSAGE_TABLE,
	MESSAGE_TABLED,
};

/* The files of an image. */
enum message_part {
	PART_MAIN = 0,
	PART_DEBUG = 1,   /* separate debug file */
	PART_ALT = 2,     /* shared by several debug files (dwz) */
	PART_PACKAGE = 3, /* package of split units (.dwp) */
	PART_SPLIT = 4,   /* the wanted split unit (.dwo), one of many */
	N_PARTS,
};

/* The numbers of enum file_kind and enum file_state; the daemon asserts it. */
enum message_kind {
	KIND_ELF = 1,
	KIND_KERNEL = 2,
	KIND_MODULE = 3,
	KIND_VDSO = 4,
	KIND_PERF_MAP = 5,
	KIND_JITDUMP = 6,
};
enum message_state {
	STATE_READY = 2,
	STATE_VANISHED = 3,
	STATE_REFUSED = 4,
	STATE_NO_SYMBOLS = 5,
	STATE_MALFORMED = 6,
	STATE_OVERSIZE = 10,
	STATE_FORGOTTEN = 100, /* the parser no longer has the file: send it again */
};

struct message {
	uint32_t magic;
	uint32_t type;
	uint32_t serial;
	uint32_t bytes; /* of the whole message, this head included */
};
_Static_assert(sizeof(struct message) == 16, "head");

struct message_hello {
	struct message head;
	uint32_t role;
	uint32_t version;
};
_Static_assert(sizeof(struct message_hello) == 24, "hello");

/* An ancestor of the process that mapped the file: it may live longer, with the same mounts. */
struct message_kin {
	int32_t pid; /* 0: none */
	uint32_t zero;
	uint64_t start_ns; /* as pid_start_ns */
};
_Static_assert(sizeof(struct message_kin) == 16, "kin");

/* Followed by n_path bytes of path and n_link of link, without NUL. For PART_MAIN path is the file
 * that the process mapped; for PART_DEBUG the same, and link its .gnu_debuglink; for PART_ALT path
 * is the file whose .gnu_debugaltlink is link; for PART_PACKAGE path is the mapped file, and for
 * PART_SPLIT that of the unit. */
struct message_open {
	struct message head;
	uint32_t part;
	uint32_t kind;
	int32_t pid;           /* 0: unknown */
	uint32_t first;        /* skip this many candidates: they were not the file */
	uint64_t pid_start_ns; /* CLOCK_MONOTONIC; 0: unknown */
	uint64_t map_start, map_end;
	/* CLOCK_MONOTONIC; 0: unknown. A file written after the first time, or not since the second, is
	 * another file. A file whose status changed after the first time may be another: see first_mapper. */
	uint64_t not_after_ns, not_before_ns;
	uint64_t inode;      /* 0: unknown */
	uint64_t generation; /* of the inode number; 0: unknown */
	uint32_t major, minor;
	uint8_t build_id[MESSAGE_BUILD_ID_BYTES];
	uint8_t n_build_id;
	uint8_t deleted;
	uint16_t n_path, n_link;
	uint8_t has_uid; /* uid is known */
	/* 1: only the user whose rights the opener has sees the answer: main ELF files are opened
	 * by these rights only */
	uint8_t own;
	uint32_t uid; /* the user to whom the names are shown, who must be able to read the file */
	/* 1: the process mapped it at not_after_ns and has not exec'd since: the file it still has mapped is
	 * the one that ran */
	uint32_t first_mapper;
	/* PART_DEBUG: the link is the path of a file that the daemon was given, and the only candidate */
	uint32_t fetched;
	struct message_kin kin[MESSAGE_KIN]; /* the nearest first */
};
_Static_assert(sizeof(struct message_open) == 168, "open");

/* Carries the descriptor if state is STATE_READY. Followed by n_path bytes: the path where it was
 * found. */
struct message_opened {
	struct message head;
	uint32_t state;
	/* positive errno of the last refusal, or 0; ESTALE: the file was written since */
	int32_t error;
	/* number of this candidate; if it is the wrong one, ask again with first + 1 */
	uint32_t first;
	uint32_t copied; /* 1: the descriptor is a copy in memory, since the file system may hang */
	uint64_t bytes;
	int64_t written_ns; /* CLOCK_REALTIME of the last write; 0: a copy, or from another clock */
	/* identity and owner */
	uint64_t inode;
	uint32_t major, minor;
	/* times of the last change of contents, which its owner may set, and of contents or status, which
	 * nobody can set; on any clock */
	int64_t changed_ns, status_ns;
	uint32_t owner;
	uint32_t sole; /* 1: only its owner and root can write to it; 0: others can, or not known */
	uint32_t n_path;
	/* 1: while it is held, a file system other than our root cannot be unmounted: close it
	 * soon */
	uint32_t leaves;
};
_Static_assert(sizeof(struct message_opened) == 96, "opened");

/* FILE (carries the descriptor) and FORGET. */
struct message_file {
	struct message head;
	uint32_t file; /* the daemon's id; never 0 */
	uint32_t part;
};
_Static_assert(sizeof(struct message_file) == 24, "file");

struct message_done {
	struct message head;
	int32_t error; /* 0 or -errno */
	uint32_t zero;
};
_Static_assert(sizeof(struct message_done) == 24, "done");

/* Followed by n_module bytes: the kernel module's name. */
struct message_load {
	struct message head;
	uint32_t file;
	uint32_t kind;
	uint64_t base; /* modules: start address */
	uint8_t build_id[MESSAGE_BUILD_ID_BYTES];
	uint8_t n_build_id; /* not 0: a different build id means STATE_VANISHED */
	uint8_t zero;
	uint16_t n_module;
};
_Static_assert(sizeof(struct message_load) == 56, "load");

struct message_loaded {
	struct message head;
	uint32_t file;
	uint32_t state;
	uint8_t has_symbols, has_debug;
	uint8_t want_debug; /* a separate debug file would help */
	uint8_t want_alt;   /* the alt file would help */
	uint8_t n_build_id, n_alt_build_id;
	uint8_t zero[2];
	uint8_t build_id[MESSAGE_BUILD_ID_BYTES];
	uint8_t alt_build_id[MESSAGE_BUILD_ID_BYTES];
	char debuglink[MESSAGE_LINK_BYTES_MAX]; /* NUL-terminated */
	char alt_link[MESSAGE_LINK_BYTES_MAX];
};
_Static_assert(sizeof(struct message_loaded) == 584, "loaded");

/* Followed by n offsets. */
struct message_name {
	struct message head;
	uint32_t file;
	uint32_t n;
	uint32_t no_split; /* 1: the split unit that the last answer wanted is not there */
	uint32_t zero;
};
/* An offset to name; in generated code, by the first `order` ranges alone. */
struct message_offset {
	uint64_t offset;
	uint32_t order;
	uint32_t zero;
};
_Static_assert(sizeof(struct message_name) == 32, "name");
_Static_assert(sizeof(struct message_offset) == 16, "offset");

/* Read on in a file that describes generated code, and report the changes behind its first `after`
 * ranges. */
struct message_grow {
	struct message head;
	uint32_t file;
	uint32_t after;
	uint64_t mark_at, mark; /* as of the last answer; 0: none */
};
/* Followed by n changes. If there are MESSAGE_CHANGES_MAX, there may be more. */
struct message_grown {
	struct message head;
	uint32_t file;
	uint32_t state; /* STATE_READY; STATE_FORGOTTEN and others with n 0 */
	uint32_t order; /* ranges so far */
	uint32_t n;
	uint32_t n_rewrites; /* times that the file was rewritten while this parser read it */
	/* 1: also rewritten while this parser did not read it: the former contents are lost */
	uint32_t lost;
	uint64_t mark_at, mark; /* the place up to which it was read, and a hash of its end */
};
/* A change: from its time on, [start, end) is other code than before. */
struct message_change {
	uint64_t start, end;
	uint64_t from_ns; /* CLOCK_MONOTONIC; 0: the file does not say */
	uint32_t order;
	uint32_t zero;
};
_Static_assert(sizeof(struct message_grow) == 40, "grow");
_Static_assert(sizeof(struct message_grown) == 56, "grown");
_Static_assert(sizeof(struct message_change) == 32, "change");

/* Followed by n entries in the order of the request: a message_naming, then n_places times a
 * message_place with its two strings (no NUL). Nothing is aligned. If a split unit is wanted for the
 * next offset, this is the last message, and ends with n_split bytes: the path of the unit's file, or
 * none. */
struct message_named {
	struct message head;
	uint32_t file;
	uint32_t state; /* STATE_READY, or STATE_FORGOTTEN with n 0 */
	uint32_t n;
	uint32_t last; /* 1: last message for this request */
	uint32_t wants_split;
	uint32_t n_split;
};
_Static_assert(sizeof(struct message_named) == 40, "named");

enum message_outcome {
	NAMING_NAMED = 1,
	NAMING_OUT_OF_SYMBOL = 2,
	NAMING_NO_SYMBOLS = 3,
	NAMING_PLACED = 4, /* no symbol, but the start of its function is known */
};
struct message_naming {
	uint64_t
		addr; /* virtual address in an ELF file: of the function if placed, else of the offset; 0: not known */
	uint8_t outcome;
	uint8_t n_places; /* 0 unless named */
	uint8_t zero[6];
	/* The answer is the same for all offsets [from, to). Both 0: perhaps for this offset alone. */
	uint64_t from, to;
};
struct message_place {
	uint32_t line;
	uint16_t n_function; /* 0: unknown */
	uint16_t n_source;
	uint8_t inlined;
	/* 1: functions inlined into it are in a split unit that was not found */
	uint8_t split_missing;
	uint8_t zero[2];
};
_Static_assert(sizeof(struct message_naming) == 32, "naming");
_Static_assert(sizeof(struct message_place) == 12, "place");

/* Make the table of unwinding (daemon/unwind/table.h) of a file that was sent. */
struct message_table {
	struct message head;
	uint32_t file;
	uint32_t machine;     /* e_machine */
	uint64_t n_bytes_max; /* of the table (unwind_table_bytes) */
	uint8_t build_id[MESSAGE_BUILD_ID_BYTES];
	uint8_t n_build_id; /* not 0: a different build id means TABLE_OTHER_FILE */
	uint8_t zero[3];
};
_Static_assert(sizeof(struct message_table) == 56, "table");

enum message_table_outcome {
	TABLE_MADE = 1,
	TABLE_NOTHING = 2,    /* nothing describes its code */
	TABLE_LEFT = 3,       /* only elfutils reads it */
	TABLE_OTHER_FILE = 4, /* this is not the file that was mapped */
	TABLE_FORGOTTEN = 5,  /* the parser no longer has the file: send it again */
};
/* Followed by n bytes of the table's memory, from `first` on. Every message repeats the counts. */
struct message_tabled {
	struct message head;
	uint32_t file;
	uint32_t outcome; /* others than TABLE_MADE: n 0, last 1 */
	uint64_t base;
	uint32_t n_segments, n_rules, n_pages, n_rows;
	uint64_t first;
	uint32_t n;
	uint32_t last; /* 1: last message for this request */
};
_Static_assert(sizeof(struct message_tabled) == 64, "tabled");
#define MESSAGE_TABLE_BYTES_MAX (MESSAGE_BYTES_MAX - sizeof(struct message_tabled))

/* Followed by n maps; a space of more than MESSAGE_MAPS_MAX comes in several messages. */
struct message_space {
	struct message head;
	uint64_t generation;
	uint32_t n_total;
	uint32_t first;
	uint32_t n;
	uint32_t machine; /* e_machine */
};
struct message_map {
	uint64_t start, end, file_offset;
	uint32_t file; /* 0: no file was sent */
	uint32_t zero;
};
_Static_assert(sizeof(struct message_space) == 40, "space");
_Static_assert(sizeof(struct message_map) == 32, "map");

/* Followed by n_regs values of 8 bytes and n_stack bytes. */
struct message_unwind {
	struct message head;
	uint64_t generation;
	uint64_t regs_mask;
	uint32_t n_regs;
	uint32_t n_stack;
};
_Static_assert(sizeof(struct message_unwind) == 40, "unwind");

enum message_unwinding {
	UNWINDING_DONE = 1,
	UNWINDING_FAILED = 2,
	UNWINDING_NO_SPACE = 3, /* the parser does not have that space: send it */
};
/* Followed by n frames. */
struct message_unwound {
	struct message head;
	uint32_t outcome;
	uint32_t n;
	uint32_t truncated;
	uint32_t zero;
};
struct message_frame {
	uint64_t offset;
	uint32_t file; /* 0: offset is the address */
	uint32_t zero;
};
_Static_assert(sizeof(struct message_unwound) == 32, "unwound");
_Static_assert(sizeof(struct message_frame) == 16, "frame");

_Static_assert(sizeof(struct message_unwind) + MESSAGE_REGS_MAX * 8 + MESSAGE_STACK_BYTES_MAX <=
		       MESSAGE_BYTES_MAX,
	"a stack fits one message");
_Static_assert(sizeof(struct message_named) + sizeof(struct message_naming) +
			       MESSAGE_PLACES_MAX * (sizeof(struct message_place) +
							    2 * MESSAGE_NAME_BYTES_MAX) <=
		       MESSAGE_BYTES_MAX,
	"one offset fits one message");
_Static_assert(sizeof(struct message_named) + MESSAGE_PATH_BYTES_MAX <= MESSAGE_BYTES_MAX,
	"a path fits one message");
_Static_assert(sizeof(struct message_grown) + MESSAGE_CHANGES_MAX * sizeof(struct message_change) <=
		       MESSAGE_BYTES_MAX,
	"changes fit one message");
_Static_assert(sizeof(struct message_space) + MESSAGE_MAPS_MAX * sizeof(struct message_map) <=
		       MESSAGE_BYTES_MAX,
	"a chunk of maps fits one message");

/* Send one message, with the descriptor pass_fd unless it is -1. 0 or -errno. */
static inline int message_send(int fd, const struct iovec *iov, size_t n_iov, int pass_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr m = {.msg_iov = (struct iovec *)iov, .msg_iovlen = n_iov};

	if (pass_fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
	}
	ssize_t n;
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Keep the first descriptor of a control message and close all others. */
static inline int message_first_fd(struct msghdr *m)
{
	int kept = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0);
			at += sizeof(int)) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (kept < 0)
				kept = fd;
			else
				close(fd);
		}
	}
	return kept;
}

/* Receive one message of at most size bytes. *ret_fd is the descriptor that came with it, or -1; if
 * ret_fd is NULL, none is accepted. Returns the bytes received (0: the other end is gone) or
 * -errno; -EBADMSG for a longer message. The head is checked against the length. */
static inline ssize_t message_receive(int fd, void *buffer, size_t size, int flags, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = buffer, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (ret_fd) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
	}
	ssize_t n;
	do
		n = recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;

	int kept = ret_fd ? message_first_fd(&m) : -1;
	if (n > 0) {
		struct message head;
		bool sound = !(m.msg_flags & MSG_TRUNC) && (size_t)n >= sizeof(head);
		if (sound) {
			memcpy(&head, buffer, sizeof(head));
			sound = head.magic == MESSAGE_MAGIC && head.bytes == (uint32_t)n;
		}
		if (!sound) {
			if (kept >= 0)
				close(kept);
			return -EBADMSG;
		}
	}
	if (ret_fd)
		*ret_fd = kept;
	return n;
}
