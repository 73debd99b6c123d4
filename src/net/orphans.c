/* net/orphans.c — see process.h: what we started, and descendants that have lost their parents.
 *
 * Each program of ours leads a session of its own, so every descendant is in a session that is not ours, and can never come back into it.
 * That tells them from children that other code of this process started, which are none of our business. */
#include "base/cleanup.h"
#include "net/process.h"
#include "net/process_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

enum {
    STARTED_ROWS = 1024,
    SWEEP_PAUSE_MS = 10, /* between sweeps: each of them reads all children */
    LOOK_PAUSE_MS = 2,   /* between looks at killed orphans that are not dead yet; doubles */
    LOOK_PAUSE_MS_MAX = 1000,
    REAP_ROUNDS_MAX = 8,   /* through the list of children in one look */
    CHILDREN_BYTES = 4096, /* of a list of children that are read at once */
    FAMILY_MAX =
        64, /* processes of one program that are looked at: a handler has a few, and a bomb must not stop us */
    PATH_BYTES = 64,
    STAT_BYTES = 512 /* enough for the name, which has 16 bytes at most, and the state behind it */
};

/* --- what we started --- */

static pthread_mutex_t started_lock = PTHREAD_MUTEX_INITIALIZER;
static sl_started *started_rows[STARTED_ROWS];
static size_t started_count;
static atomic_bool orphans_are_ours;

void sl_started_lock(void)
{
    pthread_mutex_lock(&started_lock);
}

void sl_started_unlock(void)
{
    pthread_mutex_unlock(&started_lock);
}

/* The system gives numbers out in turn, so neighbours are in different rows. */
static sl_started **row_of(pid_t pid)
{
    return &started_rows[(unsigned)pid % STARTED_ROWS];
}

void sl_started_add(sl_started *started)
{
    sl_started **row = row_of(started->pid);

    started->next = *row;
    *row = started;
    started_count++;
}

void sl_started_remove(sl_started *started)
{
    pthread_mutex_lock(&started_lock);
    for (sl_started **at = row_of(started->pid); *at != NULL; at = &(*at)->next) {
        if (*at != started)
            continue;
        *at = started->next;
        started_count--;
        break;
    }
    pthread_mutex_unlock(&started_lock);
}

bool sl_started_has(pid_t pid)
{
    bool found = false;

    pthread_mutex_lock(&started_lock);
    for (const sl_started *at = *row_of(pid); at != NULL && !found; at = at->next)
        found = at->pid == pid;
    pthread_mutex_unlock(&started_lock);
    return found;
}

static bool any_started(void)
{
    bool any;

    pthread_mutex_lock(&started_lock);
    any = started_count > 0;
    pthread_mutex_unlock(&started_lock);
    return any;
}

/* False: the time is over. */
static bool nap(uint64_t until_ns)
{
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };

    if (sl_clock_mono_ns(sl_loop_stopwatch()) >= until_ns)
        return false;
    (void)nanosleep(&pause, NULL);
    return true;
}

bool sl_process_reap(pid_t pid, uint64_t until_ns)
{
    do {
        const pid_t result = waitpid(pid, NULL, WNOHANG);
        if (result == pid || (result < 0 && errno == ECHILD))
            return true;
    } while (nap(until_ns));
    return false;
}

/* --- /proc --- */

/* The beginning of a file, with a zero behind it; empty when it cannot be read. */
static void read_file(const char *path, char *into, size_t capacity)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = -1;

    if (fd >= 0) {
        count = read(fd, into, capacity - 1);
        close(fd);
    }
    into[count < 0 ? 0 : count] = '\0';
}

/* The name in front of the state is in brackets and may hold brackets itself. */
static bool is_stopped(pid_t pid)
{
    char path_data[PATH_BYTES], stat[STAT_BYTES];
    const char *state;
    sl_text path;

    sl_text_init(&path, path_data, sizeof path_data);
    sl_text_add(&path, "/proc/");
    sl_text_add_i64(&path, pid);
    sl_text_add(&path, "/stat");
    read_file(path_data, stat, sizeof stat);
    state = strrchr(stat, ')');
    return state != NULL && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

typedef bool child_fn(void *ctx, pid_t child); /* true: it counts */

/* Numbers with blanks between them; the last one has a blank behind it too. */
static size_t each_listed(const char *list, size_t bytes, pid_t *number, child_fn *fn, void *ctx)
{
    size_t count = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (list[i] >= '0' && list[i] <= '9') {
            *number = *number * 10 + (list[i] - '0');
            continue;
        }
        count += *number > 0 && fn(ctx, *number);
        *number = 0;
    }
    return count;
}

/* The children of one thread; none where the kernel has no such list. Returns how many counted. */
static size_t each_child(const char *process, const char *thread, child_fn *fn, void *ctx)
{
    char path_data[PATH_BYTES], list[CHILDREN_BYTES];
    size_t counted = 0;
    pid_t number = 0;
    sl_text path;
    int fd;

    sl_text_init(&path, path_data, sizeof path_data);
    sl_text_add(&path, "/proc/");
    sl_text_add(&path, process);
    sl_text_add(&path, "/task/");
    sl_text_add(&path, thread);
    sl_text_add(&path, "/children");
    fd = open(path_data, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    for (ssize_t count = read(fd, list, sizeof list); count > 0; count = read(fd, list, sizeof list))
        counted += each_listed(list, (size_t)count, &number, fn, ctx);
    close(fd);
    return counted;
}

/* --- frozen programs --- */

typedef struct family {
    pid_t pids[FAMILY_MAX];
    size_t count;
} family;

static bool add_to_family(void *ctx, pid_t child)
{
    family *const of = ctx;

    if (of->count == FAMILY_MAX)
        return false;
    of->pids[of->count++] = child;
    return true;
}

/* Whoever was started by the first thread of one, which is how shells and scripts do it. */
static void add_children(family *of, pid_t pid)
{
    char name_data[PATH_BYTES];
    sl_text name;

    sl_text_init(&name, name_data, sizeof name_data);
    sl_text_add_i64(&name, pid);
    (void)each_child(name_data, name_data, add_to_family, of);
}

/* The nearest first, each once: a process has one parent. */
bool sl_process_is_frozen(int64_t process_id)
{
    family of = { .pids = { (pid_t)process_id }, .count = 1 };

    for (size_t i = 0; i < of.count; i++) {
        if (is_stopped(of.pids[i]))
            return true;
        add_children(&of, of.pids[i]);
    }
    return false;
}

/* --- orphans --- */

bool sl_process_adopt_orphans(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return false;
    atomic_store(&orphans_are_ours, true);
    return true;
}

/* The session of a child that is a descendant of a program of ours, dead or alive; 0: it is that program itself, or none of our business. */
static pid_t session_of_descendant(pid_t pid)
{
    const pid_t session = getsid(pid);

    return session > 0 && session != getsid(0) && !sl_started_has(pid) ? session : 0;
}

/* Only we can: its parent is gone. True: it was dead. */
static bool reap_descendant(void *ctx, pid_t pid)
{
    (void)ctx;
    return session_of_descendant(pid) != 0 && waitpid(pid, NULL, WNOHANG) == pid;
}

/* Not what lives in the session of a program that runs: that belongs to the program, until it dies.
 *
 * True: it was one. Then it is worth looking again: it may not be dead yet, and its own children become ours when it is. */
static bool end_orphan(void *ctx, pid_t pid)
{
    const pid_t session = session_of_descendant(pid);
    const bool is_orphan = session != 0 && !sl_started_has(session);

    (void)ctx;
    if (is_orphan)
        (void)kill(pid, SIGKILL);
    if (session != 0)
        (void)waitpid(pid, NULL, WNOHANG);
    return is_orphan;
}

/* Any thread may be the one that the system made their parent. Returns how many counted. */
static size_t each_child_of_ours(child_fn *fn)
{
    DIR *threads = atomic_load(&orphans_are_ours) ? opendir("/proc/self/task") : NULL;
    size_t counted = 0;

    if (threads == NULL)
        return 0;
    for (const struct dirent *entry = readdir(threads); entry != NULL; entry = readdir(threads)) {
        if (entry->d_name[0] != '.')
            counted += each_child("self", entry->d_name, fn, NULL);
    }
    closedir(threads);
    return counted;
}

static void look(void *ctx)
{
    sl_orphans *orphans = ctx;
    const uint64_t now_ns = sl_loop_now_ns(orphans->loop);

    orphans->looks++;
    orphans->sweep_not_before_ns = now_ns + SWEEP_PAUSE_MS * MS_NS;
    if (each_child_of_ours(end_orphan) == 0)
        return;
    sl_timer_set(&orphans->timer, now_ns + orphans->pause_ns);
    orphans->pause_ns = sl_min_u64(orphans->pause_ns * 2, LOOK_PAUSE_MS_MAX * MS_NS);
}

/* A long list is read in parts, and the system leaves out as many behind a part as were reaped of it: about half of all remain. */
static void reap(void *ctx)
{
    sl_orphans *orphans = ctx;

    for (int round = 0; round < REAP_ROUNDS_MAX && each_child_of_ours(reap_descendant) > 0; round++)
        continue;
    if (any_started())
        sl_orphans_watch(orphans);
}

void sl_orphans_init(sl_orphans *orphans, sl_loop *loop)
{
    *orphans = (sl_orphans){ .loop = loop };
    sl_timer_init(&orphans->timer, loop, look, orphans);
    sl_timer_init(&orphans->reaper, loop, reap, orphans);
}

/* Timers come after the exits of a turn, and before its end. */
void sl_orphans_sweep(sl_orphans *orphans)
{
    const uint64_t at_ns = sl_max_u64(sl_loop_now_ns(orphans->loop), orphans->sweep_not_before_ns);

    orphans->pause_ns = LOOK_PAUSE_MS * MS_NS;
    if (!orphans->timer.is_set || at_ns < orphans->timer.at_ns)
        sl_timer_set(&orphans->timer, at_ns);
}

void sl_orphans_watch(sl_orphans *orphans)
{
    if (!orphans->reaper.is_set)
        sl_timer_set(&orphans->reaper, sl_loop_now_ns(orphans->loop) + SL_ORPHANS_REAP_PAUSE_MS * MS_NS);
}

void sl_orphans_done(sl_orphans *orphans, uint64_t until_ns)
{
    sl_timer_stop(&orphans->timer);
    sl_timer_stop(&orphans->reaper);
    while (each_child_of_ours(end_orphan) > 0 && nap(until_ns))
        continue;
}
