/* bench/delivery/run.c — see run.h.
 *
 * The producer is a child: the machine has two cores, and one thread for both sides would measure itself. Both look at a page of
 * shared memory: how much was sent, how much is done. */
#include "run.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CONSUMERS_MAX = 1024,
    IN_FLIGHT = 1000,  /* unconfirmed appends */
    AHEAD_MAX = 20000, /* appended and not acknowledged */
    MARK_DIGITS = 16,
    POLL_MS = 100,
    QUIET_SECONDS = 2, /* so long nothing is said before held messages are weighed */
};

typedef struct shared {
    _Atomic uint64_t sent, acked;
    _Atomic uint32_t run;  /* which one the producer shall do; 0: none yet */
    _Atomic uint32_t over; /* the last one in which nothing more is produced */
    uint32_t per_second;   /* of the run; 0: as fast as it goes */
    double seconds;
} shared;

static shared *board;
static double *latency_s; /* NULL: nobody wants to know */
static size_t latency_count, latency_max;

void consumer_take(consumer *c, const char *payload)
{
    char digits[MARK_DIGITS + 1] = { 0 };

    c->taken++;
    if (latency_s == NULL || latency_count == latency_max)
        return;
    memcpy(digits, payload, MARK_DIGITS);
    latency_s[latency_count++] = bench_now_s() - (double)strtoull(digits, NULL, 16) * 1e-9;
}

/* --- the producer --- */

static void wait_some(peer *p, uint64_t *confirmed, uint64_t timeout_ns)
{
    *confirmed += p->kind->wait(p, timeout_ns);
}

static void produce_fast(peer *p, double seconds)
{
    const double end_s = bench_now_s() + seconds;
    uint64_t sent = 0, confirmed = 0;

    while (bench_now_s() < end_s) {
        const uint64_t ahead = sent - atomic_load(&board->acked);
        uint64_t room = IN_FLIGHT - (sent - confirmed);

        room = ahead >= AHEAD_MAX ? 0 : room;
        if (room >= IN_FLIGHT / 4) {
            p->kind->put(p, (uint32_t)room);
            sent += room;
            atomic_store(&board->sent, sent);
        }
        if (sent > confirmed)
            wait_some(p, &confirmed, 100 * 1000 * 1000);
        else
            usleep(100);
    }
    while (confirmed < sent)
        wait_some(p, &confirmed, (uint64_t)ANSWER_SECONDS_MAX * 1000000000);
}

static void produce_paced(peer *p, uint32_t per_second, double seconds)
{
    const uint64_t count = (uint64_t)(per_second * seconds);
    const double begin_s = bench_now_s();
    uint64_t sent = 0, confirmed = 0;

    while (confirmed < count) {
        const double due_s = begin_s + (double)sent / per_second, now_s = bench_now_s();

        if (sent < count && now_s >= due_s) {
            peer_payload_mark((uint64_t)(due_s * 1e9));
            p->kind->put(p, 1);
            atomic_store(&board->sent, ++sent);
            wait_some(p, &confirmed, 0);
        } else {
            wait_some(p, &confirmed, sent == count ? 1000000000 : (uint64_t)((due_s - now_s) * 1e9));
        }
    }
}

/* A wait of the kernel may be 50 us longer than was asked for, so that timers can share a wake-up. Here that would be added to the
 * latency of every system, because messages are late before they are sent. */
static void set_slack_ns(unsigned long slack_ns)
{
    if (prctl(PR_SET_TIMERSLACK, slack_ns) != 0)
        bench_fail("the slack of timers cannot be changed");
}

static pid_t producer;

_Noreturn static void produce(peer *p)
{
    for (uint32_t run = 1;; run++) {
        while (atomic_load(&board->run) < run) {
            bench_check();
            usleep(100);
        }
        if (board->per_second == 0)
            produce_fast(p, board->seconds);
        else
            produce_paced(p, board->per_second, board->seconds);
        atomic_store(&board->over, run);
    }
}

void run_begin(peer *server)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        bench_fail("no shared memory");
    producer = fork();
    if (producer < 0)
        bench_fail("no process for the producer");
    if (producer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        set_slack_ns(1);
        produce(server);
    }
    set_slack_ns(1);
}

/* Servers inherit the slack, and they shall have what they have elsewhere: 0 is the one from before. */
void run_end(void)
{
    set_slack_ns(0);
    kill(producer, SIGKILL);
    waitpid(producer, NULL, 0);
    munmap(board, sizeof *board);
    board = NULL;
}

/* What the producer has to do next; consumers are there already. */
static void order(uint32_t per_second, double seconds)
{
    atomic_store(&board->sent, 0);
    atomic_store(&board->acked, 0);
    board->per_second = per_second;
    board->seconds = seconds;
    atomic_fetch_add(&board->run, 1);
}

static void check_producer(void)
{
    if (waitpid(producer, NULL, WNOHANG) != 0)
        bench_fail("the producer has failed");
}

/* --- the consumers --- */

static consumer consumers[CONSUMERS_MAX];

static void open_consumers(const run_setup *setup)
{
    static char names[CONSUMERS_MAX][32];

    for (uint32_t i = 0; i < setup->consumer_count; i++) {
        snprintf(names[i], sizeof names[i], setup->group_count > 1 ? "group%u" : "workers",
                 setup->group_count > 1 ? i % setup->group_count : 0);
        consumers[i] = (consumer){ .kind = setup->kind,
                                   .server = setup->server,
                                   .index = i,
                                   .window = setup->window,
                                   .group = names[i] };
        setup->kind->open(&consumers[i]);
    }
}

static void close_consumers(const run_setup *setup)
{
    for (uint32_t i = 0; i < setup->consumer_count; i++)
        setup->kind->close(&consumers[i]);
}

static uint64_t turn_all(const run_setup *setup, const struct pollfd *ready, bool *wants_out)
{
    uint64_t acked = 0;

    for (uint32_t i = 0; i < setup->consumer_count; i++) {
        if (ready[i].revents != 0 || wants_out[i])
            wants_out[i] = setup->kind->turn(&consumers[i]);
        acked += consumers[i].acked;
    }
    return acked;
}

/* Wanted 0: everything that was produced, once for each group. */
static bool is_done(uint64_t wanted, uint64_t acked, uint64_t groups)
{
    if (wanted > 0)
        return acked >= wanted;
    check_producer();
    return atomic_load(&board->over) == atomic_load(&board->run) &&
           acked >= groups * atomic_load(&board->sent);
}

static uint64_t consume(const run_setup *setup, uint64_t wanted)
{
    static struct pollfd ready[CONSUMERS_MAX];
    static bool wants_out[CONSUMERS_MAX];
    const uint64_t groups = setup->group_count > 1 ? setup->group_count : 1;
    uint64_t acked = 0;

    memset(wants_out, 1, sizeof wants_out); /* a first turn for everybody */
    double quiet_since_s = bench_now_s();
    for (;;) {
        const uint64_t before = acked;
        bool busy = false;

        bench_check();
        acked = turn_all(setup, ready, wants_out);
        if (wanted == 0)
            atomic_store(&board->acked, acked / groups);
        if (is_done(wanted, acked, groups))
            return acked;
        for (uint32_t i = 0; i < setup->consumer_count; i++) {
            ready[i] = (struct pollfd){ .fd = consumers[i].fd,
                                        .events = (short)(POLLIN | (wants_out[i] ? POLLOUT : 0)) };
            busy |= wants_out[i];
        }
        if (acked != before)
            quiet_since_s = bench_now_s();
        if (bench_now_s() - quiet_since_s > ANSWER_SECONDS_MAX)
            bench_fail("%s: nothing was acknowledged for %d seconds, after %llu messages",
                       setup->kind->peer->name, ANSWER_SECONDS_MAX, (unsigned long long)acked);
        poll(ready, setup->consumer_count, busy ? 0 : POLL_MS);
    }
}

double run_rate(const run_setup *setup, double seconds)
{
    open_consumers(setup);
    const double begin_s = bench_now_s();
    order(0, seconds);
    const uint64_t acked = consume(setup, 0);
    const double took_s = bench_now_s() - begin_s;

    close_consumers(setup);
    return (double)acked / took_s;
}

load_latency run_latency(const run_setup *setup, uint32_t per_second, double seconds)
{
    latency_count = 0;
    latency_max = (size_t)(per_second * seconds);
    latency_s = bench_allocate(latency_max * sizeof *latency_s);
    open_consumers(setup);
    order(per_second, seconds);
    consume(setup, 0);
    close_consumers(setup);
    const load_latency found = load_summary(latency_s, latency_count);
    free(latency_s);
    latency_s = NULL;
    return found;
}

double run_backlog(const run_setup *setup, uint64_t count)
{
    const double begin_s = bench_now_s();
    open_consumers(setup);
    const uint64_t acked = consume(setup, count);
    const double took_s = bench_now_s() - begin_s;

    close_consumers(setup);
    return (double)acked / took_s;
}

static uint64_t taken_by_all(const run_setup *setup)
{
    uint64_t taken = 0;

    for (uint32_t i = 0; i < setup->consumer_count; i++) {
        consumers[i].holds = true;
        setup->kind->turn(&consumers[i]);
        taken += consumers[i].taken;
    }
    return taken;
}

double run_held(const run_setup *setup, uint64_t count, const peer *p, double (*look)(const peer *p))
{
    const double end_s = bench_now_s() + ANSWER_SECONDS_MAX;

    open_consumers(setup);
    while (taken_by_all(setup) < count) {
        bench_check();
        if (bench_now_s() > end_s)
            bench_fail("sluice: only %llu of %llu messages came", (unsigned long long)taken_by_all(setup),
                       (unsigned long long)count);
        usleep(1000);
    }
    sleep(QUIET_SECONDS); /* what only the way there needed is not counted, if it is given back */
    const double found = look(p);
    close_consumers(setup);
    return found;
}
