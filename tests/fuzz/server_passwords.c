/* tests/fuzz/server_passwords.c — see server_passwords.h.
 *
 * As with the real thread, the first job of the queue is being computed and can only be disowned, the others can be taken out, and
 * answers come from sl_passwords_turn(). A job that is added by an answer is for the next turn. */
#include "server_passwords.h"

#include "base/list.h"
#include "server/auth.h"
#include "server/passwords.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define HASH_HEAD "$argon2id$v=19$m=65536,t=2,p=1$"

bool fuzz_passwords_held;

struct sl_password_job {
    sl_list node;
    bool verifies;
    sl_password_fn *fn; /* NULL: disowned */
    void *ctx;
    size_t password_bytes;
    char password[SL_PASSWORD_BYTES_MAX];
    char hash[SL_PASSWORD_HASH_BYTES];
};

struct sl_passwords {
    const sl_alloc *alloc;
    void (*wake)(void *ctx);
    void *wake_ctx;
    sl_list jobs;
    size_t job_count;
    bool is_stopping;
    size_t stopping_left; /* jobs that are still answered after the stop: the one that was being computed */
};

/* --- randomness --- */

static uint64_t drawn;

static uint32_t draw(void)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(drawn >> 32);
}

static void draw_bytes(void *const into, const size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)into)[i] = (uint8_t)draw();
}

static const char *name(void)
{
    return "the same each time";
}

void fuzz_randomness_restart(void)
{
    static randombytes_implementation implementation = { .implementation_name = name,
                                                         .random = draw,
                                                         .buf = draw_bytes };

    drawn = 1;
    (void)randombytes_set_implementation(&implementation);
}

/* --- hashes that cost nothing --- */

static sl_password_outcome make_hash(sl_str password, char hash[SL_PASSWORD_HASH_BYTES])
{
    uint64_t sum = UINT64_C(14695981039346656037);

    if (sl_str_equal(password, SL_STR(FUZZ_PASSWORD_OF_NO_MEMORY)))
        return SL_PASSWORD_FAILED;
    for (size_t i = 0; i < password.bytes; i++)
        sum = (sum ^ (uint8_t)password.data[i]) * UINT64_C(1099511628211);
    snprintf(hash, SL_PASSWORD_HASH_BYTES, HASH_HEAD "%022u$%043llx", 0U, (unsigned long long)sum);
    return SL_PASSWORD_RIGHT;
}

static sl_password_outcome compare(sl_str password, const char *hash)
{
    char made[SL_PASSWORD_HASH_BYTES];

    if (make_hash(password, made) != SL_PASSWORD_RIGHT)
        return SL_PASSWORD_FAILED;
    return strcmp(made, hash) == 0 ? SL_PASSWORD_RIGHT : SL_PASSWORD_WRONG;
}

sl_err sl_password_hash_now(sl_str password, char hash[SL_PASSWORD_HASH_BYTES])
{
    return make_hash(password, hash) == SL_PASSWORD_RIGHT ? SL_OK : SL_ERR_NOMEM;
}

bool sl_password_hash_valid(sl_str hash)
{
    return sl_str_starts_with(hash, SL_STR(HASH_HEAD)) && hash.bytes < SL_PASSWORD_HASH_BYTES &&
           memchr(hash.data, 0, hash.bytes) == NULL;
}

void sl_password_wipe(sl_str secret)
{
    if (secret.bytes > 0)
        sodium_memzero((void *)(uintptr_t)secret.data, secret.bytes);
}

/* --- the queue --- */

sl_err sl_passwords_new(const sl_alloc *alloc, void (*wake)(void *ctx), void *wake_ctx,
                        sl_passwords **ret_passwords)
{
    sl_passwords *const passwords = sodium_init() < 0 ? NULL : sl_alloc_take(alloc, sizeof *passwords);

    if (passwords == NULL)
        return SL_ERR_NOMEM;
    *passwords = (sl_passwords){ .alloc = alloc, .wake = wake, .wake_ctx = wake_ctx };
    sl_list_init(&passwords->jobs);
    *ret_passwords = passwords;
    return SL_OK;
}

static void free_job(sl_passwords *passwords, sl_password_job *job)
{
    sl_list_remove(&job->node);
    passwords->job_count--;
    sl_alloc_give(passwords->alloc, job, sizeof *job);
}

static sl_password_job *first_job(sl_passwords *passwords)
{
    return SL_CONTAINER_OF(sl_list_first(&passwords->jobs), sl_password_job, node);
}

void sl_passwords_free(sl_passwords *passwords)
{
    if (passwords == NULL)
        return;
    while (!sl_list_empty(&passwords->jobs))
        free_job(passwords, first_job(passwords));
    assert(passwords->job_count == 0);
    sl_alloc_give(passwords->alloc, passwords, sizeof *passwords);
}

void sl_passwords_stop(sl_passwords *passwords)
{
    if (!passwords->is_stopping)
        passwords->stopping_left = passwords->job_count > 0;
    passwords->is_stopping = true;
}

static size_t jobs_to_answer(const sl_passwords *passwords)
{
    return passwords->is_stopping ? passwords->stopping_left : passwords->job_count;
}

bool sl_passwords_busy(sl_passwords *passwords)
{
    return fuzz_passwords_held && jobs_to_answer(passwords) > 0;
}

/* Who has left does not see when it is freed. */
void sl_passwords_leave(sl_passwords *passwords)
{
    sl_passwords_free(passwords);
}

static sl_err add_job(sl_passwords *passwords, sl_str password, const sl_password_job *wanted,
                      sl_password_job **ret_job)
{
    sl_password_job *job;

    if (password.bytes > SL_PASSWORD_BYTES_MAX)
        return SL_ERR_TOO_LARGE;
    if (passwords->job_count >= SL_PASSWORD_JOBS_MAX)
        return SL_ERR_FULL;
    job = sl_alloc_take(passwords->alloc, sizeof *job);
    if (job == NULL)
        return SL_ERR_NOMEM;
    *job = *wanted;
    job->password_bytes = password.bytes;
    if (password.bytes > 0)
        memcpy(job->password, password.data, password.bytes);
    sl_list_push_back(&passwords->jobs, &job->node);
    passwords->job_count++;
    *ret_job = job;
    if (!fuzz_passwords_held && passwords->wake != NULL)
        passwords->wake(passwords->wake_ctx);
    return SL_OK;
}

sl_err sl_passwords_verify(sl_passwords *passwords, sl_str password, sl_str hash, sl_password_fn *fn,
                           void *ctx, sl_password_job **ret_job)
{
    sl_password_job wanted = { .verifies = true, .fn = fn, .ctx = ctx };

    assert(hash.bytes < sizeof wanted.hash);
    if (hash.bytes > 0)
        memcpy(wanted.hash, hash.data, hash.bytes);
    return add_job(passwords, password, &wanted, ret_job);
}

sl_err sl_passwords_hash(sl_passwords *passwords, sl_str password, sl_password_fn *fn, void *ctx,
                         sl_password_job **ret_job)
{
    const sl_password_job wanted = { .fn = fn, .ctx = ctx };

    return add_job(passwords, password, &wanted, ret_job);
}

void sl_passwords_cancel(sl_passwords *passwords, sl_password_job *job)
{
    job->fn = NULL;
    if (job != first_job(passwords))
        free_job(passwords, job);
}

static void answer(sl_passwords *passwords, sl_password_job *job)
{
    const sl_str password = { job->password, job->password_bytes };
    const sl_password_outcome outcome =
        job->verifies ? compare(password, job->hash) : make_hash(password, job->hash);
    sl_password_fn *const fn = job->fn;

    job->fn = NULL;
    if (fn != NULL)
        fn(job->ctx, outcome, sl_str_from(job->hash));
    free_job(passwords, job);
}

void sl_passwords_turn(sl_passwords *passwords)
{
    if (fuzz_passwords_held)
        return;
    for (size_t left = jobs_to_answer(passwords); left > 0; left--)
        if (!sl_list_empty(&passwords->jobs)) /* an answer may have taken out others */
            answer(passwords, first_job(passwords));
    passwords->stopping_left = 0;
}
