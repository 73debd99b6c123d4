/* server/streams/write.c — the steps of write.h.
 *
 * Who holds the request: while the batch is inside, the write does, because its answer comes whatever became of the call.
 * Everything else (the wait for metadata, the place at the door, the alarm) ends with the call. */
#include "server/streams/write.h"

#include "base/cleanup.h"
#include "server/reply.h"

#include <assert.h>
#include <string.h>

/* --- may he --- */

static bool takes_messages(const sl_request *request)
{
    return request->method->kind == SL_METHOD_CLIENT_STREAM || request->method->kind == SL_METHOD_BIDI;
}

static void run_permit(void *ctx)
{
    sl_permit *const permit = ctx;
    sl_request *const request = sl_request_hold(permit->request);

    permit->waits = false;
    permit->again(request);
    if (!permit->waits && takes_messages(request) && sl_request_open(request))
        sl_request_resume(request); /* last: what was kept comes before this returns */
    sl_request_release(request);
}

void sl_permit_init(sl_permit *permit, sl_request *request, void (*again)(sl_request *request))
{
    *permit = (sl_permit){ .request = request, .again = again };
    sl_reader_init(&permit->reader, SL_STR(""), run_permit, permit);
}

sl_access_verdict sl_permit_check(sl_permit *permit, sl_str stream, sl_action action)
{
    sl_request *const request = permit->request;
    const sl_access_verdict verdict =
        sl_access_check(request->host->access, &request->identity, stream, action, &permit->reader);

    permit->waits = verdict == SL_ACCESS_PENDING;
    if (permit->waits && takes_messages(request))
        sl_request_pause(request);
    return verdict;
}

void sl_permit_end(sl_permit *permit)
{
    if (permit->waits)
        sl_tail_forget(permit->request->host->tail, &permit->reader);
    permit->waits = false;
}

/* --- the write --- */

static void leave_door(sl_write *write)
{
    if (write->at_door)
        sl_door_forget(&write->waiter);
    write->at_door = false;
}

static void on_done(void *ctx, const sl_commit *commit)
{
    sl_write *const write = ctx;
    sl_request *const request = write->request;

    assert(write->inside);
    write->inside = false;
    sl_alarm_stop(request->host, &write->alarm);
    if (sl_request_open(request))
        write->rules->done(request, commit);
    sl_request_release(request);
}

static void enter(sl_write *write, const sl_batch *batch)
{
    sl_request *const request = write->request;
    const sl_err err = sl_door_submit(request->host->door, batch, on_done, write);

    if (err == SL_OK) {
        write->inside = true;
        sl_request_hold(request);
        write->rules->accepted(request);
    } else if (err == SL_ERR_FULL) {
        write->at_door = true;
        sl_door_wait(request->host->door, &write->waiter);
    } else {
        sl_alarm_stop(request->host, &write->alarm);
        write->rules->refused(request, err);
    }
}

static void try_door(void *ctx)
{
    sl_write *const write = ctx;
    sl_request *const request = sl_request_hold(write->request);
    sl_batch batch;

    write->at_door = false;
    if (request->identity.is_revoked)
        write->rules->refused(request, SL_ERR_DRAINING);
    else if (sl_request_open(request) && write->rules->prepare(request, &batch))
        enter(write, &batch);
    sl_request_release(request);
}

static void reply_incomplete(sl_request *request)
{
    char buffer[256];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_text_add(&text, "The append was not complete after ");
    sl_text_add_duration(&text, SL_WRITE_GATHER_NS);
    sl_text_add(&text, ", and nothing of it was written. Send its events without a pause, and half-close.");
    sl_request_finish(request, SL_STATUS_DEADLINE_EXCEEDED, sl_text_str(&text), NULL, 0);
}

static void on_late(void *ctx)
{
    sl_write *const write = ctx;
    sl_request *const request = sl_request_hold(write->request);

    leave_door(write); /* then it will never be written */
    if (sl_request_open(request) && write->gathers)
        reply_incomplete(request);
    else if (sl_request_open(request))
        write->rules->late(request);
    sl_request_release(request);
}

void sl_write_init(sl_write *write, sl_request *request, const sl_write_rules *rules)
{
    *write = (sl_write){ .request = request, .rules = rules, .alarm = { .fn = on_late, .ctx = write } };
    sl_door_waiter_init(&write->waiter, try_door, write);
}

void sl_write_gather(sl_write *write)
{
    sl_host *const host = write->request->host;

    write->gathers = true;
    sl_alarm_set(host, &write->alarm, sl_clock_mono_ns(host->clock) + SL_WRITE_GATHER_NS);
}

void sl_write_submit(sl_write *write)
{
    sl_host *const host = write->request->host;
    const uint64_t now_ns = sl_clock_mono_ns(host->clock);

    assert(!write->inside && !write->at_door);
    write->gathers = false;
    sl_alarm_set(host, &write->alarm, sl_add_sat_u64(now_ns, host->settings->write_timeout_ns));
    try_door(write);
}

void sl_write_end(sl_write *write)
{
    leave_door(write);
    sl_alarm_stop(write->request->host, &write->alarm);
}

void sl_write_stop(sl_write *write)
{
    if (!write->inside)
        write->rules->refused(write->request, SL_ERR_DRAINING);
}

/* --- for all who write --- */

/* Hashes with the secret of this process, of its name and a number that only grows: unique, and nobody can foresee the
 * next one. */
sl_uuid sl_write_new_id(sl_host *host)
{
    const sl_hash_seed other = { ~host->seed.k0, host->seed.k1 };
    uint8_t key[sizeof host->instance.bytes + sizeof host->ids_made], random[16];
    uint64_t halves[2];

    host->ids_made++;
    memcpy(key, host->instance.bytes, sizeof host->instance.bytes);
    memcpy(key + sizeof host->instance.bytes, &host->ids_made, sizeof host->ids_made);
    halves[0] = sl_hash(host->seed, key, sizeof key);
    halves[1] = sl_hash(other, key, sizeof key);
    memcpy(random, halves, sizeof random);
    return sl_uuid_v4(random);
}

void sl_write_add_late(sl_text *text, const sl_server_settings *settings)
{
    sl_text_add(text, "Operation timed out: the write was not durable after ");
    sl_text_add_duration(text, settings->write_timeout_ns);
    sl_text_add(text, ". It may still be carried out.");
}

void sl_write_reply_late(sl_request *request)
{
    char buffer[256];
    sl_text text;

    sl_text_init(&text, buffer, sizeof buffer);
    sl_write_add_late(&text, request->host->settings);
    sl_request_finish(request, SL_STATUS_ABORTED, sl_text_str(&text), NULL, 0);
}
