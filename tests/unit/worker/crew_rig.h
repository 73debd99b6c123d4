/* tests/unit/worker/crew_rig.h — crews whose members do what a test says, and a client that asks their status pages.
 *
 * Everything that happens to a member is noted in the order in which it happened, as "name:word". */
#ifndef SL_TESTS_CREW_RIG_H
#define SL_TESTS_CREW_RIG_H

#include "worker/crew_private.h"

#include <pthread.h>

enum {
    CREW_RIG_MEMBERS_MAX = 4,
    CREW_RIG_JOBS_MAX = 8,
    ASKED_BYTES = 64 * 1024
};

struct crew_rig;

/* One member: what its parts do, each time they are made. */
typedef struct scripted {
    struct crew_rig *rig;
    const char *name;
    sl_err make_errs[CREW_RIG_JOBS_MAX]; /* of the first times */
    uint32_t fails_times;                /* so often the source fails at once, with `failure` */
    sl_source_failure failure;
    bool ends_when_done; /* the source is at its end when its jobs are settled */
    bool never_fences, never_closes;
    bool describes_garbage;
    uint32_t jobs;                 /* offered at the start */
    bool holds;                    /* the handler keeps what it gets, until crew_let_go() or an abort */
    bool ignores_abort;            /* and kill */
    sl_drain_reason asked_to_stop; /* by the source, as soon as it is up, so many times; NONE: not */
    uint32_t asked_times;
    void (*on_gate)(struct scripted *script); /* may be NULL */
    void (*on_free)(struct scripted *script); /* the same */

    uint32_t makes, settles, runs;
    sl_loop *loop;
    struct scripted_source *source; /* as long as it lives */
    struct scripted_handler *handler;
    sl_job *held[CREW_RIG_JOBS_MAX];
    uint32_t held_count;
} scripted;

typedef struct crew_rig {
    scripted scripts[CREW_RIG_MEMBERS_MAX];
    sl_crew_member members[CREW_RIG_MEMBERS_MAX];
    size_t count;
    sl_crew_settings settings;
    sl_crew_hooks hooks;
    sl_crew_cause cause;                                           /* of what was given up */
    sl_crew_rules rules;                                           /* pauses of a millisecond */
    void (*when_ready)(struct crew_rig *rig, const char *address); /* may be NULL */
    void (*when_logged)(struct crew_rig *rig, const char *line);   /* the same */
    uint32_t readies;
    char notes[4096];
    sl_text text;
    char log[64 * 1024];
    size_t log_bytes;
    char problem[1024];

    pthread_t client;
    bool has_client;
    char address[128];
    void *test;
    int pipe[2];     /* a byte in it: crew_let_go() of everything held */
    sl_watch *watch; /* of the pipe */
} crew_rig;

/* Scripts and settings may be changed between these two. */
void crew_rig_init(crew_rig *rig, size_t members);
sl_crew_end crew_rig_run(crew_rig *rig);
void crew_rig_done(crew_rig *rig);

/* Finishes what the handler keeps. */
void crew_let_go(scripted *script);
/* Its source fails for good. */
void crew_source_fails(scripted *script);
/* From another thread. */
void crew_let_all_go(crew_rig *rig);

/* For when_ready. */
void crew_raise_term(crew_rig *rig, const char *address);

/* Begins a client in when_ready; crew_rig_run() waits for its end. */
void crew_rig_client(crew_rig *rig, void *(*run)(void *rig));

bool crew_rig_logged(const crew_rig *rig, const char *words);
const char *crew_rig_last_line(const crew_rig *rig);
/* Where in the notes; fails the test if it is not there. */
size_t crew_rig_when(const crew_rig *rig, const char *note);

/* A whole answer, headers and all, with a zero. head: more header lines, each with its line end, or "". */
typedef struct http_asked {
    unsigned status;
    char text[ASKED_BYTES];
    const char *body;
} http_asked;

/* Blocks until the other side closes; false when there was no connection or no answer. */
bool crew_http_ask(uint16_t port, const char *method, const char *path, const char *head,
                   http_asked *ret_asked);
uint16_t crew_port_of(const char *address);
/* Somebody listens there. */
bool crew_http_listens(uint16_t port);

/* A place for a file, in a folder of its own. */
typedef struct crew_place {
    char folder[64], file[96];
} crew_place;
void crew_place_make(crew_place *place);
void crew_place_clear(crew_place *place);
char *crew_place_read(const crew_place *place); /* to be freed; NULL: there is no file */

#endif
