/* worker/source/schedule.c — see schedule_source.h.
 *
 *      PAUSING --timer--> OUT --settle--> PAUSING
 *                          |
 *                          +--park--> failed
 *
 * The timer of the pause is set if and only if the source is started, the gate is open, nothing is out and nothing has failed. */
#include "worker/schedule_source.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <sys/random.h>

#define MS_NS UINT64_C(1000000)

/* Work that is handed back while no drain is on could not be begun: it gets a moment to become possible. */
#define RELEASE_PAUSE_NS UINT64_C(100000000)

enum {
    DATA_BYTES_MAX = 160,
    REASON_BYTES_MAX = 500
};

typedef struct schedule_source {
    sl_source source;
    sl_schedule_rules rules;
    sl_loop *loop;
    const sl_logger *log;
    sl_timer pause, alarm;
    uint64_t random; /* changes with each use */
    bool is_started, is_shut, hands_back, has_failed, is_out;

    sl_schedule_tick tick; /* OUT, or the last one */
    sl_uuid tick_id;       /* the same for each try of it */
    uint64_t tick_wall_ns; /* its nominal time, for people */
    uint32_t attempt;      /* of it */
    sl_schedule_tick next; /* PAUSING */
    uint64_t
        retry_ns; /* PAUSING: the last tick comes again then, if that is before the next; UINT64_MAX: it does not */
    uint64_t succeeded_ns; /* the last success, or the start */
    uint64_t overdue_ns;   /* when the next one is */
    uint64_t ticks, successes, missed;
} schedule_source;

static schedule_source *schedule_of(sl_source *source)
{
    return SL_CONTAINER_OF(source, schedule_source, source);
}

static uint64_t now_of(schedule_source *schedule)
{
    return sl_loop_now_ns(schedule->loop);
}

/* Only spreads the ticks of many processes, so it need not be a secret. */
static uint64_t roll(schedule_source *schedule)
{
    uint64_t mixed = schedule->random += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* --- pauses --- */

static void set_pause(schedule_source *schedule)
{
    const bool runs =
        schedule->is_started && !schedule->is_shut && !schedule->has_failed && !schedule->is_out;

    sl_timer_set(&schedule->pause, runs ? sl_min_u64(schedule->next.due_ns, schedule->retry_ns) : UINT64_MAX);
}

static void stop_timers(schedule_source *schedule)
{
    sl_timer_stop(&schedule->pause);
    sl_timer_stop(&schedule->alarm);
}

static bool is_overdue(const schedule_source *schedule, uint64_t now_ns)
{
    return schedule->is_started && now_ns >= schedule->overdue_ns;
}

/* At most once in an interval: a success sets the time anew, otherwise it is an interval from here. */
static void sound_alarm(void *ctx)
{
    schedule_source *const schedule = ctx;
    const uint64_t now_ns = now_of(schedule);

    if (!is_overdue(schedule, now_ns)) {
        sl_timer_set(&schedule->alarm, schedule->overdue_ns);
        return;
    }
    sl_log(schedule->log, SL_LOG_ERROR,
           "scheduled work has not succeeded for two intervals; look at the failures before",
           SL_LOG_STR("schedule", (const char *)schedule->rules.text),
           SL_LOG_DURATION("since", now_ns - schedule->succeeded_ns),
           SL_LOG_BOOL("running", schedule->is_out));
    sl_timer_set(&schedule->alarm, sl_add_sat_u64(now_ns, schedule->rules.every_ns));
}

/* --- ticks --- */

/* The same schedule and the same time are the same tick, wherever it is made. */
static sl_uuid id_of(const schedule_source *schedule, uint64_t wall_ns)
{
    const sl_str text = sl_str_from(schedule->rules.text);
    uint64_t halves[2];
    uint8_t bytes[16];

    for (uint64_t i = 0; i < 2; i++)
        halves[i] = sl_hash((sl_hash_seed){ wall_ns, i }, text.data, text.bytes);
    memcpy(bytes, halves, sizeof bytes);
    return sl_uuid_v4(bytes);
}

static void take_next_tick(schedule_source *schedule, uint64_t now_ns)
{
    const uint64_t wall_ns = sl_loop_wall_ns(schedule->loop);

    schedule->tick = sl_schedule_due(&schedule->rules, schedule->next, now_ns);
    schedule->tick_wall_ns =
        wall_ns - sl_min_u64(wall_ns, now_ns - sl_min_u64(now_ns, schedule->tick.nominal_ns));
    schedule->tick_id = id_of(schedule, schedule->tick_wall_ns);
    schedule->attempt = 1;
    schedule->ticks++;
    schedule->missed += schedule->tick.missed;
    if (schedule->tick.missed > 0)
        sl_log(schedule->log, SL_LOG_WARN, "ticks were left out because the one before took too long",
               SL_LOG_STR("schedule", (const char *)schedule->rules.text),
               SL_LOG_U64("missed", schedule->tick.missed));
}

static void write_data(const schedule_source *schedule, uint64_t now_ns, sl_text *data)
{
    sl_text_add(data, "{\"scheduled\":\"");
    sl_text_add_time(data, schedule->tick_wall_ns);
    sl_text_add(data, "\",\"late_ms\":");
    sl_text_add_u64(data, (now_ns - sl_min_u64(now_ns, schedule->tick.due_ns)) / MS_NS);
    sl_text_add(data, ",\"missed\":");
    sl_text_add_u64(data, schedule->tick.missed);
    sl_text_add(data, "}");
    assert(!data->cut);
}

static sl_job *make_job(const schedule_source *schedule, uint64_t now_ns)
{
    char room[DATA_BYTES_MAX];
    sl_text data;
    sl_job *job;

    sl_text_init(&data, room, sizeof room);
    write_data(schedule, now_ns, &data);
    job = sl_job_new(&(sl_job_message){
        .id = schedule->tick_id,
        .attempt = schedule->attempt,
        .revision = schedule->ticks - 1,
        .created_ns = schedule->tick_wall_ns,
        .stream = SL_STR("schedule"),
        .type = SL_STR("tick"),
        .content_type = SL_STR("application/json"),
        .data = sl_text_str(&data),
    });
    if (job != NULL)
        job->lease_until_ns = UINT64_MAX;
    return job;
}

/* The try did not count, so that its number is given again. */
static void note_release(schedule_source *schedule, uint64_t now_ns)
{
    schedule->attempt--;
    schedule->retry_ns = sl_add_sat_u64(now_ns, RELEASE_PAUSE_NS);
}

/* Without memory for a message the tick waits like one that was handed back. */
static void offer(schedule_source *schedule, uint64_t now_ns)
{
    sl_job *const job = make_job(schedule, now_ns);

    schedule->retry_ns = UINT64_MAX;
    if (job == NULL) {
        schedule->next =
            sl_schedule_next(&schedule->rules, schedule->tick.nominal_ns, now_ns, roll(schedule));
        note_release(schedule, now_ns);
        set_pause(schedule);
        return;
    }
    schedule->is_out = true;
    schedule->source.owner->offer(schedule->source.owner_ctx, job);
}

static void end_pause(void *ctx)
{
    schedule_source *const schedule = ctx;
    const uint64_t now_ns = now_of(schedule);

    if (now_ns >= schedule->next.due_ns)
        take_next_tick(schedule, now_ns);
    else
        schedule->attempt++;
    offer(schedule, now_ns);
}

/* --- what became of it --- */

/* After an overrun nothing is expected before the cooldown is over and the next tick has come. */
static void note_success(schedule_source *schedule, uint64_t now_ns)
{
    const uint64_t since_ns = schedule->next.missed > 0 ? schedule->next.due_ns : now_ns;

    schedule->successes++;
    schedule->succeeded_ns = now_ns;
    schedule->overdue_ns = sl_schedule_overdue_ns(&schedule->rules, since_ns);
    if (!schedule->is_shut)
        sl_timer_set(&schedule->alarm, schedule->overdue_ns);
}

static void note_failure(schedule_source *schedule, const sl_settle *settle, uint64_t now_ns)
{
    schedule->retry_ns = sl_add_sat_u64(now_ns, settle->delay_ns);
    sl_log(schedule->log, SL_LOG_WARN, "scheduled work failed and will be tried again",
           SL_LOG_STR("schedule", (const char *)schedule->rules.text), SL_LOG_STR("reason", settle->reason),
           SL_LOG_U64("attempt", schedule->attempt),
           SL_LOG_DURATION("next_in", sl_min_u64(schedule->retry_ns, schedule->next.due_ns) - now_ns));
}

static void fail(schedule_source *schedule, sl_str reason)
{
    schedule->has_failed = true;
    stop_timers(schedule);
    sl_log(schedule->log, SL_LOG_ERROR, "scheduled work was given up, and the schedule fails with it",
           SL_LOG_STR("schedule", (const char *)schedule->rules.text), SL_LOG_STR("reason", reason));
    schedule->source.owner->failed(schedule->source.owner_ctx, SL_SOURCE_LOST, reason);
}

static void schedule_settle(sl_source *source, sl_job *job, const sl_settle *settle)
{
    schedule_source *const schedule = schedule_of(source);
    const bool is_fatal = settle->kind == SL_SETTLE_PARK && !schedule->has_failed;
    const uint64_t now_ns = now_of(schedule);
    char room[REASON_BYTES_MAX + 1];
    sl_text reason;

    sl_text_init(&reason, room,
                 sizeof room); /* a copy: the job may own the text, and settled() frees the job */
    sl_text_add_str(&reason, settle->reason);
    schedule->is_out = false;
    schedule->next = sl_schedule_next(&schedule->rules, schedule->tick.nominal_ns, now_ns, roll(schedule));
    switch (settle->kind) {
    case SL_SETTLE_ACK: note_success(schedule, now_ns); break;
    case SL_SETTLE_RETRY: note_failure(schedule, settle, now_ns); break;
    case SL_SETTLE_RELEASE: note_release(schedule, now_ns); break;
    case SL_SETTLE_PARK:
    case SL_SETTLE_KIND_COUNT_: break;
    }
    set_pause(schedule);
    source->owner->settled(source->owner_ctx, job, SL_SETTLED_DONE);
    if (is_fatal)
        fail(schedule, sl_text_str(&reason));
}

/* --- the door --- */

static void schedule_start(sl_source *source)
{
    schedule_source *const schedule = schedule_of(source);
    const uint64_t now_ns = now_of(schedule);

    schedule->is_started = true;
    schedule->succeeded_ns = now_ns;
    schedule->next = sl_schedule_first(&schedule->rules, now_ns, roll(schedule));
    schedule->overdue_ns = sl_schedule_overdue_ns(&schedule->rules, now_ns);
    sl_timer_set(&schedule->alarm, schedule->overdue_ns);
    set_pause(schedule);
    source->owner->up(source->owner_ctx);
}

static bool schedule_begin(sl_source *source, __attribute__((unused)) sl_job *job)
{
    const schedule_source *const schedule = schedule_of(source);

    return !schedule->has_failed && !schedule->hands_back;
}

/* Nothing is on its way here, so the fence is behind us at once. */
static void schedule_close_gate(sl_source *source, bool hand_back)
{
    schedule_source *const schedule = schedule_of(source);

    schedule->is_shut = true;
    schedule->hands_back |= hand_back;
    stop_timers(schedule);
    source->owner->fenced(source->owner_ctx);
}

static void schedule_close(sl_source *source)
{
    stop_timers(schedule_of(source));
    source->owner->closed(source->owner_ctx);
}

static void schedule_describe(const sl_source *source, cJSON *object)
{
    schedule_source *const schedule = SL_CONTAINER_OF(source, schedule_source, source);
    const uint64_t now_ns = now_of(schedule);
    const uint64_t due_ns = schedule->pause.is_set ? schedule->pause.at_ns : now_ns;

    (void)cJSON_AddStringToObject(object, "schedule", schedule->rules.text);
    (void)cJSON_AddBoolToObject(object, "running", schedule->is_out);
    if (schedule->pause.is_set)
        (void)cJSON_AddNumberToObject(object, "next_in_ms",
                                      (double)((sl_max_u64(due_ns, now_ns) - now_ns) / MS_NS));
    (void)cJSON_AddNumberToObject(object, "ticks", (double)schedule->ticks);
    (void)cJSON_AddNumberToObject(object, "succeeded", (double)schedule->successes);
    (void)cJSON_AddNumberToObject(object, "missed", (double)schedule->missed);
    (void)cJSON_AddBoolToObject(object, "overdue", is_overdue(schedule, now_ns));
}

static void schedule_free(sl_source *source)
{
    stop_timers(schedule_of(source));
    sl_alloc_give(&sl_alloc_default, schedule_of(source), sizeof(schedule_source));
}

static const sl_source_class schedule_class = {
    .name = "schedule",
    .cancels_work = true,
    .has_no_dead_letters = true,
    .start = schedule_start,
    .begin = schedule_begin,
    .settle = schedule_settle,
    .close_gate = schedule_close_gate,
    .close = schedule_close,
    .describe = schedule_describe,
    .free = schedule_free,
};

sl_err sl_schedule_source_new(sl_loop *loop, const sl_logger *log, const sl_schedule_rules *rules,
                              sl_source **ret_source)
{
    schedule_source *const schedule = sl_alloc_take(&sl_alloc_default, sizeof *schedule);

    if (schedule == NULL)
        return SL_ERR_NOMEM;
    *schedule =
        (schedule_source){ .source = { .class = &schedule_class, .keeps_delays = true, .confirms = true },
                           .rules = *rules,
                           .loop = loop,
                           .log = log,
                           .retry_ns = UINT64_MAX };
    if (getrandom(&schedule->random, sizeof schedule->random, 0) != (ssize_t)sizeof schedule->random) {
        sl_alloc_give(&sl_alloc_default, schedule, sizeof *schedule);
        return SL_ERR_IO;
    }
    sl_timer_init(&schedule->pause, loop, end_pause, schedule);
    sl_timer_init(&schedule->alarm, loop, sound_alarm, schedule);
    *ret_source = &schedule->source;
    return SL_OK;
}

sl_err sl_schedule_source_open(sl_loop *loop, const sl_logger *log, sl_str text, sl_text *problem,
                               sl_source **ret_source)
{
    sl_schedule_rules rules;
    sl_err err = sl_schedule_parse(text, problem, &rules);

    if (err != SL_OK)
        return err;
    err = sl_schedule_source_new(loop, log, &rules, ret_source);
    if (err != SL_OK) {
        sl_text_add(problem, "The schedule cannot be made: ");
        sl_text_add(problem, sl_err_text(err));
        sl_text_add(problem, ".");
    }
    return err;
}
