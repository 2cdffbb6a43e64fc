/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Workers and state of the namer: private to daemon/naming
 *
 * A worker has one request at a time, so that a failure is caused by that request.
 *
 * A slot is a file at the namer: its next step, its open descriptors, and the frames to name. A
 * slot is in at most one queue:
 *
 *      (none) ──namer_name──▶ to_name ──no descriptor──▶ to_open ──opened──▶ to_name ──▶ (none)
 *                                ▲──────────────── wants debug file ──┘
 *
 * Each user has separate queues; of the waiting users, the one who has used the least of the
 * worker's time is served. A wish is the set of frames of a slot that one user wants named.
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/namer/message.h"
#include "daemon/naming/namer.h"

#define WORKER_START_TIMEOUT_NS 10000000000u /* to exec and say hello, on a loaded board */
/* delay before a restart if no file caused the failure, … */
#define WORKER_DELAY_NS 100000000ull
#define WORKER_DELAY_MAX_NS 30000000000ull /* … doubled at each consecutive failure, up to this */
/* consecutive failures, over some seconds: then names are not awaited meanwhile */
#define WORKER_FAILURES_MAX 6u
#define WORKER_STARTS_MAX 16u /* burst of restarts because of files or stacks; … */
/* … then at most two per second, about 10 ms of CPU each */
#define WORKER_START_EVERY_NS 500000000ull
/* hung opens of a user; then no separate debug files: their file system is dead */
#define NAMER_DEBUG_HANGS_MAX 3u
#define NAMER_IMAGES_BYTES_MAX (1ull << 30)    /* total size of files loaded in the parser */
#define NAMER_COPIES_BYTES_MAX (128ull << 20)  /* of remote files, copied into memory */
#define NAMER_STRINGS_BYTES_MAX (128ull << 20) /* names; beyond it frames are FRAME_UNNAMED */
/* parser deaths caused by a process's stacks; then none are tried for a while */
#define NAMER_DEATHS_MAX 3u
#define NAMER_BARRED_MAX 64u /* processes remembered as causes; the oldest is forgotten */
#define NAMER_USERS_MAX 255u /* known at a time; others share the unknown user */
/* worker deaths caused by one user's files; then none is tried for … */
#define NAMER_DEATHS_USER_MAX 4u
/* the same for stacks of the user's processes */
#define NAMER_STACKS_USER_MAX (2 * NAMER_DEATHS_MAX)
#define NAMER_REFUSED_NS 10000000000u       /* … this long, doubled at each further death … */
#define NAMER_REFUSED_MAX_NS 3600000000000u /* … up to an hour */
#define NAMER_FORGIVEN_NS 600000000000u /* a death is forgiven after this time without another */
#define NAMER_FAULTY_MAX 1024u          /* files that killed the parser; the oldest is forgotten */
#define NAMER_STUCK_USER_MAX 4u         /* openers stuck in the kernel on one user's files */
/* Parser CPU time that a user may use in one burst, for a build of many large programs; on average,
 * 1 / NAMER_BUDGET_SHARE of one CPU. */
#define NAMER_BUDGET_NS 120000000000ll
#define NAMER_BUDGET_SHARE 5u
#define NAMER_TURN_NS 20000u    /* minimum charge per request, for the daemon's own work */
#define NAMER_SEEN_MAX 4u       /* remembered users whose files one parser received */
#define NAMER_HURRIED_MAX 4096u /* frames queued twice because a second user wanted them */
/* searched per user for one that need not wait for the opener; … */
#define NAMER_JOBS_LOOKED_AT 16u
#define NAMER_JOBS_USERS_MAX 4u /* … for this many users */
/* changes of a file's status before it has names; a file that changes more often is not named */
#define NAMER_PROVED_MAX 8u
/* files that the parser wants for one offset: a package, a .dwo, or neither, and again after it forgot */
#define NAMER_SPLITS_MAX 16u
#define NAMER_ROUNDS_MAX 64u /* answers handled in one dispatch; the loop has other work */
/* before a missing perf map is looked up again, and late frames of one that has grown */
#define NAMER_RETRY_NS 1000000000u
/* Time after which a copied file that was found the same is looked up again. It doubles each time, up to the maximum.
 * Each time costs a copy, and the naming of its frames again. */
#define NAMER_SEEN_NS 1000000000u
#define NAMER_SEEN_MAX_NS 300000000000u
#define NAMER_ABSENT_NS                                                                            \
	5000000000u /* before a file that was not found is looked for in a new process */
/* … and once more for the frames that wait for it, each time after twice as long, so many times */
#define NAMER_RETRY_ABSENT_NS 100000000u
#define NAMER_ABSENT_MAX 6u
/* Time for which an unused file that is not on our root file system stays open: an unmount waits no longer */
#define NAMER_HELD_NS 1000000000u
/* files of generated code that were sampled since the last look: one fstat each */
#define NAMER_SAMPLED_MAX 1024u

/* --- worker ----------------------------------------------------------------------------------- */

enum worker_state {
	WORKER_DEAD,
	WORKER_STARTING, /* no hello yet */
	WORKER_IDLE,
	WORKER_BUSY,
	WORKER_BROKEN, /* request not delivered: the worker was gone before it */
};

/* How a worker ended. */
enum worker_end {
	WORKER_OVER_TIME,
	WORKER_DIED,   /* on its own: crash, sandbox, memory */
	WORKER_KILLED, /* by a SIGKILL that was not ours: an administrator, or the OOM killer */
	WORKER_LIED,   /* sent an invalid message */
};

struct worker {
	enum worker_role role;
	enum worker_state state;
	pid_t pid;
	int fd;
	uint32_t serial; /* of the last request */
	uint64_t deadline_ns;
	/* counts starts: a restarted worker has nothing of what its predecessor received */
	uint32_t generation;
	uint32_t restarts;
	uint32_t failures; /* consecutive: ended without a request, or could not be started */
	uint64_t start_ns; /* dead: when to start it again; UINT64_MAX: never */
	uint64_t ended_ns; /* when it last ended; 0: never */
	/* start of the request: CLOCK_MONOTONIC, and the worker's CPU clock */
	uint64_t asked_ns, asked_cpu_ns;
	uint64_t starts_ns; /* rate limit of starts: theoretical arrival time (GCRA) */
	int error;          /* why it could not be started; 0 */
};

int worker_start(struct worker *w, const char *binary, uint64_t now_ns);
/* Kill it, close its socket and leave it to be reaped. uid: the user of its request, (uid_t)-1:
 * none. */
void worker_kill(struct worker *w, struct graves *g, uid_t uid);
/* Schedule its restart: at once within the rate limit if a user's request ended it; else with a
 * growing delay. */
void worker_schedule(struct worker *w, bool over_question, uint64_t now_ns);
/* It answered: reset the count of failures. */
void worker_answered(struct worker *w);
/* CPU time since the request, in ns; if it cannot be read, the elapsed time. */
uint64_t worker_used_ns(const struct worker *w, uint64_t now_ns);
/* Is it running or runnable? */
bool worker_is_runnable(const struct worker *w);
void graves_visit(struct graves *g);
/* The same at the end: gives killed workers a few milliseconds to end. Those that take longer move
 * to `rest` (NULL: they stay until we end). */
void graves_leave(struct graves *g, struct graves *rest);
/* The end of a worker, after its socket closed. Waits a few milliseconds at most. */
enum worker_end worker_autopsy(struct worker *w);
/* Send a request; fills in the head in iov[0]. 0, or -errno with the worker in WORKER_BROKEN. */
int worker_ask(struct worker *w, enum message_type type, struct iovec *iov, size_t n_iov, int fd,
	uint64_t deadline_ns);
/* Receive one answer. Returns its bytes, -EAGAIN, 0: gone, -EBADMSG: invalid. Handles hellos
 * itself. */
ssize_t worker_hear(struct worker *w, void *buffer, size_t size, int *ret_fd);
int worker_find_binary(const char *given, char **ret_path);

/* --- names ------------------------------------------------------------------------------------ */

struct string;
struct naming_user;
struct strings {
	struct string *set; /* uthash */
	uint64_t bytes;
	struct quota *pool; /* as in struct file_table */
	uid_t pool_uid;
};
/* The shared copy of n bytes, for a frame of this user; NULL if there is no room. */
const char *strings_intern(struct strings *s, const char *text, size_t n, struct naming_user *u);
void strings_clear(struct strings *s);
/* Free all strings not kept since the last call; text is what strings_intern returned. */
void strings_keep(const char *text);
void strings_sweep(struct strings *s, struct naming_user *const *user, uint32_t n_users);

/* --- users ------------------------------------------------------------------------------------ */

/* Worker deaths charged to a user, and until when that user is refused. */
struct account {
	uint32_t deaths;     /* not forgiven yet */
	uint64_t charged_ns; /* when last */
	uint64_t since_ns;   /* forgiving counts from here */
	uint64_t until_ns;   /* refused until then */
};
void account_charge(struct account *a, uint32_t allowed, uint64_t now_ns);
/* The deaths that are not forgiven yet. */
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

/* Requests are made on behalf of the user in whose process a frame was sampled. */
struct naming_user {
	uid_t uid;
	uint8_t index;     /* in struct namer */
	uint32_t n_wishes; /* queued or not */
	struct slot_list to_open;
	struct wish_list to_name;
	struct job_list jobs;
	uint64_t job_bytes, string_bytes;
	uint64_t open_ns, parse_ns; /* time used of the two workers, to choose the next user */
	int64_t budget_ns;          /* parser time left; negative: waits */
	uint64_t budget_at_ns;      /* when that was */
	struct account opens;       /* opener, on files opened in their name */
	struct account files;       /* parser, on their own files */
	struct account stacks;      /* parser, on their processes' stacks */
};

/* Identity of a file, from the opener. */
struct origin {
	uint64_t device, inode, bytes;
	int64_t changed_ns;
	uid_t owner;
	bool sole; /* certainly only its owner (and root) can write to it */
};

struct faulty {
	struct origin origin;
	enum file_state state;
};

/* --- files ------------------------------------------------------------------------------------ */

struct slot {
	TAILQ_ENTRY(slot) by_use; /* least recently used first */
	TAILQ_ENTRY(slot) held;   /* while its file is open; in the same order */
	TAILQ_ENTRY(slot) queued; /* to be opened */
	enum { QUEUE_NONE, QUEUE_OPEN, QUEUE_NAME, QUEUE_FLIGHT } queue;
	struct file *file;
	struct naming_user *opens; /* the user for whom it is to be opened; NULL: not queued */
	uid_t asker;               /* the user for whom it was opened last */
	struct origin origin[N_PARTS];
	bool no_debug; /* the parser died on it and its debug file */
	bool rests;    /* paused: its frames are late until its author is no longer refused */
	int fd[N_PARTS];
	uint64_t bytes[N_PARTS];
	uint64_t copied_bytes;
	/* of the file, when it was opened or looked at last; 0: unknown */
	int64_t written_ns, status_ns;
	uint32_t tried;         /* bit per part: the opener was asked, or need not be */
	enum message_part part; /* the part for the opener to find */
	uint32_t first;         /* first candidate to try */
	/* path of the split unit that the parser wants next, "": unknown; NULL: it wants none */
	char *split;
	uint32_t n_splits; /* wanted since the last name */
	char *found; /* path of the debug file, for its alt link; NULL: use the file's own path */

	uint32_t given;              /* parser generation that has the descriptor; 0: none */
	uint32_t loaded;             /* … that has loaded the image */
	uint32_t joined;             /* bit per part: sent since it was loaded */
	uint32_t forgotten;          /* consecutive times that the parser forgot it */
	uint32_t retries;            /* after a worker was killed from outside */
	struct message_loaded wants; /* valid while loaded */
	uint64_t retry_ns;
	uint64_t used_ns; /* when it was touched last */
	bool leaves; /* its file keeps a file system from being unmounted: held for NAMER_HELD_NS */
	bool absent; /* not found; its frames are late, until another process runs it */
	uint8_t n_absent;

	/* of generated code */
	bool unread;            /* it has grown: to be read on before the next name */
	bool read_on;           /* just now: names are next, however fast it grows */
	uint64_t seen_bytes;    /* at the last look, */
	int64_t seen_ns;        /* when it was last written then, CLOCK_REALTIME, */
	uint64_t looked_ns;     /* and when that look was, CLOCK_MONOTONIC; 0: none */
	uint64_t from_ns;       /* time from which unread entries are valid */
	uint64_t asked_from_ns; /* the same for entries that the parser reads now */
	bool counted;           /* order and first_order are known: */
	uint32_t order;         /* ranges of code that the parser knew last, */
	uint32_t first_order;   /* and at first: those of version 0 */
	uint32_t lost_order; /* and those of files before the present one that it has forgotten */
	uint32_t n_rewrites; /* times that the file was rewritten, by its last answer */
	uint64_t mark_at, mark; /* the end of what it had read, and its hash (message_grown) */

	struct wish_list wishes; /* none is empty, unless it is to be read on */
	size_t n_frames;         /* in all of them */
	/* of generated code without a description yet, or of a slot that is paused; bounded by
	 * FRAMES_MAX */
	struct frame **late;
	size_t n_late, size_late;
	bool unproved;    /* its status changed since it was opened: its contents may have, too */
	uint8_t n_proved; /* how often while somebody waits for it */
	bool stale;       /* must be opened again before the next request */
	bool renewing;    /* … and if that fails, the old descriptor is used */
};

/* --- stacks ----------------------------------------------------------------------------------- */

/* A copy of a process's mappings, shared by the stacks that were sampled with them. */
struct snapshot {
	uint64_t generation; /* of the space, marked for a 32-bit program */
	uint32_t n_users;
	uint16_t machine; /* e_machine of its registers */
	pid_t pid;
	struct map *map;
	uint32_t n_maps;
	bool asked;         /* the opener was asked for its files */
	bool refused;       /* the parser cannot use it */
	uint32_t sent;      /* parser generation that has it; 0: none */
	uint32_t progress;  /* parser generation that the next two are about */
	uint32_t n_sent;    /* maps of it sent so far */
	uint32_t next_file; /* map whose file is sent next */
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

/* --- namer ------------------------------------------------------------------------------------ */

struct namer {
	struct namer_options options;
	char *binary;
	struct worker opener, parser;
	struct graves graves;
	uint64_t leave_ns;  /* when slots_leave looks next */
	uint64_t missed_ns; /* when a file was last not found */
	bool off;           /* a worker does not start: names are not awaited until it does */
	bool fresh;         /* something was queued since the last dispatch */
	bool ending;        /* namer_ask_again was called: unnamed frames are final */
	uint64_t now_ns;

	/* the first: unknown users, and those beyond the limit */
	struct naming_user *user[NAMER_USERS_MAX];
	uint32_t n_users;
	uint64_t open_floor_ns, parse_floor_ns; /* time used by the user who was served last */
	uint64_t users_ns; /* CPU time of the parser, paid by all users but root */
	struct faulty faulty[NAMER_FAULTY_MAX];
	uint32_t n_faulty, next_faulty;
	struct file *sampled[NAMER_SAMPLED_MAX]; /* since the last look */
	uint32_t n_sampled;
	uint64_t wake_ns; /* time to check the first paused slot again, or UINT64_MAX */
	/* users whose files and stacks this parser received; not root */
	uid_t seen[NAMER_SEEN_MAX];
	uint32_t n_seen;         /* above the limit: there were more than these */
	struct slot *stays;      /* just loaded: named before other slots evict it */
	struct slot *trial_slot; /* the parser died on it, but another file may have … */
	struct job *trial_job;   /* … been the cause: it is tried first, and alone */
	uint64_t n_deaths;       /* of workers, during a request */

	struct slot_list slots;
	struct slot_list held;               /* those whose file is open: what can be closed */
	size_t n_to_open, n_to_name, n_jobs; /* slots, wishes, stacks in all users' queues */
	size_t n_entries;                    /* of frames in wishes; some may wait twice */
	uint32_t n_fds;
	uint64_t copied_bytes;
	struct slot *opening; /* the opener's request */

	enum message_type asked; /* the parser's request */
	struct slot *asked_slot;
	struct naming_user *asked_user; /* the user for whom it was made */
	struct job *asked_job;
	uint32_t asked_maps;
	struct frame *batch[MESSAGE_OFFSETS_MAX];
	uint32_t n_batch, n_answered;
	bool turn;        /* stacks and names alternate */
	uint32_t *forget; /* files for the parser to forget */
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

/* user.c */
/* The entry of that user; user[0] if the user is unknown. Never NULL after naming_users_begin. */
int naming_users_begin(struct namer *n);
void naming_users_clear(struct namer *n);
struct naming_user *naming_user_get(struct namer *n, uid_t uid);
/* The same; NULL: no entry for that user. */
struct naming_user *naming_user_find(const struct namer *n, uid_t uid);
/* The next user for the opener, among those with files to open. NULL: none, or all must wait. */
struct naming_user *naming_user_next_open(struct namer *n);
struct wish *wish_next(struct namer *n);
/* The next user with a stack, except those flagged in `passed` (by index). */
struct naming_user *naming_user_next_job(struct namer *n, const bool *passed);
/* Call before queueing anything for the user: one who had nothing queued starts level with the
 * others. */
void naming_user_joins(struct namer *n, struct naming_user *u);
/* Is a served before b, or ready while b must wait? */
bool naming_user_is_before(struct namer *n, struct naming_user *a, struct naming_user *b);
void naming_user_pay_open(struct namer *n, struct naming_user *u, uint64_t wall_ns);
void naming_user_pay_parse(
	struct namer *n, struct naming_user *u, uint64_t wall_ns, uint64_t cpu_ns);
/* The time at which a user who waits for CPU time may be served; UINT64_MAX: no user waits. */
uint64_t naming_users_deadline_ns(const struct namer *n);
/* Add the users for whom naming is paused. */
void naming_users_status(const struct namer *n, struct namer_status *status);
/* May files be opened for this user now? */
bool naming_user_may_open(const struct namer *n, const struct naming_user *u);

/* queue.c */
void slot_enqueue_open(
	struct namer *n, struct slot *s, enum message_part part, struct naming_user *u);
/* Queue its wishes at the end of their users' queues, or before all others. */
void slot_enqueue_name(struct namer *n, struct slot *s);
void slot_enqueue_first(struct namer *n, struct slot *s);
void slot_dequeue(struct namer *n, struct slot *s);
/* Add a waiting frame, whether or not the slot is queued. -ENOMEM. */
int slot_push(struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u);
/* Queue the slot for this user, with no frame. -ENOMEM. */
int slot_push_none(struct namer *n, struct slot *s, struct naming_user *u);
struct wish *wish_free(struct namer *n, struct wish *w);
/* Is the wish's entry still valid for its frame? Another user may have taken the frame over. */
bool wish_holds(const struct wish *w, const struct frame *frame);
/* Make room for one more frame. -ENOMEM. */
int frames_reserve(struct frame ***frames, size_t n, size_t *size);

/* vdso.c: negative if it is not available */
int vdso_copy(int *ret_fd, uint64_t *ret_bytes);

/* slot.c */
int slot_get(struct namer *n, struct file *file, struct slot **ret_slot);
/* Note that the slot is used now. */
void slot_touch(struct namer *n, struct slot *s);
/* Keep an open part, with its size, and close the former one; this is a use. */
void slot_hold(struct namer *n, struct slot *s, enum message_part part, int fd, uint64_t bytes);
int slot_release(struct namer *n, struct slot *s);
/* Is the slot dead: nothing in it can be named, or not any more? */
bool slot_is_dead(const struct slot *s);
/* Ask the opener for the file unless it is already open, or hopeless. */
int slot_want(struct namer *n, struct slot *s, struct naming_user *u);
bool slot_is_awaited(const struct namer *n, const struct slot *s);
/* Does the file describe generated code, growing by a line for each new function? */
static inline bool slot_grows(const struct slot *s)
{
	return file_grows(s->file);
}
/* Make its frames late; make them wait again. -ENOMEM. */
int slot_postpone(struct namer *n, struct slot *s);
int slot_resume(struct namer *n, struct slot *s);
/* Late frames wait again, for the file to be opened again. -ENOMEM. */
int slot_ask_again(struct namer *n, struct slot *s);
/* Open it again; the parser forgets the old contents. -ENOMEM. */
int slot_renew(struct namer *n, struct slot *s);
/* Was the open file written to since it was opened? SLOT_REWRITTEN: yes, and it is marked replaced. SLOT_TOUCHED:
 * perhaps, since its status changed; each change is reported once. */
enum { SLOT_SAME, SLOT_TOUCHED, SLOT_REWRITTEN };
int slot_look(struct slot *s);
/* After SLOT_TOUCHED: have its contents compared before anything more is named by it. -ENOMEM. */
int slot_prove(struct namer *n, struct slot *s);
/* Every waiting frame becomes FRAME_UNNAMED. */
void slot_finish(struct namer *n, struct slot *s);
/* Mark the file and finish. -ENOMEM. */
int slot_fail(struct namer *n, struct slot *s, enum file_state state);
/* Tell the parser to forget it. */
int slot_forget(struct namer *n, struct slot *s);
/* Close the descriptor of a part, if it is held. */
void slot_drop(struct namer *n, struct slot *s, enum message_part part);
/* Note the split unit that is wanted, by n_path bytes; path NULL: none is. 0 or -ENOMEM */
int slot_want_split(struct slot *s, const uint8_t *path, size_t n_path);
/* Close the least recently used idle slot with a descriptor; else one that waits only for users who
 * are served after this one. O(open files): usually the first of them. False: none can be closed. */
bool slot_evict(struct namer *n, struct naming_user *u);
/* Close files on file systems that somebody may want to unmount, once the files are idle for NAMER_HELD_NS. Cheap if
 * called often. -ENOMEM. */
int slots_leave(struct namer *n);
void frame_finish(struct namer *n, struct frame *f, enum frame_state state);
struct slot *slot_free(struct namer *n, struct slot *s);

/* grow.c */
/* Was the file written to since the last look? Then it has unread entries. One fstat. */
void slot_look_growing(struct slot *s);
/* Have the parser read on, and take its answer. They return as parser_ask and parser_hear do. */
int slot_ask_grow(struct namer *n, struct slot *s);
int slot_hear_grown(struct namer *n, struct slot *s, const uint8_t *bytes, size_t n_bytes);
/* The range of code by which the parser names the frame. */
uint32_t slot_order(const struct slot *s, const struct frame *frame);

/* blame.c */
/* The user responsible for the contents of the slot's part: the only one who can write to it, else
 * the user of the process that runs it; 0: root. */
uid_t slot_author(const struct slot *s, enum message_part part);
void parser_saw(struct namer *n, uid_t uid);
/* The parser died on the slot or the job. True: its authors are to blame. False: another user's
 * file in the same parser may have been the cause. */
bool slot_is_proven(const struct namer *n, const struct slot *s);
bool job_is_proven(const struct namer *n, const struct job *j);
bool origin_is_faulty(const struct namer *n, const struct origin *o, enum file_state *ret_state);
void origin_blame(struct namer *n, const struct origin *o, enum file_state state);
/* Charge the death to the user responsible; the file is not parsed again. -ENOMEM. */
int slot_blame(struct namer *n, struct slot *s, enum file_state state);
/* Are files of the slot's author refused now? Then the slot is paused, and its frames are late. */
bool slot_is_refused(struct namer *n, const struct slot *s);
int slot_rest(struct namer *n, struct slot *s);
/* Queue paused slots again if they may continue. -ENOMEM. */
int slots_wake(struct namer *n);

/* open.c */
int opener_feed(struct namer *n, bool *ret_fed);
int opener_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes, int fd);
int opener_ended(struct namer *n, enum worker_end end);

/* ask.c: -errno as of worker_ask */
int parser_ask(struct namer *n, enum message_type type, struct iovec *iov, size_t n_iov, int fd);
int parser_give(struct namer *n, struct slot *s, enum message_part part);

/* unwind.c */
int job_feed(struct namer *n, bool *ret_fed);
int job_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
void job_step_done(struct namer *n, int error);
void job_ended(struct namer *n, enum worker_end end);
void jobs_fail(struct namer *n);
void jobs_free(struct namer *n);

/* parse.c: parser_hear returns PARSER_MORE if more answers to this request will come */
enum { PARSER_MORE = 1 };
int parser_feed(struct namer *n, bool *ret_fed);
int parser_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
int parser_ended(struct namer *n, enum worker_end end);

/* namer.c: the two halves of namer_name. 0 or -ENOMEM. */
/* Request a file early, while the process that mapped it is alive, on behalf of that process's
 * user. Idempotent. */
int namer_open(struct namer *n, struct file *file, uid_t uid);
/* Take over a FRAME_ASKED frame that another user asked for first, so that it need not wait until that user is
 * served. It stays in that user's wish, too; if the users ask for it alternately, more than once. */
int namer_hurry(struct namer *n, struct frame *frame, uid_t uid);
