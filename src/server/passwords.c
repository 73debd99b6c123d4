/* server/passwords.c — the queue, the thread, and the way back.
 *
 * A job is in one of three places, and only one side may touch it there: queued (both sides, under the lock),
 * running (the thread alone), done (under the lock until the caller's thread has taken it out). `fn` and `ctx` are
 * never looked at by the thread, so cancelling a running job only has to clear them.
 *
 * Who frees it all is decided under the lock as well: the thread when it was left with a job, else its owner. */
#include "server/passwords.h"

#include "base/list.h"
#include "server/auth.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>

enum {
    HASH_MEMORY_KIB_MAX = 256 * 1024, /* ours has 64 MiB; what others wrote may be four times as expensive */
    HASH_PASSES_MAX = 10,
};

/* Compared with when there is no such user: as expensive as a hash of ours, from random bits, of no password. */
#define NOBODYS_HASH                                                                                         \
    "$argon2id$v=19$m=65536,t=2,p=1$xT3Nod2qELB7cGr6gi/GFQ$ZvmLmgO6kc9jCvb2XePVhKw5u/+KOFF915tl+SOfTNM"

typedef enum job_kind {
    JOB_VERIFY,
    JOB_VERIFY_NOBODY,
    JOB_HASH,
} job_kind;

typedef enum job_place {
    PLACE_QUEUED,
    PLACE_RUNNING,
    PLACE_DONE,
} job_place;

struct sl_password_job {
    sl_list node;
    job_kind kind;
    job_place place; /* under the lock */
    sl_password_outcome outcome;
    sl_password_fn *fn; /* NULL: cancelled */
    void *ctx;
    size_t password_bytes;
    char password[SL_PASSWORD_BYTES_MAX];
    char hash[SL_PASSWORD_HASH_BYTES];
};

struct sl_passwords {
    const sl_alloc *alloc;
    void (*wake)(void *ctx);
    void *wake_ctx;
    size_t job_count; /* that were not answered; the thread's when it was left */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* under the mutex */
    sl_list queued, done;
    bool stopping;
    bool is_computing;
    bool is_left; /* by its owner: wake_ctx may be gone */
};

_Static_assert(SL_PASSWORD_HASH_BYTES == crypto_pwhash_STRBYTES, "as libsodium wants it");

/* --- hashing --- */

static sl_password_outcome make_hash(sl_str password, char hash[SL_PASSWORD_HASH_BYTES])
{
    const int failed =
        crypto_pwhash_str(hash, password.data, password.bytes, crypto_pwhash_OPSLIMIT_INTERACTIVE,
                          crypto_pwhash_MEMLIMIT_INTERACTIVE);

    return failed ? SL_PASSWORD_FAILED : SL_PASSWORD_RIGHT;
}

/* libsodium tells a wrong password from a lack of memory only by errno. */
static sl_password_outcome compare(sl_str password, const char *hash)
{
    errno = 0;
    if (crypto_pwhash_str_verify(hash, password.data, password.bytes) == 0)
        return SL_PASSWORD_RIGHT;
    return errno == EINVAL ? SL_PASSWORD_WRONG : SL_PASSWORD_FAILED;
}

static void work(sl_password_job *job)
{
    const sl_str password = { job->password, job->password_bytes };

    switch (job->kind) {
    case JOB_VERIFY: job->outcome = compare(password, job->hash); break;
    case JOB_VERIFY_NOBODY:
        job->outcome =
            compare(password, job->hash) == SL_PASSWORD_FAILED ? SL_PASSWORD_FAILED : SL_PASSWORD_WRONG;
        break;
    case JOB_HASH: job->outcome = make_hash(password, job->hash); break;
    }
    sodium_memzero(job->password, sizeof job->password);
}

sl_err sl_password_hash_now(sl_str password, char hash[SL_PASSWORD_HASH_BYTES])
{
    if (sodium_init() < 0)
        return SL_ERR_IO;
    return make_hash(password, hash) == SL_PASSWORD_RIGHT ? SL_OK : SL_ERR_NOMEM;
}

/* "NAME=NUMBER" up to `end`, which is skipped. */
static bool take_number(sl_str *text, sl_str name, char end, uint64_t *ret_number)
{
    sl_str number, rest;

    if (!sl_str_starts_with(*text, name))
        return false;
    number = (sl_str){ text->data + name.bytes, text->bytes - name.bytes };
    if (!sl_str_cut(number, end, &number, &rest))
        return false;
    *text = rest;
    return sl_str_parse_u64(number, ret_number) == SL_OK;
}

bool sl_password_hash_valid(sl_str hash)
{
    char text[SL_PASSWORD_HASH_BYTES] = { 0 };
    sl_str rest = hash;
    uint64_t version, memory_kib, passes;

    if (hash.bytes == 0 || hash.bytes >= sizeof text)
        return false;
    if (!take_number(&rest, SL_STR("$argon2id$v="), '$', &version) ||
        !take_number(&rest, SL_STR("m="), ',', &memory_kib) ||
        !take_number(&rest, SL_STR("t="), ',', &passes))
        return false;
    if (memory_kib > HASH_MEMORY_KIB_MAX || passes > HASH_PASSES_MAX)
        return false;
    memcpy(text, hash.data, hash.bytes);
    return strlen(text) == hash.bytes &&
           crypto_pwhash_str_needs_rehash(text, crypto_pwhash_OPSLIMIT_INTERACTIVE,
                                          crypto_pwhash_MEMLIMIT_INTERACTIVE) >= 0;
}

void sl_password_wipe(sl_str secret)
{
    if (secret.bytes > 0)
        sodium_memzero((void *)(uintptr_t)secret.data, secret.bytes);
}

/* --- memory --- */

static void free_job(sl_passwords *passwords, sl_password_job *job)
{
    sodium_memzero(job, sizeof *job);
    sl_alloc_give(passwords->alloc, job, sizeof *job);
    passwords->job_count--;
}

static void free_jobs(sl_passwords *passwords, sl_list *jobs)
{
    while (!sl_list_empty(jobs)) {
        sl_list *const node = sl_list_first(jobs);

        sl_list_remove(node);
        free_job(passwords, SL_CONTAINER_OF(node, sl_password_job, node));
    }
}

/* By the last one who has it. */
static void free_all(sl_passwords *passwords)
{
    free_jobs(passwords, &passwords->queued);
    free_jobs(passwords, &passwords->done);
    assert(passwords->job_count == 0);
    pthread_cond_destroy(&passwords->changed);
    pthread_mutex_destroy(&passwords->mutex);
    sl_alloc_give(passwords->alloc, passwords, sizeof *passwords);
}

/* --- the thread --- */

/* The next job, NULL at the end. Called and left with the lock held. */
static sl_password_job *wait_for_job(sl_passwords *passwords)
{
    sl_password_job *job;

    while (!passwords->stopping && sl_list_empty(&passwords->queued))
        pthread_cond_wait(&passwords->changed, &passwords->mutex);
    if (passwords->stopping)
        return NULL;
    job = SL_CONTAINER_OF(sl_list_first(&passwords->queued), sl_password_job, node);
    sl_list_remove(&job->node);
    job->place = PLACE_RUNNING;
    passwords->is_computing = true;
    return job;
}

/* With the lock held, so that nobody is woken after he has left. */
static void wake_owner(const sl_passwords *passwords)
{
    if (passwords->wake != NULL && !passwords->is_left)
        passwords->wake(passwords->wake_ctx);
}

static void *thread_main(void *ctx)
{
    sl_passwords *const passwords = ctx;
    sl_password_job *job;
    bool is_left;

    pthread_mutex_lock(&passwords->mutex);
    while ((job = wait_for_job(passwords)) != NULL) {
        pthread_mutex_unlock(&passwords->mutex);
        work(job);
        pthread_mutex_lock(&passwords->mutex);
        job->place = PLACE_DONE;
        sl_list_push_back(&passwords->done, &job->node);
        passwords->is_computing = false;
        wake_owner(passwords);
    }
    is_left = passwords->is_left;
    pthread_mutex_unlock(&passwords->mutex);
    if (is_left)
        free_all(passwords);
    return NULL;
}

/* Signals are for the loop: a thread that is started with all of them blocked gets none. */
static int start_thread(sl_passwords *passwords)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&passwords->thread, NULL, thread_main, passwords);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* --- beginning and end --- */

sl_err sl_passwords_new(const sl_alloc *alloc, void (*wake)(void *ctx), void *wake_ctx,
                        sl_passwords **ret_passwords)
{
    sl_passwords *const passwords = sodium_init() < 0 ? NULL : sl_alloc_take(alloc, sizeof *passwords);

    if (passwords == NULL)
        return sodium_init() < 0 ? SL_ERR_IO : SL_ERR_NOMEM;
    *passwords = (sl_passwords){ .alloc = alloc, .wake = wake, .wake_ctx = wake_ctx };
    sl_list_init(&passwords->queued);
    sl_list_init(&passwords->done);
    pthread_mutex_init(&passwords->mutex, NULL);
    pthread_cond_init(&passwords->changed, NULL);
    if (start_thread(passwords) != 0) {
        pthread_cond_destroy(&passwords->changed);
        pthread_mutex_destroy(&passwords->mutex);
        sl_alloc_give(alloc, passwords, sizeof *passwords);
        return SL_ERR_IO;
    }
    *ret_passwords = passwords;
    return SL_OK;
}

void sl_passwords_stop(sl_passwords *passwords)
{
    pthread_mutex_lock(&passwords->mutex);
    passwords->stopping = true;
    pthread_cond_signal(&passwords->changed);
    pthread_mutex_unlock(&passwords->mutex);
}

bool sl_passwords_busy(sl_passwords *passwords)
{
    bool is_computing;

    pthread_mutex_lock(&passwords->mutex);
    is_computing = passwords->is_computing;
    pthread_mutex_unlock(&passwords->mutex);
    return is_computing;
}

void sl_passwords_free(sl_passwords *passwords)
{
    if (passwords == NULL)
        return;
    sl_passwords_stop(passwords);
    pthread_join(passwords->thread, NULL);
    free_all(passwords);
}

void sl_passwords_leave(sl_passwords *passwords)
{
    bool is_left;

    pthread_mutex_lock(&passwords->mutex);
    passwords->stopping = true;
    is_left = passwords->is_left = passwords->is_computing;
    if (is_left)
        (void)pthread_detach(passwords->thread);
    pthread_mutex_unlock(&passwords->mutex);
    if (!is_left)
        sl_passwords_free(passwords); /* it has nothing to do, and ends at once */
}

/* --- jobs --- */

static sl_err new_job(sl_passwords *passwords, job_kind kind, sl_str password, sl_password_job **ret_job)
{
    sl_password_job *job;

    if (password.bytes > SL_PASSWORD_BYTES_MAX)
        return SL_ERR_TOO_LARGE;
    if (passwords->job_count >= SL_PASSWORD_JOBS_MAX)
        return SL_ERR_FULL;
    job = sl_alloc_take(passwords->alloc, sizeof *job);
    if (job == NULL)
        return SL_ERR_NOMEM;
    memset(job, 0, sizeof *job);
    job->kind = kind;
    job->password_bytes = password.bytes;
    if (password.bytes > 0)
        memcpy(job->password, password.data, password.bytes);
    passwords->job_count++;
    *ret_job = job;
    return SL_OK;
}

static void submit(sl_passwords *passwords, sl_password_job *job, sl_password_fn *fn, void *ctx)
{
    job->fn = fn;
    job->ctx = ctx;
    pthread_mutex_lock(&passwords->mutex);
    sl_list_push_back(&passwords->queued, &job->node);
    pthread_cond_signal(&passwords->changed);
    pthread_mutex_unlock(&passwords->mutex);
}

sl_err sl_passwords_verify(sl_passwords *passwords, sl_str password, sl_str hash, sl_password_fn *fn,
                           void *ctx, sl_password_job **ret_job)
{
    const bool nobody = hash.bytes == 0;
    const sl_str compared = nobody ? SL_STR(NOBODYS_HASH) : hash;
    sl_password_job *job;
    const sl_err err = new_job(passwords, nobody ? JOB_VERIFY_NOBODY : JOB_VERIFY, password, &job);

    if (err != SL_OK)
        return err;
    assert(compared.bytes < sizeof job->hash);
    memcpy(job->hash, compared.data, compared.bytes);
    *ret_job = job;
    submit(passwords, job, fn, ctx);
    return SL_OK;
}

sl_err sl_passwords_hash(sl_passwords *passwords, sl_str password, sl_password_fn *fn, void *ctx,
                         sl_password_job **ret_job)
{
    sl_password_job *job;
    const sl_err err = new_job(passwords, JOB_HASH, password, &job);

    if (err != SL_OK)
        return err;
    *ret_job = job;
    submit(passwords, job, fn, ctx);
    return SL_OK;
}

void sl_passwords_cancel(sl_passwords *passwords, sl_password_job *job)
{
    bool queued;

    pthread_mutex_lock(&passwords->mutex);
    queued = job->place == PLACE_QUEUED;
    if (queued)
        sl_list_remove(&job->node);
    pthread_mutex_unlock(&passwords->mutex);
    job->fn = NULL;
    if (queued)
        free_job(passwords, job);
}

static sl_password_job *take_done(sl_passwords *passwords)
{
    sl_list *node;

    pthread_mutex_lock(&passwords->mutex);
    node = sl_list_first(&passwords->done);
    if (node != NULL)
        sl_list_remove(node);
    pthread_mutex_unlock(&passwords->mutex);
    return node == NULL ? NULL : SL_CONTAINER_OF(node, sl_password_job, node);
}

void sl_passwords_turn(sl_passwords *passwords)
{
    sl_password_job *job;

    while (passwords->job_count > 0 && (job = take_done(passwords)) != NULL) {
        sl_password_fn *const fn = job->fn;

        job->fn = NULL;
        if (fn != NULL)
            fn(job->ctx, job->outcome, sl_str_from(job->hash));
        free_job(passwords, job);
    }
}
