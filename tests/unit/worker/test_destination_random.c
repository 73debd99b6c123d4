/* tests/unit/worker/test_destination_random.c — whatever happens, each job comes out once, and no rule is broken. */
#include "worker/destination.h"

#include "base/support.h"

enum {
    KEYS = 5,
    JOBS_MAX = 64,
    STEPS = 4000,
    SEEDS = 12
};

#define MS_NS UINT64_C(1000000)

typedef struct random_run {
    sl_destinations *all;
    sl_destination_rules rules;
    dice d;
    uint64_t seed, step, now_ns;
    sl_job *waiting[JOBS_MAX], *running[JOBS_MAX];
    size_t waiting_count, running_count;
    uint32_t running_of[KEYS];
    uint64_t begun_ns[KEYS]; /* the last begin; 0: none */
    uint64_t added;
    bool is_draining;
} random_run;

static size_t key_of(const sl_job *job)
{
    return (size_t)(job->message.type.data[0] - 'a');
}

static void forget(sl_job **jobs, size_t *count, const sl_job *job)
{
    size_t at = 0;

    while (at < *count && jobs[at] != job)
        at++;
    assert_true(at < *count); /* it was given out once already, or never added */
    jobs[at] = jobs[--*count];
}

static void add_one(random_run *r)
{
    const char type[2] = { (char)('a' + (int)dice_pick(&r->d, KEYS)), '\0' };
    sl_job *const job = sl_job_new(&(sl_job_message){ .type = sl_str_from(type), .revision = ++r->added });

    sl_list_init(&job->line);
    EXPECT_OK(sl_destinations_add(r->all, job));
    r->waiting[r->waiting_count++] = job;
}

static void drop_kept(random_run *r, sl_list *keeps)
{
    EXPECT_RUN(sl_list_empty(keeps) || r->is_draining, r->seed, r->step);
    SL_LIST_EACH_SAFE (node, keeps) {
        sl_job *const job = SL_CONTAINER_OF(node, sl_job, line);

        sl_list_remove(node);
        forget(r->waiting, &r->waiting_count, job);
        sl_job_free(job);
    }
}

/* With one at a time, none of its key that waits may be older. */
static void check_begin(random_run *r, const sl_job *job)
{
    const size_t key = key_of(job);

    EXPECT_RUN(r->rules.concurrent_max == 0 || r->running_of[key] < r->rules.concurrent_max, r->seed,
               r->step);
    EXPECT_RUN(r->begun_ns[key] == 0 || r->now_ns >= r->begun_ns[key] + r->rules.interval_ns, r->seed,
               r->step);
    for (size_t i = 0; i < r->waiting_count; i++)
        EXPECT_RUN(key_of(r->waiting[i]) != key || r->waiting[i]->message.revision > job->message.revision,
                   r->seed, r->step);
}

static void take_one(random_run *r)
{
    uint64_t wake_ns = 0;
    sl_job *job;
    sl_list keeps;

    sl_list_init(&keeps);
    job = sl_destinations_take(r->all, r->now_ns, dice_pick(&r->d, 4) == 0 ? NULL : &keeps, &wake_ns);
    drop_kept(r, &keeps);
    if (job == NULL) {
        EXPECT_RUN(wake_ns > r->now_ns, r->seed, r->step); /* otherwise the worker would not sleep */
        return;
    }
    forget(r->waiting, &r->waiting_count, job);
    check_begin(r, job);
    if (dice_pick(&r->d, 8) == 0) {
        sl_destinations_put_back(r->all, job);
        r->waiting[r->waiting_count++] = job;
        return;
    }
    r->begun_ns[key_of(job)] = r->now_ns;
    r->running_of[key_of(job)]++;
    r->running[r->running_count++] = job;
}

static void end_one(random_run *r, sl_destination_result result)
{
    sl_job *const job = r->running[dice_pick(&r->d, r->running_count)];

    forget(r->running, &r->running_count, job);
    r->running_of[key_of(job)]--;
    sl_destinations_ended(r->all, job, result, dice_pick(&r->d, 6) == 0 ? 20 * MS_NS : 0, r->now_ns);
    sl_job_free(job);
}

static void remove_one(random_run *r)
{
    sl_job *const job = r->waiting[dice_pick(&r->d, r->waiting_count)];

    forget(r->waiting, &r->waiting_count, job);
    sl_destinations_remove(r->all, job);
    sl_job_free(job);
}

static void turn_drain(random_run *r)
{
    r->is_draining = !r->is_draining;
    if (r->is_draining)
        sl_destinations_drain(r->all, r->now_ns + dice_pick(&r->d, 60) * MS_NS);
    else
        sl_destinations_drain_end(r->all);
}

static void one_step(random_run *r)
{
    const size_t what = dice_pick(&r->d, 100);

    if (what < 30 && r->waiting_count + r->running_count < JOBS_MAX)
        add_one(r);
    else if (what < 60)
        take_one(r);
    else if (what < 80 && r->running_count > 0)
        end_one(r, (sl_destination_result)dice_pick(&r->d, 3));
    else if (what < 84 && r->waiting_count > 0)
        remove_one(r);
    else if (what < 85)
        turn_drain(r);
    else
        r->now_ns += dice_pick(&r->d, 5) * MS_NS;
}

/* At the end everything that is left comes out, if one waits for long enough and the destination works. */
static void come_to_an_end(random_run *r)
{
    if (r->is_draining)
        turn_drain(r);
    for (int i = 0; i < 100000 && r->waiting_count + r->running_count > 0; i++) {
        if (r->running_count > 0)
            end_one(r, SL_DESTINATION_WORKED);
        take_one(r);
        r->now_ns += 10 * MS_NS;
    }
    EXPECT_RUN(r->waiting_count + r->running_count == 0, r->seed, r->step);
}

TEST(each_job_comes_out_of_its_destination_once_and_no_rule_is_broken_on_the_way)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        random_run r = { .seed = seed, .d = dice_from(seed), .now_ns = 1000 * MS_NS };

        r.rules = (sl_destination_rules){ .key = SL_KEY_TYPE,
                                          .has_breaker = seed % 2 == 0,
                                          .breaker = { 2, 2, 20 * MS_NS, 50 * MS_NS, 10 * MS_NS },
                                          .interval_ns = seed % 3 == 0 ? 0 : 7 * MS_NS,
                                          .concurrent_max = (uint32_t)(seed % 4) };
        EXPECT_OK(sl_destinations_new(&r.rules, &r.all));
        for (r.step = 0; r.step < STEPS; r.step++)
            one_step(&r);
        come_to_an_end(&r);
        sl_destinations_free(r.all);
    }
}
