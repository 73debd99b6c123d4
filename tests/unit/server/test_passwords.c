/* Hashes in a helper thread, and the log-ins that are remembered. */
#include "test.h"

#include "base/support.h"
#include "server/auth.h"
#include "server/passwords.h"
#include "server/remembered.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sodium.h>

#define SECRET SL_STR("correct horse")

/* Four passes more than a real one; of no password. */
#define EXPENSIVE_HASH                                                                                       \
    "$argon2id$v=19$m=65536,t=6,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/+KOFF915tl+SOfTNM"

typedef struct lab {
    sl_passwords *passwords;
    sem_t done;
} lab;

typedef struct seen {
    int calls;
    sl_password_outcome outcome;
    char hash[SL_PASSWORD_HASH_BYTES];
} seen;

static void post(void *ctx)
{
    sem_post(&((lab *)ctx)->done);
}

static void lab_open(lab *l)
{
    sem_init(&l->done, 0, 0);
    EXPECT_OK(sl_passwords_new(&sl_alloc_default, post, l, &l->passwords));
}

static void lab_close(lab *l)
{
    sl_passwords_free(l->passwords);
    sem_destroy(&l->done);
}

static void note(void *ctx, sl_password_outcome outcome, sl_str hash)
{
    seen *const s = ctx;

    s->calls++;
    s->outcome = outcome;
    EXPECT(hash.bytes < sizeof s->hash);
    memcpy(s->hash, hash.data, hash.bytes);
}

static void lab_wait(lab *l, const seen *s)
{
    while (s->calls == 0) {
        EXPECT_EQ(sem_wait(&l->done), 0);
        sl_passwords_turn(l->passwords);
    }
}

static sl_password_outcome verify(lab *l, sl_str password, const char *hash)
{
    sl_password_job *job;
    seen s = { 0 };

    EXPECT_OK(sl_passwords_verify(l->passwords, password, sl_str_from(hash), note, &s, &job));
    lab_wait(l, &s);
    return s.outcome;
}

TEST(passwords_are_hashed_and_verified_in_the_thread)
{
    sl_password_job *job;
    seen s = { 0 };
    lab l;

    lab_open(&l);
    EXPECT_OK(sl_passwords_hash(l.passwords, SECRET, note, &s, &job));
    EXPECT_EQ(s.calls, 0); /* never from inside */
    lab_wait(&l, &s);
    EXPECT_EQ(s.outcome, SL_PASSWORD_RIGHT);
    EXPECT(sl_password_hash_valid(sl_str_from(s.hash)));
    EXPECT(sl_str_starts_with(sl_str_from(s.hash), SL_STR("$argon2id$")));
    EXPECT_EQ(verify(&l, SECRET, s.hash), SL_PASSWORD_RIGHT);
    EXPECT_EQ(verify(&l, SL_STR("correct horsf"), s.hash), SL_PASSWORD_WRONG);
    EXPECT_EQ(verify(&l, SL_STR(""), s.hash), SL_PASSWORD_WRONG);
    EXPECT_EQ(verify(&l, SECRET, "$argon2id$v=19$m=65536,t=2,p=1$no"), SL_PASSWORD_FAILED);
    lab_close(&l);
}

/* WRONG and not FAILED: it was compared with a hash, one that is as expensive as a user's. */
TEST(passwords_of_nobody_cost_a_comparison_and_are_wrong)
{
    lab l;

    lab_open(&l);
    EXPECT_EQ(verify(&l, SECRET, ""), SL_PASSWORD_WRONG);
    EXPECT_EQ(verify(&l, SL_STR(""), ""), SL_PASSWORD_WRONG);
    lab_close(&l);
}

static void expect_hash_like_ours(void *ctx, sl_password_outcome outcome, sl_str hash)
{
    seen *const s = ctx;
    char text[SL_PASSWORD_HASH_BYTES] = { 0 };

    (void)outcome;
    memcpy(text, hash.data, hash.bytes);
    EXPECT_EQ(crypto_pwhash_str_needs_rehash(text, crypto_pwhash_OPSLIMIT_INTERACTIVE,
                                             crypto_pwhash_MEMLIMIT_INTERACTIVE),
              0);
    s->calls++;
}

TEST(passwords_of_nobody_are_compared_at_the_price_of_a_new_hash)
{
    sl_password_job *job;
    seen s = { 0 };
    lab l;

    lab_open(&l);
    EXPECT_OK(sl_passwords_verify(l.passwords, SECRET, SL_STR(""), expect_hash_like_ours, &s, &job));
    lab_wait(&l, &s);
    lab_close(&l);
}

TEST(passwords_wait_in_a_bounded_queue)
{
    sl_password_job *jobs[SL_PASSWORD_JOBS_MAX], *one_more;
    char long_one[SL_PASSWORD_BYTES_MAX + 1];
    seen s = { 0 };
    lab l;

    lab_open(&l);
    for (int i = 0; i < SL_PASSWORD_JOBS_MAX; i++)
        EXPECT_OK(sl_passwords_hash(l.passwords, SECRET, note, &s, &jobs[i]));
    EXPECT_ERR(sl_passwords_hash(l.passwords, SECRET, note, &s, &one_more), SL_ERR_FULL);
    EXPECT_ERR(sl_passwords_verify(l.passwords, SECRET, SL_STR(""), note, &s, &one_more), SL_ERR_FULL);
    sl_passwords_cancel(l.passwords, jobs[SL_PASSWORD_JOBS_MAX - 1]); /* cannot have begun yet */
    EXPECT_OK(sl_passwords_hash(l.passwords, SECRET, note, &s, &one_more));
    memset(long_one, 'x', sizeof long_one);
    EXPECT_ERR(sl_passwords_hash(l.passwords, (sl_str){ long_one, sizeof long_one }, note, &s, &one_more),
               SL_ERR_TOO_LARGE);
    lab_close(&l); /* with all of them inside */
    EXPECT_EQ(s.calls, 0);
}

TEST(passwords_that_were_cancelled_are_not_answered_wherever_they_are)
{
    sl_password_job *first, *second, *third;
    seen one = { 0 }, two = { 0 }, three = { 0 };
    lab l;

    lab_open(&l);
    EXPECT_OK(sl_passwords_hash(l.passwords, SECRET, note, &one, &first));
    EXPECT_OK(sl_passwords_hash(l.passwords, SECRET, note, &two, &second));
    EXPECT_OK(sl_passwords_hash(l.passwords, SECRET, note, &three, &third));
    EXPECT_EQ(sem_wait(&l.done), 0);
    sl_passwords_cancel(l.passwords, first);  /* done, not taken */
    sl_passwords_cancel(l.passwords, second); /* queued, running or done */
    lab_wait(&l, &three);
    EXPECT_EQ(one.calls, 0);
    EXPECT_EQ(two.calls, 0);
    EXPECT_EQ(three.calls, 1);
    lab_close(&l);
}

/* Who gives the last block back, and when. */
typedef struct watched {
    size_t blocks;
    pthread_t last;
    sem_t empty;
} watched;

static void *resize_watched(void *ctx, void *memory, size_t old_bytes, size_t new_bytes)
{
    watched *const w = ctx;

    if (memory == NULL)
        w->blocks++;
    if (new_bytes == 0 && --w->blocks == 0) {
        w->last = pthread_self();
        sem_post(&w->empty);
    }
    return sl_alloc_default.resize(NULL, memory, old_bytes, new_bytes);
}

/* True: it was left while it computed. False: the job was over too early to see that. */
static bool leave_busy(watched *w)
{
    const sl_alloc alloc = { .ctx = w, .resize = resize_watched };
    sl_password_job *job;
    seen s = { 0 };
    bool was_busy;
    lab l;

    sem_init(&l.done, 0, 0);
    EXPECT_OK(sl_passwords_new(&alloc, post, &l, &l.passwords));
    EXPECT_OK(sl_passwords_verify(l.passwords, SECRET, SL_STR(EXPENSIVE_HASH), note, &s, &job));
    while (!(was_busy = sl_passwords_busy(l.passwords)) && sem_trywait(&l.done) != 0)
        sched_yield();
    sl_passwords_cancel(l.passwords, job);
    sl_passwords_leave(l.passwords); /* and what it would wake may go */
    sem_destroy(&l.done);
    EXPECT_EQ(sem_wait(&w->empty), 0);
    EXPECT_EQ(s.calls, 0);
    return was_busy && !pthread_equal(w->last, pthread_self());
}

/* S3.24: nobody waits for a hash. The thread has the last word then, so it is the one that cleans up. */
TEST(a_thread_that_is_left_while_it_computes_is_not_waited_for_and_cleans_up)
{
    bool was_left = false;
    watched w = { 0 };

    sem_init(&w.empty, 0, 0);
    for (int i = 0; i < 20 && !was_left; i++)
        was_left = leave_busy(&w);
    EXPECT(was_left);
    sem_destroy(&w.empty);
}

TEST(a_thread_that_was_stopped_begins_nothing_more)
{
    sl_password_job *job;
    seen s = { 0 };
    lab l;

    lab_open(&l);
    sl_passwords_stop(l.passwords);
    EXPECT_OK(sl_passwords_hash(l.passwords, SECRET, note, &s, &job));
    EXPECT(!sl_passwords_busy(l.passwords));
    sl_passwords_leave(l.passwords); /* has nothing to do: ended and freed at once */
    EXPECT_EQ(s.calls, 0);
    EXPECT(sem_trywait(&l.done) != 0);
    sem_destroy(&l.done);
}

TEST(passwords_survive_without_memory)
{
    test_alloc failing = { 0 };
    const sl_alloc alloc = test_alloc_use(&failing);
    sl_passwords *passwords = NULL;
    sl_password_job *job;
    seen s = { 0 };

    failing.fail_at = 1;
    EXPECT_ERR(sl_passwords_new(&alloc, NULL, NULL, &passwords), SL_ERR_NOMEM);
    failing.fail_at = 0;
    EXPECT_OK(sl_passwords_new(&alloc, NULL, NULL, &passwords));
    failing.fail_at = failing.call_count + 1;
    EXPECT_ERR(sl_passwords_hash(passwords, SECRET, note, &s, &job), SL_ERR_NOMEM);
    sl_passwords_free(passwords);
    EXPECT_EQ(failing.block_count, 0);
}

TEST(password_hashes_that_would_take_for_ever_are_not_valid)
{
    static const struct {
        const char *hash;
        bool valid;
    } rows[] = {
        { "$argon2id$v=19$m=65536,t=2,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/+KOFF915tl+SOfTNM",
          true },
        { "$argon2id$v=19$m=262144,t=10,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/"
          "+KOFF915tl+SOfTNM",
          true },
        { "$argon2id$v=19$m=262145,t=2,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/"
          "+KOFF915tl+SOfTNM",
          false },
        { "$argon2id$v=19$m=65536,t=11,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/"
          "+KOFF915tl+SOfTNM",
          false },
        { "$argon2id$v=19$m=65536,t=4294967295,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/"
          "+KOFF915tl",
          false },
        { "$argon2id$v=19$m=65536,t=2,p=1$xT3Nod2qELB7cGr6gi/GFQ$Zvm*", false },
        { "$argon2id$v=19$m=65536,t=2,p=1$", false },
        { "$argon2i$v=19$m=65536,t=2,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/+KOFF915tl+SOfTNM",
          false },
        { "$argon2id$v=19$t=2,m=65536,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/+KOFF915tl+SOfTNM",
          false },
        { "$argon2id$v=19$m=65536", false },
        { "changeit", false },
        { "", false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_ROW(sl_password_hash_valid(sl_str_from(rows[i].hash)) == rows[i].valid, i);
}

/* --- remembered --- */

static sl_remembered *remembered_new(void)
{
    sl_remembered *const remembered = malloc(sizeof *remembered);

    assert_non_null(remembered);
    EXPECT(sodium_init() >= 0);
    sl_remembered_init(remembered);
    return remembered;
}

TEST(remembered_log_ins_count_for_the_same_words_generation_and_time_only)
{
    sl_remembered *const r = remembered_new();
    const sl_login_digest ada = sl_remembered_digest(r, SL_STR("ada"), SECRET, SL_STR(""));
    const sl_login_digest others[] = {
        sl_remembered_digest(r, SL_STR("bob"), SECRET, SL_STR("")),
        sl_remembered_digest(r, SL_STR("ada"), SL_STR("correct hors"), SL_STR("")),
        sl_remembered_digest(r, SL_STR("adac"), SL_STR("orrect horse"),
                             SL_STR("")), /* the same bytes in a row */
        sl_remembered_digest(r, SL_STR("ada"), SECRET, SL_STR("127.0.0.1:1")),
    };

    EXPECT_EQ(sl_remembered_ends_ns(r, &ada, 7, 0), 0);
    sl_remembered_add(r, &ada, 7, 100);
    EXPECT_EQ(sl_remembered_ends_ns(r, &ada, 7, 99), 100);
    EXPECT_EQ(sl_remembered_ends_ns(r, &ada, 7, 100), 0);
    EXPECT_EQ(sl_remembered_ends_ns(r, &ada, 8, 0), 0); /* the user has changed */
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        EXPECT_ROW(sl_remembered_ends_ns(r, &others[i], 7, 0) == 0, i);
    sl_remembered_add(r, &ada, 8, 200); /* again: one entry */
    EXPECT_EQ(sl_remembered_ends_ns(r, &ada, 8, 0), 200);
    EXPECT_EQ(sl_remembered_ends_ns(r, &ada, 7, 0), 0);
    EXPECT_EQ(r->map.count, 1);
    sl_remembered_done(r);
    free(r);
}

TEST(remembered_log_ins_are_bounded_and_the_oldest_go_first)
{
    sl_remembered *const r = remembered_new();
    sl_login_digest digest, first, second;
    char password[32];

    for (int i = 0; i <= SL_REMEMBERED_MAX; i++) {
        (void)snprintf(password, sizeof password, "password %d", i);
        digest = sl_remembered_digest(r, SL_STR("ada"), sl_str_from(password), SL_STR(""));
        first = i == 0 ? digest : first;
        second = i == 1 ? digest : second;
        sl_remembered_add(r, &digest, 1, 1000);
    }
    EXPECT_EQ(r->map.count, SL_REMEMBERED_MAX);
    EXPECT_EQ(sl_remembered_ends_ns(r, &first, 1, 0), 0);
    EXPECT_EQ(sl_remembered_ends_ns(r, &second, 1, 0), 1000);
    EXPECT_EQ(sl_remembered_ends_ns(r, &digest, 1, 0), 1000);
    sl_remembered_done(r);
    free(r);
}

TEST(remembered_log_ins_of_another_process_mean_nothing)
{
    sl_remembered *const here = remembered_new(), *const there = remembered_new();
    const sl_login_digest a = sl_remembered_digest(here, SL_STR("ada"), SECRET, SL_STR(""));
    const sl_login_digest b = sl_remembered_digest(there, SL_STR("ada"), SECRET, SL_STR(""));

    EXPECT(!sl_login_digest_equal(&a, &b));
    free(here);
    free(there);
}
