#include "crew_rig.h"

#include "base/cleanup.h"
#include "test.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

enum {
    PATIENCE_SECONDS = 20
};

typedef struct scripted_source {
    sl_source source;
    scripted *script;
    sl_job *settling[CREW_RIG_JOBS_MAX];
    uint32_t settling_count, open;
} scripted_source;

typedef struct scripted_handler {
    sl_handler handler;
    scripted *script;
} scripted_handler;

static void crew_note(const scripted *script, const char *word)
{
    sl_text *const text = &script->rig->text;

    sl_text_add(text, " ");
    sl_text_add(text, script->name);
    sl_text_add(text, ":");
    sl_text_add(text, word);
}

/* --- the source --- */

static scripted_source *as_source(sl_source *source)
{
    return (scripted_source *)source;
}

static sl_job *make_job(uint32_t number)
{
    return sl_job_new(&(sl_job_message){ .id = { .bytes = { (uint8_t)number, 1 } },
                                         .attempt = 1,
                                         .revision = number,
                                         .stream = SL_STR("orders"),
                                         .data = SL_STR("{}") });
}

static void source_starts(sl_source *source)
{
    scripted_source *const s = as_source(source);
    const sl_source_owner *const owner = source->owner;

    crew_note(s->script, "start");
    if (s->script->fails_times > 0) {
        s->script->fails_times--;
        owner->failed(source->owner_ctx, s->script->failure, SL_STR("no such group"));
        return;
    }
    owner->up(source->owner_ctx);
    for (uint32_t i = 0; i < s->script->jobs; i++) {
        sl_job *const job = make_job(i);
        job->lease_until_ns = UINT64_MAX;
        s->open++;
        owner->offer(source->owner_ctx, job);
    }
    if (s->script->asked_times > 0) {
        s->script->asked_times--;
        owner->stop_asked(source->owner_ctx, s->script->asked_to_stop, SL_STR("because"), 0);
    }
}

static bool source_begins(sl_source *source, sl_job *job)
{
    (void)source;
    (void)job;
    return true;
}

static void source_settles(sl_source *source, sl_job *job, const sl_settle *settle)
{
    static const char *const words[] = { "ack", "retry", "park", "release" };
    scripted_source *const s = as_source(source);

    crew_note(s->script, words[settle->kind]);
    s->script->settles++;
    s->settling[s->settling_count++] = job;
}

static void source_turns(sl_source *source)
{
    scripted_source *const s = as_source(source);

    while (s->settling_count > 0) {
        s->open--;
        source->owner->settled(source->owner_ctx, s->settling[--s->settling_count], SL_SETTLED_DONE);
    }
    if (s->script->ends_when_done && s->open == 0 && s->script->settles >= s->script->jobs) {
        s->script->ends_when_done = false;
        source->owner->failed(source->owner_ctx, SL_SOURCE_FINISHED, SL_STR(""));
    }
}

static void source_closes_gate(sl_source *source, bool hand_back)
{
    scripted_source *const s = as_source(source);

    (void)hand_back;
    crew_note(s->script, "gate");
    if (s->script->on_gate != NULL)
        s->script->on_gate(s->script);
    if (!s->script->never_fences)
        source->owner->fenced(source->owner_ctx);
}

static void source_closes(sl_source *source)
{
    crew_note(as_source(source)->script, "close");
    if (!as_source(source)->script->never_closes)
        source->owner->closed(source->owner_ctx);
}

static void source_describes(const sl_source *source, struct cJSON *object)
{
    const scripted *const script = ((const scripted_source *)source)->script;

    cJSON_AddStringToObject(object, "address", script->describes_garbage ? "\xff\xfe \x01" : "here");
}

static void source_goes(sl_source *source)
{
    scripted_source *const s = as_source(source);

    crew_note(s->script, "free");
    s->script->source = NULL;
    if (s->script->on_free != NULL)
        s->script->on_free(s->script);
    free(s);
}

static const sl_source_class scripted_source_class = {
    .name = "scripted",
    .start = source_starts,
    .begin = source_begins,
    .settle = source_settles,
    .close_gate = source_closes_gate,
    .close = source_closes,
    .turn_end = source_turns,
    .describe = source_describes,
    .free = source_goes,
};

void crew_source_fails(scripted *script)
{
    const sl_source *const source = &script->source->source;

    source->owner->failed(source->owner_ctx, SL_SOURCE_LOST, SL_STR("gone for good"));
}

/* --- the handler --- */

static scripted *script_of(sl_handler *handler)
{
    return ((scripted_handler *)handler)->script;
}

static void finish_as(scripted *script, sl_job *job, sl_result_kind kind)
{
    const sl_handler *const handler = &script->handler->handler;
    const sl_result result = { .kind = kind };

    handler->owner->finished(handler->owner_ctx, job, &result);
}

static void handler_runs(sl_handler *handler, sl_job *job)
{
    scripted *const script = script_of(handler);

    script->runs++;
    crew_note(script, "run");
    if (script->holds)
        script->held[script->held_count++] = job;
    else
        finish_as(script, job, SL_RESULT_DONE);
}

static void end_one(scripted *script, sl_job *job)
{
    for (uint32_t i = 0; i < script->held_count; i++)
        if (script->held[i] == job) {
            script->held[i] = script->held[--script->held_count];
            finish_as(script, job, SL_RESULT_STOPPED);
            return;
        }
}

static void handler_aborts(sl_handler *handler, sl_job *job)
{
    crew_note(script_of(handler), "abort");
    if (!script_of(handler)->ignores_abort)
        end_one(script_of(handler), job);
}

static void handler_kills(sl_handler *handler, sl_job *job)
{
    crew_note(script_of(handler), "kill");
    if (!script_of(handler)->ignores_abort)
        end_one(script_of(handler), job);
}

static void handler_closes(sl_handler *handler)
{
    handler->owner->closed(handler->owner_ctx);
}

static void handler_goes(sl_handler *handler, uint64_t until_ns)
{
    (void)until_ns;
    script_of(handler)->handler = NULL;
    script_of(handler)->held_count = 0;
    free(handler);
}

static const sl_handler_class scripted_handler_class = {
    .name = "holding",
    .run = handler_runs,
    .abort = handler_aborts,
    .kill = handler_kills,
    .close = handler_closes,
    .free = handler_goes,
};

void crew_let_go(scripted *script)
{
    while (script->held_count > 0)
        finish_as(script, script->held[--script->held_count], SL_RESULT_DONE);
}

void crew_let_all_go(crew_rig *rig)
{
    EXPECT_EQ(write(rig->pipe[1], "x", 1), 1);
}

static void on_pipe(void *ctx)
{
    crew_rig *const rig = ctx;
    char byte;

    if (read(rig->pipe[0], &byte, 1) != 1)
        return;
    for (size_t i = 0; i < rig->count; i++)
        crew_let_go(&rig->scripts[i]);
}

/* --- the crew --- */

static sl_err make_parts(void *ctx, sl_loop *loop, const sl_logger *log, sl_text *problem,
                         sl_crew_parts *ret_parts)
{
    scripted *const script = ctx;
    const sl_err err = script->makes < CREW_RIG_JOBS_MAX ? script->make_errs[script->makes] : SL_OK;

    EXPECT(log != NULL);
    script->makes++;
    crew_note(script, "make");
    if (err != SL_OK) {
        sl_text_add(problem, "it cannot be made");
        return err;
    }
    script->loop = loop;
    if (script->rig->watch == NULL)
        EXPECT_OK(sl_watch_new(loop, script->rig->pipe[0], on_pipe, script->rig, &script->rig->watch));
    script->source = calloc(1, sizeof *script->source);
    script->handler = calloc(1, sizeof *script->handler);
    EXPECT(script->source != NULL && script->handler != NULL);
    *script->source = (scripted_source){ .source.class = &scripted_source_class, .script = script };
    *script->handler = (scripted_handler){ .handler.class = &scripted_handler_class, .script = script };
    ret_parts->source = &script->source->source;
    ret_parts->handler = &script->handler->handler;
    return SL_OK;
}

/* The watch must be gone before the loop, and the last line comes just before that. */
static void on_crew_log(void *ctx, const char *line, size_t line_bytes)
{
    crew_rig *const rig = ctx;

    if (strstr(line, " stopped ") != NULL || strstr(line, "\"stopped\"") != NULL) {
        sl_watch_free(rig->watch);
        rig->watch = NULL;
    }
    if (rig->log_bytes + line_bytes < sizeof rig->log) {
        memcpy(rig->log + rig->log_bytes, line, line_bytes);
        rig->log_bytes += line_bytes;
        rig->log[rig->log_bytes] = '\0';
    }
    if (rig->when_logged != NULL)
        rig->when_logged(rig, line);
}

static void on_crew_give_up(void *ctx, sl_crew_cause cause)
{
    ((crew_rig *)ctx)->cause = cause;
}

static void on_crew_ready(void *ctx, const char *status_address)
{
    crew_rig *const rig = ctx;

    rig->readies++;
    snprintf(rig->address, sizeof rig->address, "%s", status_address);
    if (rig->when_ready != NULL)
        rig->when_ready(rig, status_address);
}

static void fill_settings(sl_work_settings *settings, const char *name)
{
    const sl_budget_wish wish = { .grace_ns = SL_BUDGET_GRACE_LEAST_MS * MS_NS };

    *settings = (sl_work_settings){ .name = name, .slots = 4, .hold_max_ns = 3600 * 1000 * MS_NS };
    settings->retry = sl_retry_default();
    EXPECT_OK(sl_budget_make(&wish, &settings->budget));
}

void crew_rig_init(crew_rig *rig, size_t members)
{
    static const char *const names[CREW_RIG_MEMBERS_MAX] = { "a", "b", "c", "d" };

    *rig = (crew_rig){ .count = members };
    sl_text_init(&rig->text, rig->notes, sizeof rig->notes);
    for (size_t i = 0; i < members; i++) {
        rig->scripts[i] = (scripted){ .rig = rig, .name = names[i] };
        rig->members[i] = (sl_crew_member){ .make = make_parts, .ctx = &rig->scripts[i] };
        fill_settings(&rig->members[i].settings, names[i]);
    }
    rig->settings = (sl_crew_settings){ .status_port = -1, .restarts_max = 3, .log_level = SL_LOG_DEBUG };
    rig->hooks = (sl_crew_hooks){
        .log_sink = on_crew_log, .on_ready = on_crew_ready, .on_give_up = on_crew_give_up, .ctx = rig
    };
    rig->rules =
        (sl_crew_rules){ .pause_first_ns = MS_NS, .pause_max_ns = 4 * MS_NS, .health_ns = 60000 * MS_NS };
    EXPECT_EQ(pipe(rig->pipe), 0);
}

sl_crew_end crew_rig_run(crew_rig *rig)
{
    sl_crew_end end;
    sl_text problem;

    sl_text_init(&problem, rig->problem, sizeof rig->problem);
    end = sl_crew_run_by(&rig->rules, &rig->settings, rig->members, rig->count, &rig->hooks, &problem);
    if (rig->has_client)
        EXPECT_EQ(pthread_join(rig->client, NULL), 0);
    rig->has_client = false;
    for (size_t i = 0; i < rig->count; i++)
        EXPECT(rig->scripts[i].source == NULL && rig->scripts[i].handler == NULL);
    return end;
}

void crew_rig_done(crew_rig *rig)
{
    close(rig->pipe[0]);
    close(rig->pipe[1]);
}

void crew_raise_term(crew_rig *rig, const char *address)
{
    (void)rig;
    (void)address;
    raise(SIGTERM);
}

void crew_rig_client(crew_rig *rig, void *(*run)(void *rig))
{
    EXPECT_EQ(pthread_create(&rig->client, NULL, run, rig), 0);
    rig->has_client = true;
}

bool crew_rig_logged(const crew_rig *rig, const char *words)
{
    return strstr(rig->log, words) != NULL;
}

const char *crew_rig_last_line(const crew_rig *rig)
{
    size_t at = rig->log_bytes > 0 ? rig->log_bytes - 1 : 0;

    while (at > 0 && rig->log[at - 1] != '\n')
        at--;
    return rig->log + at;
}

size_t crew_rig_when(const crew_rig *rig, const char *wanted)
{
    const char *const at = strstr(rig->notes, wanted);

    if (at == NULL)
        fail_msg("no \"%s\" in \"%s\"", wanted, rig->notes);
    return (size_t)(at - rig->notes);
}

/* --- HTTP --- */

uint16_t crew_port_of(const char *address)
{
    const char *const colon = strrchr(address, ':');

    return colon == NULL ? 0 : (uint16_t)strtoul(colon + 1, NULL, 10);
}

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct timeval patience = { .tv_sec = PATIENCE_SECONDS };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

bool crew_http_listens(uint16_t port)
{
    const int fd = connect_to(port);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void receive_all(int fd, http_asked *asked)
{
    size_t bytes = 0;
    ssize_t got = 1;

    while (got > 0 && bytes < sizeof asked->text - 1) {
        got = recv(fd, asked->text + bytes, sizeof asked->text - 1 - bytes, 0);
        bytes += got > 0 ? (size_t)got : 0;
    }
    asked->text[bytes] = '\0';
}

bool crew_http_ask(uint16_t port, const char *method, const char *path, const char *head,
                   http_asked *ret_asked)
{
    char request[2048];
    const int bytes =
        snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\n",
                 method, path, head);
    const int fd = connect_to(port);

    ret_asked->status = 0;
    ret_asked->text[0] = '\0';
    ret_asked->body = ret_asked->text;
    if (fd < 0)
        return false;
    if (send(fd, request, (size_t)bytes, MSG_NOSIGNAL) == bytes)
        receive_all(fd, ret_asked);
    close(fd);
    if (sscanf(ret_asked->text, "HTTP/1.1 %u", &ret_asked->status) != 1)
        return false;
    ret_asked->body = strstr(ret_asked->text, "\r\n\r\n");
    ret_asked->body = ret_asked->body == NULL ? "" : ret_asked->body + 4;
    return true;
}

/* --- files --- */

void crew_place_make(crew_place *place)
{
    strcpy(place->folder, "/tmp/sluice-crew-XXXXXX");
    EXPECT(mkdtemp(place->folder) != NULL);
    snprintf(place->file, sizeof place->file, "%s/report.json", place->folder);
}

/* Nothing but the file may be in the folder: a temporary name that stayed would be a bug. */
void crew_place_clear(crew_place *place)
{
    unlink(place->file);
    EXPECT_EQ(rmdir(place->folder), 0);
}

char *crew_place_read(const crew_place *place)
{
    FILE *const file = fopen(place->file, "r");
    char *const text = file == NULL ? NULL : calloc(1, ASKED_BYTES);

    if (file == NULL)
        return NULL;
    EXPECT(text != NULL);
    text[fread(text, 1, ASKED_BYTES - 1, file)] = '\0';
    fclose(file);
    return text;
}
