/* worker/worker_late.c — turns that come late: a process that was stopped, a machine that slept, a function that kept the loop.
 *
 *      beat      beat      (nobody turns the loop)                     beat, late
 *      |---------|---------.-------.---------------------.-------------|
 *                          ^       ^ a message arrives   ^ its lease is over; somebody else works on it
 *                          |                                           ^ it is read, and says that it has all of its lease
 *                          from here on it may have lain in the socket
 *
 * A message says how long its lease is from when it was sent, and how long it was on its way nobody knows. That does not matter as long
 * as somebody is there to read it. A beat that comes late shows that nobody was: what is read then counts from the last moment at
 * which somebody certainly was. What has no time left is not begun, but goes back (worker_lease.c). */
#include "worker/worker_private.h"

#include "base/cleanup.h"

#define BEAT_NS UINT64_C(250000000) /* an idle worker wakes up so often */
#define LATE_NS (BEAT_NS / 2)       /* less is what any busy machine does */

/* After a late turn, until the socket has been read empty. What comes new meanwhile loses some of its lease by our reckoning only. */
#define READ_NS UINT64_C(200000000)

static void set_beat(sl_work *work, uint64_t now_ns)
{
    work->beat_ns = now_ns + BEAT_NS;
    sl_timer_set(&work->beat, work->beat_ns);
}

static void look(sl_work *work, uint64_t now_ns)
{
    if (now_ns < work->beat_ns + LATE_NS)
        return;
    if (now_ns >= work->late_until_ns)
        work->late_since_ns = work->beat_ns - BEAT_NS;
    work->late_until_ns = now_ns + READ_NS;
}

static void on_beat(void *ctx)
{
    sl_work *const work = ctx;
    const uint64_t now_ns = work_now_ns(work);

    look(work, now_ns);
    set_beat(work, now_ns);
}

void work_late_init(sl_work *work)
{
    work->beat_ns = UINT64_MAX - LATE_NS;
    sl_timer_init(&work->beat, work->loop, on_beat, work);
}

void work_late_done(sl_work *work)
{
    sl_timer_stop(&work->beat);
}

/* A source without tokens says nothing of leases. */
void work_late_up(sl_work *work)
{
    if (work->source->has_tokens)
        set_beat(work, work_now_ns(work));
}

void work_late_offered(sl_work *work, sl_job *job)
{
    const uint64_t now_ns = work_now_ns(work);

    look(work, now_ns);
    if (now_ns < work->late_until_ns)
        job->lease_until_ns =
            sl_min_u64(job->lease_until_ns, sl_add_sat_u64(work->late_since_ns, job->lease_ns));
}
