/* server/admin_stop.c — stopping consumers and going on, over HTTP: the only admin pages that change something.
 *
 *      may he? (where the server has users: Basic, and an operator) --> stop or resume --> durable --> wait --> the answer
 *
 * So a question becomes a job that lives until it is answered, or until nobody wants the answer any more. */
#include "server/admin.h"

#include "base/cleanup.h"
#include "server/admin_query.h"
#include "server/auth.h"

#include <cjson/cJSON.h>

#define MS_NS UINT64_C(1000000)

enum {
    ARENA_CHUNK_BYTES = 1024,
    ARENA_BYTES_MAX = 256 * 1024,
};

typedef struct sl_admin_job {
    sl_list node; /* server->admin_jobs */
    sl_server *server;
    sl_host *host;
    sl_pages_answer *answer;
    sl_arena arena; /* texts of `how` */
    sl_operators_stop how;
    bool is_resume;
    bool is_begun; /* from here on ready() is called */
    sl_auth_ticket ticket;
    sl_stop_wait wait;
} sl_admin_job;

/* --- its life --- */

static void job_free(sl_admin_job *job)
{
    sl_auth_cancel(job->host->auth, &job->ticket);
    sl_stop_wait_end(&job->wait);
    sl_arena_done(&job->arena);
    sl_list_remove(&job->node);
    job->server->admin_job_count--;
    sl_alloc_give(job->server->alloc, job, sizeof *job);
}

void sl_admin_give_up(sl_pages_answer *answer)
{
    sl_admin_job *const job = SL_TAKE_PTR(answer->job);

    if (job != NULL)
        job_free(job);
}

/* The answer is made. */
static void finish(sl_admin_job *job)
{
    sl_pages_answer *const answer = job->answer;
    const bool is_late = job->is_begun;

    answer->job = NULL;
    job_free(job);
    if (is_late)
        answer->ready(answer->ready_ctx);
}

static void refuse(sl_admin_job *job, unsigned status, const char *sentence)
{
    sl_pages_refuse(job->answer, status, sentence);
    finish(job);
}

void sl_admin_end_jobs(sl_server *server)
{
    while (server->admin_job_count > 0)
        refuse(SL_CONTAINER_OF(sl_list_first(&server->admin_jobs), sl_admin_job, node), 503,
               "The server ends. Stops that were made stay; nobody knows who is drained.");
}

/* --- what is said at the end --- */

static unsigned status_of(sl_err err)
{
    switch ((int)err) {
    case SL_ERR_NOT_FOUND: return 404;
    case SL_ERR_FULL: return 409;
    case SL_ERR_AGAIN:
    case SL_ERR_DRAINING:
    case SL_ERR_STORE_FAILED: return 503;
    default: return 500;
    }
}

static void add_number(cJSON *to, const char *name, uint32_t value, bool *failed)
{
    *failed = cJSON_AddNumberToObject(to, name, value) == NULL || *failed;
}

static void show(sl_admin_job *job, cJSON *object, bool failed)
{
    sl_pages_show(job->answer, failed ? NULL : object);
    if (failed)
        cJSON_Delete(object);
    finish(job);
}

static const char *complaint_of(unsigned status)
{
    switch (status) {
    case 504: return "The wait is over and not everybody is drained; the stop stays.";
    case 409: return "Somebody went away with messages in flight and may still work on them; the stop stays.";
    default: return NULL;
    }
}

/* With those that are meant as they are now, so that who waited in vain sees for whom. */
static void show_progress(sl_admin_job *job)
{
    const sl_wire_stop_progress *const progress = &job->wait.progress;
    sl_err err;
    cJSON *object = sl_admin_consumers(job->host, &job->how.who, false, &err);
    bool failed;

    if (object == NULL) /* too many to be shown */
        object = cJSON_CreateObject();
    failed = object == NULL;
    add_number(object, "meant", progress->meant, &failed);
    add_number(object, "drained", progress->drained, &failed);
    add_number(object, "in_flight", progress->in_flight, &failed);
    add_number(object, "went_away", progress->went_away, &failed);
    add_number(object, "lost", progress->lost, &failed);
    add_number(object, "unlabelled", progress->unlabelled, &failed);
    add_number(object, "rules", progress->rules, &failed);
    failed = cJSON_AddBoolToObject(object, "done", progress->done) == NULL || failed;
    if (!progress->done)
        job->answer->status = job->how.wait_ms > 0 ? 504 : 202;
    else if (progress->went_away > 0 && job->how.wait_ms > 0)
        job->answer->status = 409;
    if (complaint_of(job->answer->status) != NULL)
        failed =
            cJSON_AddStringToObject(object, "error", complaint_of(job->answer->status)) == NULL || failed;
    show(job, object, failed);
}

static void show_resumed(sl_admin_job *job)
{
    const sl_wire_resume_answer *const resumed = &job->wait.resumed;
    cJSON *const object = cJSON_CreateObject();
    bool failed = object == NULL;

    add_number(object, "resumed", resumed->resumed, &failed);
    add_number(object, "too_late", resumed->too_late, &failed);
    add_number(object, "rules", resumed->rules, &failed);
    if (resumed->resumed == 0 && resumed->too_late > 0) {
        job->answer->status = 409;
        failed = cJSON_AddStringToObject(object, "error",
                                         "Too late: they are drained, or have stopped themselves. Who joins "
                                         "from now on is not stopped.") == NULL ||
                 failed;
    }
    show(job, object, failed);
}

static void on_changed(void *ctx)
{
    sl_admin_job *const job = ctx;

    if (job->wait.state == SL_WAIT_FAILED && job->wait.is_group_gone)
        refuse(job, 409, SL_GROUP_GONE_SENTENCE);
    else if (job->wait.state == SL_WAIT_FAILED)
        refuse(job, 503, "Nobody knows how this ends: a group was deleted or failed, or the server ends.");
    else if (job->is_resume)
        show_resumed(job);
    else if (job->wait.state == SL_WAIT_DONE || job->wait.state == SL_WAIT_OVER)
        show_progress(job);
}

/* --- what is done --- */

/* user: lives until this returns; it is logged at once. */
static void act(sl_admin_job *job, sl_str user)
{
    sl_err err;

    job->wait = (sl_stop_wait){ .changed = on_changed, .ctx = job, .user = user };
    err = job->is_resume ? sl_operators_resume(job->host, &job->how.who, &job->wait)
                         : sl_operators_stop_consumers(job->host, &job->how, &job->wait);
    if (err != SL_OK)
        refuse(job, status_of(err), sl_operators_sentence(err));
    else
        job->wait.user = (sl_str){ 0 };
}

/* A wrong password is another mistake than none. */
static void refuse_unknown(sl_admin_job *job, bool has_credentials)
{
    job->answer->challenge = "Basic realm=\"sluice\", charset=\"UTF-8\"";
    refuse(job, 401,
           has_credentials
               ? "The server does not accept this user with this password."
               : "Say who you are: a user of this server in $ops or $admins, with Basic authentication.");
}

static void on_identity(void *ctx, sl_auth_verdict verdict, const sl_identity *identity)
{
    sl_admin_job *const job = ctx;

    if (verdict == SL_AUTH_NOT_READY) {
        refuse(job, 503, "Users are still being read: try again in a moment.");
    } else if (verdict == SL_AUTH_TOO_OFTEN) {
        refuse(job, 429, "Too many wrong passwords: wait.");
    } else if (verdict == SL_AUTH_OK &&
               (identity->is_trusted || identity->is_operator || identity->is_admin)) {
        act(job, identity->name);
    } else if (verdict == SL_AUTH_OK && identity->name.bytes > 0) {
        refuse(job, 403, "Only members of $ops and $admins may do this.");
    } else {
        refuse_unknown(job, verdict == SL_AUTH_REFUSED);
    }
}

/* --- what is asked --- */

enum {
    STREAM,
    GROUP,
    NAME,
    LABEL,
    WAIT,
    DEADLINE,
    REASON,
    HAND_BACK,
    ONCE,
    PARAMETER_COUNT,
};

static const char *take_duration(const sl_admin_parameter *parameter, uint32_t *ret_ms)
{
    const sl_duration_bounds bounds = { 0, SL_STOP_WAIT_MS_MAX * MS_NS };
    uint64_t ns = 0;

    if (parameter->is_given && sl_str_parse_duration(parameter->value, bounds, &ns) != SL_OK)
        return "A time is written like 25s, 1.5m or 500ms, and at most 24h.";
    *ret_ms = (uint32_t)((ns + MS_NS - 1) / MS_NS);
    return NULL;
}

static const char *take_flag(const sl_admin_parameter *parameter, bool *ret_flag)
{
    *ret_flag = parameter->is_given && sl_str_equal(parameter->value, SL_STR("true"));
    if (!parameter->is_given || *ret_flag || sl_str_equal(parameter->value, SL_STR("false")))
        return NULL;
    return "hand_back and once are true or false.";
}

static const char *read_how(sl_admin_job *job, const sl_pages_question *question, const sl_str parts[2])
{
    sl_admin_parameter p[PARAMETER_COUNT] = {
        [STREAM] = { .name = "stream" }, [GROUP] = { .name = "group" },
        [NAME] = { .name = "name" },     [LABEL] = { .name = "label" },
        [WAIT] = { .name = "wait" },     [DEADLINE] = { .name = "deadline" },
        [REASON] = { .name = "reason" }, [HAND_BACK] = { .name = "hand_back" },
        [ONCE] = { .name = "once" },
    };
    const char *complaint =
        sl_admin_parameters(sl_str_from(question->query), &job->arena, p, PARAMETER_COUNT);

    if (complaint == NULL)
        complaint = sl_admin_who(question->path, parts, p, &job->arena, &job->how.who);
    if (complaint == NULL)
        complaint = sl_who_complaint(&job->how.who, false);
    if (complaint == NULL)
        complaint = take_duration(&p[WAIT], &job->how.wait_ms);
    if (complaint == NULL)
        complaint = take_duration(&p[DEADLINE], &job->how.deadline_ms);
    if (complaint == NULL)
        complaint = take_flag(&p[HAND_BACK], &job->how.hand_back_unstarted);
    if (complaint == NULL)
        complaint = take_flag(&p[ONCE], &job->how.once);
    if (complaint == NULL && p[REASON].value.bytes > SL_STOP_REASON_BYTES_MAX)
        complaint = "The reason is too long: at most 1,024 bytes.";
    job->how.reason = p[REASON].value;
    return complaint;
}

static sl_admin_job *job_new(sl_server *server, const sl_pages_question *question, sl_pages_answer *answer)
{
    sl_admin_job *const job = sl_alloc_take(server->alloc, sizeof *job);

    if (job == NULL)
        return NULL;
    *job = (sl_admin_job){ .server = server,
                           .host = server->host,
                           .answer = answer,
                           .is_resume = sl_str_ends_with(sl_str_from(question->path), SL_STR("/resume")) };
    sl_arena_init(&job->arena, server->alloc, (sl_arena_sizes){ ARENA_CHUNK_BYTES, ARENA_BYTES_MAX });
    if (server->admin_jobs.next == NULL)
        sl_list_init(&server->admin_jobs);
    sl_list_push_back(&server->admin_jobs, &job->node);
    server->admin_job_count++;
    answer->job = job;
    return job;
}

void sl_admin_show_stop(sl_server *server, const sl_pages_question *question, const sl_str parts[2],
                        sl_pages_answer *answer)
{
    const char *complaint;
    sl_admin_job *job;

    if (server->admin_job_count >= SL_ADMIN_JOBS_MAX) {
        sl_pages_refuse(answer, 503, "Too many wait here already: try again, or use the sluice command.");
        return;
    }
    job = job_new(server, question, answer);
    if (job == NULL) {
        sl_pages_refuse(answer, 500, "There is not enough memory.");
        return;
    }
    complaint = read_how(job, question, parts);
    if (complaint != NULL) {
        refuse(job, 400, complaint);
        return;
    }
    /* Whoever fails to log in too often here makes all others here wait as well. */
    sl_auth_check(server->host->auth, sl_str_from(question->authorization), SL_STR("admin"), &job->ticket,
                  on_identity, job);
    if (answer->job != NULL) /* not refused at once */
        job->is_begun = true;
}
