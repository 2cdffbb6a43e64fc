/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A worker of the namer, and what the namer keeps: private to daemon/attribute/namer*.c
 *
 * A worker has one question at a time, so that whatever befalls it is that question's fault.
 *
 * A slot is a file at the namer: what it waits for, the descriptors held for it, the frames that
 * want a name. Slots are in at most one queue:
 *
 *      (none) ──namer_name──▶ to_name ──no descriptor──▶ to_open ──opened──▶ to_name ──▶ (none)
 *                                ▲──────────────── wants debug file ──┘
 *
 * Each user has queues of their own, and of the users who wait, the one who has had the least of
 * the worker's time is served. A wish is the set of frames of a slot that one user wants named.
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/attribute/namer.h"
#include "daemon/namer/message.h"

#define WORKER_START_TIMEOUT_NS 10000000000u /* to exec and say hello, on a loaded board */
#define WORKER_DELAY_NS                                                                            \
	100000000ull /* before a worker is started again that failed for no file, … */
#define WORKER_DELAY_MAX_NS 30000000000ull /* … doubled at each failure in a row up to this */
#define WORKER_FAILURES_MAX                                                                        \
	6u                    /* in a row, of some seconds: then nobody waits for names meanwhile */
#define WORKER_STARTS_MAX 16u /* at once, over files or stacks; … */
#define WORKER_START_EVERY_NS                                                                      \
	500000000ull        /* … then at most two a second, of some 10 ms CPU each               \
			     */
#define NAMER_DEBUG_HANGS_MAX                                                                      \
	3u /* of a user, then no separate debug files: their file system is dead */
#define NAMER_IMAGES_BYTES_MAX (1ull << 30)    /* of files loaded at the parser at the same time */
#define NAMER_COPIES_BYTES_MAX (512ull << 20)  /* of remote files, copied into memory */
#define NAMER_STRINGS_BYTES_MAX (512ull << 20) /* names; beyond it frames are FRAME_UNNAMED */
#define NAMER_DEATHS_MAX 3u      /* of the parser over a process's stacks; then none for a while */
#define NAMER_BARRED_MAX 64u     /* processes remembered for that; the oldest is forgotten */
#define NAMER_USERS_MAX 255u     /* known at a time; what others want goes to the unknown user */
#define NAMER_ASKER_NONE UINT8_MAX /* of a frame: in nobody's queue */
#define NAMER_DEATHS_USER_MAX 4u /* of workers over one user's files; then none is tried for … */
#define NAMER_STACKS_USER_MAX (2 * NAMER_DEATHS_MAX) /* the same, over their processes' stacks */
#define NAMER_REFUSED_NS 10000000000u       /* … this long, doubled at each death after that … */
#define NAMER_REFUSED_MAX_NS 3600000000000u /* … up to an hour */
#define NAMER_FORGIVEN_NS 600000000000u     /* without another, after which one is forgotten */
#define NAMER_FAULTY_MAX 1024u   /* files over which the parser died; then the oldest goes */
#define NAMER_STUCK_USER_MAX 4u  /* openers stuck in the kernel over one user's files */
/* CPU time of the parser that a user may use up at once, for a build of many large programs; and in
 * the long run, 1 / NAMER_BUDGET_SHARE of one CPU. */
#define NAMER_BUDGET_NS 120000000000ll
#define NAMER_BUDGET_SHARE 5u
#define NAMER_TURN_NS 20000u     /* a question costs its user no less: the daemon has work, too */
#define NAMER_SEEN_MAX 4u        /* users whose files one parser was given, remembered by name */
#define NAMER_HURRIED_MAX 4096u  /* frames that wait twice, since a second user wanted them */
#define NAMER_JOBS_LOOKED_AT 16u /* of a user, to find one that need not wait for the opener; … */
#define NAMER_JOBS_USERS_MAX 4u  /* … and of this many users */
#define NAMER_ROUNDS_MAX 64u     /* questions answered in one dispatch; the loop has other work */
#define NAMER_RETRY_NS 1000000000u /* then a perf map that was missing is looked for again */

/* --- worker ---------------------------------------------------------------------------------- */

enum worker_state {
	WORKER_DEAD,
	WORKER_STARTING, /* no hello yet */
	WORKER_IDLE,
	WORKER_BUSY,
	WORKER_BROKEN, /* could not be asked: gone without having seen the question */
};

/* What ended a worker. */
enum worker_end {
	WORKER_OVER_TIME,
	WORKER_DIED,   /* on its own: crash, sandbox, memory */
	WORKER_KILLED, /* by a SIGKILL that was not ours: a person, or for want of memory */
	WORKER_LIED,   /* sent what it should not */
};

struct worker {
	enum worker_role role;
	enum worker_state state;
	pid_t pid;
	int fd;
	uint32_t serial; /* of the last question */
	uint64_t deadline_ns;
	uint32_t generation; /* counts starts: what an earlier one was given is gone */
	uint32_t restarts;
	uint32_t failures; /* in a row: ended over no question, or could not be started */
	uint64_t start_ns; /* dead: when to start it again; UINT64_MAX: not */
	uint64_t ended_ns; /* when it last ended; 0: never */
	uint64_t asked_ns, asked_cpu_ns; /* of the question: CLOCK_MONOTONIC, its own CPU clock */
	uint64_t starts_ns;              /* of the rate of starts: its theoretical arrival time */
	int error;                       /* why it could not be started; 0 */
};

int worker_start(struct worker *w, const char *binary, uint64_t now_ns);
/* Kill, close, bury. uid: whose question it was at, (uid_t)-1: nobody's. */
void worker_kill(struct worker *w, struct graves *g, uid_t uid);
/* When it may be started again: over a question of somebody's at once, within the rate of starts;
 * else with a delay that grows. */
void worker_schedule(struct worker *w, bool over_question, uint64_t now_ns);
/* It answered: what failed before is over. */
void worker_answered(struct worker *w);
/* CPU time since the question, ns; where that cannot be read, the time that has passed. */
uint64_t worker_used_ns(const struct worker *w, uint64_t now_ns);
/* Does it run, or would it if a hart were free? */
bool worker_is_runnable(const struct worker *w);
void graves_visit(struct graves *g);
/* The same for the last time: gives the killed some milliseconds to go. Those that take longer move to
 * `rest` (NULL: they stay until we end). */
void graves_leave(struct graves *g, struct graves *rest);
/* After the socket ended: how? Waits a few milliseconds at most. */
enum worker_end worker_autopsy(struct worker *w);
/* Ask: fills the head of iov[0] in. 0, or -errno: WORKER_BROKEN then. */
int worker_ask(struct worker *w, enum message_type type, struct iovec *iov, size_t n_iov, int fd,
	uint64_t deadline_ns);
/* One answer. Bytes, -EAGAIN, 0: gone, -EBADMSG: nonsense. Hellos are taken in here. */
ssize_t worker_hear(struct worker *w, void *buffer, size_t size, int *ret_fd);
int worker_find_binary(const char *given, char **ret_path);

/* --- names ----------------------------------------------------------------------------------- */

struct string;
struct naming_user;
struct strings {
	struct string *set; /* uthash */
	uint64_t bytes;
};
/* The one copy of n bytes, brought by a frame of this user; NULL when there is no room. */
const char *strings_intern(struct strings *s, const char *text, size_t n, struct naming_user *u);
void strings_clear(struct strings *s);
/* Free all but those that were kept since the last time; text is what strings_intern gave. */
void strings_keep(const char *text);
void strings_sweep(struct strings *s, struct naming_user *const *user, uint32_t n_users);

/* --- users ----------------------------------------------------------------------------------- */

/* Deaths of workers that a user is charged for, and until when nothing of that user is tried. */
struct account {
	uint32_t deaths;     /* not forgiven yet */
	uint64_t charged_ns; /* when last */
	uint64_t since_ns;   /* forgiving counts from here */
	uint64_t until_ns;   /* refused until then */
};
void account_charge(struct account *a, uint32_t allowed, uint64_t now_ns);
/* Those that are not forgiven by now. */
uint32_t account_deaths(struct account *a, uint64_t now_ns);
static inline bool account_is_refused(const struct account *a, uint64_t now_ns)
{
	return now_ns < a->until_ns;
}

struct slot;
struct job;
TAILQ_HEAD(slot_list, slot);
TAILQ_HEAD(job_list, job);
TAILQ_HEAD(wish_list, wish);

/* Frames of a slot that one user wants named. */
struct wish {
	TAILQ_ENTRY(wish) of_user; /* while the slot is to be named */
	TAILQ_ENTRY(wish) of_slot;
	struct slot *slot;
	struct naming_user *user;
	struct frame **frame;
	size_t n, size;
};

/* Questions are asked on behalf of the user in whose process a frame was sampled. */
struct naming_user {
	uid_t uid;
	uint8_t index;     /* in struct namer */
	uint32_t n_wishes; /* queued or not */
	struct slot_list to_open;
	struct wish_list to_name;
	struct job_list jobs;
	uint64_t job_bytes, string_bytes;
	uint64_t open_ns, parse_ns; /* had of the two workers, as far as it decides who is next */
	int64_t budget_ns;          /* parser time left; below 0: waits */
	uint64_t budget_at_ns;      /* when that was */
	struct account opens;       /* of the opener, over files opened in their name */
	struct account files;       /* of the parser, over files that are theirs */
	struct account stacks;      /* of the parser, over their processes' stacks */
};

/* Of a file, as the opener saw it. */
struct origin {
	uint64_t device, inode, bytes;
	int64_t changed_ns;
	uid_t owner;
	bool sole; /* nobody but its owner (and root) can write to it, and that is certain */
};

struct faulty {
	struct origin origin;
	enum file_state state;
};

/* --- files ----------------------------------------------------------------------------------- */

struct slot {
	TAILQ_ENTRY(slot) by_use; /* least recently used first */
	TAILQ_ENTRY(slot) queued; /* to be opened */
	enum { QUEUE_NONE, QUEUE_OPEN, QUEUE_NAME, QUEUE_FLIGHT } queue;
	struct file *file;
	struct naming_user *opens; /* in whose name it is to be opened; NULL: it is not */
	uid_t asker;        /* in whose name it was opened last */
	struct origin origin[N_PARTS];
	bool no_debug; /* the parser died over it and its debug file */
	bool rests;    /* its frames are late until its author is no longer refused */
	int fd[N_PARTS];
	uint64_t bytes[N_PARTS];
	uint64_t copied_bytes;
	int64_t written_ns;     /* of the file, when it was opened; 0: unknown */
	uint32_t tried;         /* bit per part: asked the opener, or not worth it */
	enum message_part part; /* that the opener is to find */
	uint32_t first;         /* candidate to begin with */
	char *found;            /* path of the debug file, for its alt link; NULL: the file's own */

	uint32_t given;              /* parser generation that has the descriptor; 0: none */
	uint32_t loaded;             /* … that has the image */
	uint32_t joined;             /* bit per part: handed over since it was loaded */
	uint32_t forgotten;          /* times that the parser lost it in a row */
	uint32_t retries;            /* after a worker was killed from outside */
	struct message_loaded wants; /* valid while loaded */
	uint64_t retry_ns;

	struct wish_list wishes; /* none is empty */
	size_t n_frames;         /* in all of them */
	/* of generated code, asked and not described yet; or of a slot that rests: bounded by
	 * FRAMES_MAX */
	struct frame **late;
	size_t n_late, size_late;
	bool stale;    /* is to be opened anew before it is asked again */
	bool renewing; /* … and what it holds is good enough if that fails */
};

/* --- stacks ---------------------------------------------------------------------------------- */

/* A copy of a process's mappings, shared by the stacks that were taken under them. */
struct snapshot {
	uint64_t generation;
	uint32_t n_users;
	pid_t pid;
	struct map *map;
	uint32_t n_maps;
	bool asked;         /* the opener was asked for its files */
	bool refused;       /* the parser can make nothing of it */
	uint32_t sent;      /* parser generation that has it; 0: none */
	uint32_t progress;  /* parser generation that the next two are about */
	uint32_t n_sent;    /* maps of it sent so far */
	uint32_t next_file; /* map whose file is to be handed over next */
	UT_hash_handle hh;
};

struct job {
	TAILQ_ENTRY(job) queued;
	struct snapshot *snapshot; /* NULL: fails at once */
	struct naming_user *user;
	void *ticket;
	uint64_t regs_mask;
	uint32_t n_regs, n_stack;
	uint32_t retries;
	uint8_t bytes[]; /* registers, stack */
};

struct barred {
	pid_t pid;
	uid_t uid;
	struct account account;
};

/* --- namer ----------------------------------------------------------------------------------- */

struct namer {
	struct namer_options options;
	char *binary;
	struct worker opener, parser;
	struct graves graves;
	bool off;    /* a worker does not come up: nobody waits for names until it does */
	bool fresh;  /* something was queued since the last dispatch */
	bool ending; /* namer_ask_again was called: what has no name now gets none */
	uint64_t now_ns;

	struct naming_user *user[NAMER_USERS_MAX]; /* the first: unknown users, and those beyond */
	uint32_t n_users;
	uint64_t open_floor_ns, parse_floor_ns; /* used by the user who was served last */
	struct faulty faulty[NAMER_FAULTY_MAX];
	uint32_t n_faulty, next_faulty;
	uint64_t wake_ns; /* when the first slot that rests is looked at again; or UINT64_MAX */
	uid_t seen[NAMER_SEEN_MAX]; /* whose files and stacks this parser was given; not root */
	uint32_t n_seen;            /* beyond the limit: of more than these */
	struct slot *stays;         /* was loaded just now: it is asked before others push it out */
	struct slot *trial_slot;    /* the parser died over it, but another's file may have … */
	struct job *trial_job;      /* … been the cause: it comes first, and alone */
	uint64_t n_deaths;          /* of workers, over something */

	struct slot_list slots;
	size_t n_to_open, n_to_name, n_jobs; /* slots, wishes, stacks in all users' queues */
	size_t n_entries;                    /* of frames in wishes; some may wait twice */
	uint32_t n_fds;
	uint64_t copied_bytes;
	struct slot *opening; /* the opener's question */

	enum message_type asked; /* the parser's question */
	struct slot *asked_slot;
	struct naming_user *asked_user; /* in whose name */
	struct job *asked_job;
	uint32_t asked_maps;
	struct frame *batch[MESSAGE_OFFSETS_MAX];
	uint32_t n_batch, n_answered;
	bool turn;        /* stacks and names take turns */
	uint32_t *forget; /* files that the parser is to forget */
	size_t n_forget, size_forget;

	struct snapshot *snapshots; /* uthash by generation */
	uint64_t job_bytes;
	struct barred barred[NAMER_BARRED_MAX];
	uint32_t n_barred, next_barred;

	struct strings strings;
	size_t n_waiting_frames, n_waiting_jobs;
	uint64_t n_named, n_unwound;
	struct message_map maps[MESSAGE_MAPS_MAX]; /* being sent */
	uint8_t buffer[MESSAGE_BYTES_MAX];         /* being received */
};

static inline uint64_t namer_timeout(uint64_t wanted_ns, uint64_t limit_ns)
{
	return wanted_ns ? wanted_ns : limit_ns;
}

/* naming_user.c */
/* The user's; of what is known of nobody, user[0]. Never NULL once naming_users_begin was called. */
int naming_users_begin(struct namer *n);
void naming_users_clear(struct namer *n);
struct naming_user *naming_user_get(struct namer *n, uid_t uid);
/* The same; NULL: nothing is known of that user. */
struct naming_user *naming_user_find(const struct namer *n, uid_t uid);
/* The next user for the opener, of those who want files opened. NULL: nobody, or all wait. */
struct naming_user *naming_user_next_open(struct namer *n);
struct wish *wish_next(struct namer *n);
/* The next user with a stack, of those the caller has not `passed` over (flags by index). */
struct naming_user *naming_user_next_job(struct namer *n, const bool *passed);
/* Call before something of theirs is queued: a user who had nothing queued begins where the others
 * are. */
void naming_user_joins(struct namer *n, struct naming_user *u);
/* Is a served before b, or not made to wait as b is? */
bool naming_user_is_before(struct namer *n, struct naming_user *a, struct naming_user *b);
void naming_user_pay_open(struct namer *n, struct naming_user *u, uint64_t wall_ns);
void naming_user_pay_parse(struct namer *n, struct naming_user *u, uint64_t wall_ns, uint64_t cpu_ns);
/* When a user who waits for CPU time may be served; UINT64_MAX: nobody waits. */
uint64_t naming_users_deadline_ns(const struct namer *n);
/* Add the users for whom naming pauses at present. */
void naming_users_status(const struct namer *n, struct namer_status *status);
/* May files be opened in their name now? */
bool naming_user_may_open(const struct namer *n, const struct naming_user *u);

/* namer_blame.c */
/* The user responsible for the contents of the slot's part: the only one who can write to it, else
 * the user in whose process it runs; 0: root. */
uid_t slot_author(const struct slot *s, enum message_part part);
void parser_saw(struct namer *n, uid_t uid);
/* The parser died over the slot or the job. True: its authors are to blame. False: another user's
 * file that the same parser held may have been the cause. */
bool slot_is_proven(const struct namer *n, const struct slot *s);
bool job_is_proven(const struct namer *n, const struct job *j);
bool origin_is_faulty(const struct namer *n, const struct origin *o, enum file_state *ret_state);
void origin_blame(struct namer *n, const struct origin *o, enum file_state state);
/* Charge it to the user responsible; the file is not parsed again. -ENOMEM. */
int slot_blame(struct namer *n, struct slot *s, enum file_state state);
/* Is nothing of its author's parsed now? Then its frames are late, and it rests. */
bool slot_is_refused(struct namer *n, const struct slot *s);
int slot_rest(struct namer *n, struct slot *s);
/* What rests and may go on is queued again. -ENOMEM. */
int slots_wake(struct namer *n);

/* namer_slot.c */
int slot_get(struct namer *n, struct file *file, struct slot **ret_slot);
void slot_enqueue_open(struct namer *n, struct slot *s, enum message_part part, struct naming_user *u);
/* Its wishes at the end of their users' queues, or before all others. */
void slot_enqueue_name(struct namer *n, struct slot *s);
void slot_enqueue_first(struct namer *n, struct slot *s);
void slot_dequeue(struct namer *n, struct slot *s);
struct wish *wish_free(struct namer *n, struct wish *w);
/* Does the wish's entry still stand for its frame? It may have come to another user since. */
bool wish_holds(const struct wish *w, const struct frame *frame);
void slot_touch(struct namer *n, struct slot *s);
void slot_hold(struct namer *n, struct slot *s, enum message_part part, int fd, uint64_t bytes);
int slot_release(struct namer *n, struct slot *s);
/* Nothing in it can be named (any more). */
bool slot_is_dead(const struct slot *s);
/* Add a frame that waits, wherever the slot is queued. -ENOMEM. */
int slot_push(struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u);
/* Ask the opener for it unless it is held, or hopeless. */
int slot_want(struct namer *n, struct slot *s, struct naming_user *u);
bool slot_is_awaited(const struct namer *n, const struct slot *s);
/* Does it describe generated code, a line for each function as it is made? */
static inline bool slot_grows(const struct slot *s)
{
	return s->file->kind == FILE_PERF_MAP || s->file->kind == FILE_JITDUMP;
}
/* Its frames are late from now on, and wait again from now on. -ENOMEM. */
int slot_postpone(struct namer *n, struct slot *s);
int slot_resume(struct namer *n, struct slot *s);
/* The frames that are late wait again, for what is then opened anew. -ENOMEM. */
int slot_ask_again(struct namer *n, struct slot *s);
/* Open it anew; the parser is to forget what it read before. -ENOMEM. */
int slot_renew(struct namer *n, struct slot *s);
/* Was the file that is held written to since it was opened? Then it is marked replaced. */
bool slot_is_rewritten(struct slot *s);
/* Every waiting frame becomes FRAME_UNNAMED. */
void slot_finish(struct namer *n, struct slot *s);
/* Mark the file and finish. -ENOMEM. */
int slot_fail(struct namer *n, struct slot *s, enum file_state state);
/* The parser is to forget it. */
int slot_forget(struct namer *n, struct slot *s);
/* Close the least recently used idle slot that holds a descriptor; else one that waits for users
 * who are all served after this one. False: none can be spared. */
bool slot_evict(struct namer *n, struct naming_user *u);
void frame_finish(struct namer *n, struct frame *f, enum frame_state state);
struct slot *slot_free(struct namer *n, struct slot *s);

/* namer_open.c */
int opener_vdso(struct namer *n, struct slot *s);
int opener_feed(struct namer *n, bool *ret_fed);
int opener_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes, int fd);
int opener_ended(struct namer *n, enum worker_end end);

/* namer_parse.c: positive from hear: more answers to this question will come */
enum { PARSER_MORE = 1 };
int parser_feed(struct namer *n, bool *ret_fed);
int parser_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
int parser_ended(struct namer *n, enum worker_end end);
int parser_give(struct namer *n, struct slot *s, enum message_part part);

/* namer_unwind.c */
int job_feed(struct namer *n, bool *ret_fed);
int job_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
void job_step_done(struct namer *n, int error);
void job_ended(struct namer *n, enum worker_end end);
void jobs_fail(struct namer *n);
void jobs_free(struct namer *n);
