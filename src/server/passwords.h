/* server/passwords.h — Argon2id, which is slow on purpose, in a thread of its own.
 *
 *      verify, hash --> a queue of at most SL_PASSWORD_JOBS_MAX --> the thread --> wake() --> sl_passwords_turn() --> fn()
 *
 * One thread: a hash takes 64 MiB and some fifty milliseconds of one core, and strangers decide how many are
 * wanted. So one core and that memory is all that a flood of log-ins can take, and the queue is what it can fill.
 *
 * Passwords are copied into a job and wiped from it as soon as they are used, and when the job is given up.
 * Everything but the thread itself belongs to the caller's thread. */
#ifndef SL_SERVER_PASSWORDS_H
#define SL_SERVER_PASSWORDS_H

#include "base/alloc.h"
#include "base/str.h"

enum {
    SL_PASSWORD_JOBS_MAX = 64,    /* the last of them waits some three seconds, less than clients do */
    SL_PASSWORD_HASH_BYTES = 128, /* with its closing zero */
};

typedef struct sl_passwords sl_passwords;
typedef struct sl_password_job sl_password_job;

/* wake may be NULL; it is called by the thread. SL_OK, SL_ERR_NOMEM, or SL_ERR_IO when there is no thread or no
 * randomness. */
sl_err sl_passwords_new(const sl_alloc *alloc, void (*wake)(void *ctx), void *wake_ctx,
                        sl_passwords **ret_passwords);

/* Jobs that are not done are dropped without an answer. Waits for the one that is being computed. NULL is allowed. */
void sl_passwords_free(sl_passwords *passwords);

/* For who must not wait, because a hash that somebody else wrote may take seconds. First stop: no job is begun any more. Is one
 * still being computed? Then leave, instead of free, returns at once: the thread frees everything when it is done, so the
 * allocator must stay until the process ends. */
void sl_passwords_stop(sl_passwords *passwords);
bool sl_passwords_busy(sl_passwords *passwords);
void sl_passwords_leave(sl_passwords *passwords);

typedef enum sl_password_outcome {
    SL_PASSWORD_RIGHT, /* or: the hash was made */
    SL_PASSWORD_WRONG,
    SL_PASSWORD_FAILED, /* no memory for a hash: nothing is known about the password */
} sl_password_outcome;

/* hash: what was made, or what was compared with; good during the call. */
typedef void sl_password_fn(void *ctx, sl_password_outcome outcome, sl_str hash);

/* Does the password belong to the hash? An empty hash means a user that does not exist: it costs the same time and
 * is always WRONG. *ret_job is good until fn was called.
 *   SL_OK
 *   SL_ERR_FULL        so many wait already
 *   SL_ERR_TOO_LARGE   longer than a password can be
 *   SL_ERR_NOMEM */
sl_err sl_passwords_verify(sl_passwords *passwords, sl_str password, sl_str hash, sl_password_fn *fn,
                           void *ctx, sl_password_job **ret_job);

/* A new hash of the password; the same errors. */
sl_err sl_passwords_hash(sl_passwords *passwords, sl_str password, sl_password_fn *fn, void *ctx,
                         sl_password_job **ret_job);

/* fn is not called any more. */
void sl_passwords_cancel(sl_passwords *passwords, sl_password_job *job);

/* Calls back for everything that is done. Callbacks may begin and cancel jobs. */
void sl_passwords_turn(sl_passwords *passwords);

/* --- without a thread --- */

/* For a program that has nothing else to do. SL_OK, SL_ERR_NOMEM, SL_ERR_IO. */
sl_err sl_password_hash_now(sl_str password, char hash[SL_PASSWORD_HASH_BYTES]);

/* Is this a hash that can be checked, and in reasonable time? One that somebody wrote by hand must not occupy the
 * thread for a week. */
bool sl_password_hash_valid(sl_str hash);

/* Overwrites a secret in memory that is ours, also where we only have a view of it. */
void sl_password_wipe(sl_str secret);

#endif
