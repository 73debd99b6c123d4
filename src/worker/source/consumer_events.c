/* worker/source/consumer_events.c — what the consumer engine tells, and what that means for jobs. */
#include "worker/source/consumer_inside.h"

#include <string.h>

#define MS_NS UINT64_C(1000000)

/* --- seats --- */

sl_consumer_id consumer_source_id(const sl_job *job)
{
    sl_consumer_id id;

    memcpy(id.bytes, job->message.id.bytes, sizeof id.bytes);
    return id;
}

static uint64_t hash_of(const consumer_source *c, const void *id_bytes)
{
    return sl_hash(c->seed, id_bytes, sizeof(sl_uuid));
}

/* Those that were used before, first: there are never more than were out at the same time. */
static consumer_seat *new_seat(consumer_source *c)
{
    sl_list *const spare = sl_list_first(&c->spare_seats);

    if (spare == NULL)
        return sl_alloc_take(&sl_alloc_default, sizeof(consumer_seat));
    sl_list_remove(spare);
    return SL_CONTAINER_OF(spare, consumer_seat, node);
}

consumer_seat *consumer_source_seat(consumer_source *c, sl_job *job)
{
    consumer_seat *const seat = new_seat(c);

    if (seat == NULL)
        return NULL;
    *seat = (consumer_seat){ .job = job };
    job->source_data = seat;
    sl_list_push_back(&c->seats, &seat->node);
    sl_map_insert(&c->jobs, &job->by_id, hash_of(c, job->message.id.bytes));
    c->out_count++;
    return seat;
}

void consumer_source_free_seat(consumer_source *c, consumer_seat *seat)
{
    sl_list_remove(&seat->node);
    sl_map_remove(&c->jobs, &seat->job->by_id);
    seat->job->source_data = NULL;
    c->out_count--;
    sl_list_push_front(&c->spare_seats, &seat->node);
}

void consumer_source_settled(consumer_source *c, consumer_seat *seat, sl_settled_how how)
{
    sl_job *const job = seat->job;

    consumer_source_free_seat(c, seat);
    c->base.owner->settled(c->base.owner_ctx, job, how);
}

/* Is `other` what an outcome means rather than `found`? */
static bool is_meant(const consumer_seat *found, const consumer_seat *other)
{
    if (found == NULL || other->said_number == 0)
        return found == NULL;
    return found->said_number == 0 || other->said_number < found->said_number;
}

static consumer_seat *find(const consumer_source *c, sl_consumer_id id)
{
    consumer_seat *found = NULL;

    for (sl_map_node *node = sl_map_find(&c->jobs, hash_of(c, id.bytes)); node != NULL;
         node = sl_map_next(node)) {
        const sl_job *const job = SL_CONTAINER_OF(node, sl_job, by_id);
        consumer_seat *const seat = job->source_data;

        if (memcmp(job->message.id.bytes, id.bytes, sizeof id.bytes) == 0 && !seat->is_over &&
            is_meant(found, seat))
            found = seat;
    }
    return found;
}

/* --- events --- */

static sl_str text_of(sl_consumer_bytes bytes)
{
    return (sl_str){ bytes.data, bytes.bytes };
}

static sl_job *job_of(const consumer_source *c, const sl_consumer_event *event)
{
    sl_job_message message = { .token = event->lease_token,
                               .attempt =
                                   event->retry_count == UINT32_MAX ? UINT32_MAX : event->retry_count + 1,
                               .revision = event->revision,
                               .created_ns = event->created_ns,
                               .stream = text_of(event->stream),
                               .type = text_of(event->type),
                               .content_type = text_of(event->content_type),
                               .data = text_of(event->data),
                               .metadata = text_of(event->metadata),
                               .group = sl_str_from(c->group) };
    sl_job *job;

    memcpy(message.id.bytes, event->id.bytes, sizeof message.id.bytes);
    memcpy(message.event_id.bytes, event->event_id.bytes, sizeof message.event_id.bytes);
    job = sl_job_new_from(c->base.shelf, &message);
    if (job == NULL)
        return NULL;
    job->lease_ns = event->lease_ms * MS_NS;
    job->lease_until_ns =
        event->lease_ms == 0 ? UINT64_MAX : sl_loop_now_ns(c->loop) + event->lease_ms * MS_NS;
    return job;
}

/* Nobody can work on it, and it would come again for ever. */
static void drop_dead_link(consumer_source *c, const sl_consumer_event *event)
{
    if (c->log != NULL)
        sl_log(c->log, SL_LOG_DEBUG, "a link points to nothing any more: acked",
               SL_LOG_STR("stream", text_of(event->link_stream)),
               SL_LOG_U64("revision", event->link_revision));
    (void)sl_consumer_ack(c->consumer, &event->id, 1);
}

static void on_event(void *ctx, const sl_consumer_event *event)
{
    consumer_source *const c = ctx;
    sl_job *job;

    if (!event->has_event) {
        drop_dead_link(c, event);
        return;
    }
    job = c->is_fenced ? NULL : job_of(c, event);
    if (job != NULL && consumer_source_seat(c, job) == NULL) {
        sl_job_free(job);
        job = NULL;
    }
    if (job == NULL)
        (void)sl_consumer_release(c->consumer, &event->id, 1); /* no memory: others may have some */
    else
        c->base.owner->offer(c->base.owner_ctx, job);
}

/* --- outcomes --- */

static sl_settled_how how_of(const consumer_source *c, sl_consumer_outcome outcome)
{
    switch (outcome) {
    case SL_CONSUMER_SETTLED: return SL_SETTLED_DONE;
    case SL_CONSUMER_RELEASED: return c->base.confirms ? SL_SETTLED_DONE : SL_SETTLED_UNSURE;
    case SL_CONSUMER_LOST: return SL_SETTLED_LOST;
    case SL_CONSUMER_UNSURE:
    case SL_CONSUMER_SENT: return SL_SETTLED_UNSURE;
    }
    return SL_SETTLED_LOST;
}

static void lose(consumer_source *c, consumer_seat *seat)
{
    seat->is_lost = true;
    seat->how = SL_SETTLED_LOST;
    c->base.owner->lost(c->base.owner_ctx, seat->job);
}

/* The server was out of reach until the end, or what answered at its address knew nothing of us (another data folder, a new password):
 * nobody knows what became of what it was not told. */
static bool ends_out_of_reach(const consumer_source *c)
{
    return sl_consumer_has_ended(c->consumer);
}

/* The worker has said nothing yet, and will: of its own accord when it hands back what it has not begun, else because it hears that
 * the job is lost. Before the gate is closed nobody knows which. */
static void over_unsaid(consumer_source *c, consumer_seat *seat, sl_consumer_outcome outcome)
{
    const bool hands_back = c->gate_is_closed ? c->hands_back : c->stop_was_asked;

    seat->is_over = true;
    seat->is_out_of_reach = ends_out_of_reach(c);
    seat->how = how_of(c, outcome);
    if (!seat->is_out_of_reach && (outcome != SL_CONSUMER_RELEASED || !hands_back))
        lose(c, seat);
}

void consumer_source_lose_handed_back(consumer_source *c)
{
    SL_LIST_EACH_SAFE (node, &c->seats) {
        consumer_seat *const seat = SL_CONTAINER_OF(node, consumer_seat, node);

        if (seat->is_over && seat->said_number == 0 && !seat->is_lost)
            lose(c, seat);
    }
}

/* Finished work that could not be told ends with free(), so that the ack file keeps it and the next process says it again (B3). */
bool consumer_source_is_for_next_process(const consumer_seat *seat)
{
    return seat->is_out_of_reach && (seat->said == SL_SETTLE_ACK || seat->said == SL_SETTLE_PARK);
}

static void over_said(consumer_source *c, consumer_seat *seat, sl_consumer_outcome outcome)
{
    seat->is_out_of_reach = ends_out_of_reach(c);
    if (consumer_source_is_for_next_process(seat))
        seat->is_over = true;
    else
        consumer_source_settled(c, seat, how_of(c, outcome));
}

static void on_settled(void *ctx, sl_consumer_id id, sl_consumer_outcome outcome)
{
    consumer_source *const c = ctx;
    consumer_seat *const seat = find(c, id);

    if (seat == NULL)
        return; /* a dead link, or one that found no memory */
    if (seat->said_number == 0)
        over_unsaid(c, seat, outcome);
    else
        over_said(c, seat, outcome);
}

/* --- stops --- */

void consumer_source_fence(consumer_source *c)
{
    if (!c->gate_is_closed || c->is_fenced)
        return;
    c->is_fenced = true;
    c->base.owner->fenced(c->base.owner_ctx);
}

static void on_stop_requested(void *ctx, sl_consumer_bytes reason, uint32_t deadline_ms)
{
    consumer_source *const c = ctx;
    sl_text text;

    sl_text_init(&text, c->reason, sizeof c->reason);
    sl_text_add_str(&text, text_of(reason));
    c->deadline_ms = deadline_ms;
}

static void log_stop(const consumer_source *c, const char *message)
{
    if (c->log != NULL)
        sl_log(c->log, SL_LOG_INFO, message, SL_LOG_STR("group", c->group), SL_LOG_STR("reason", c->reason));
}

static void ask_to_stop(consumer_source *c)
{
    if (c->gate_is_closed || c->stop_was_asked)
        return;
    c->stop_was_asked = true;
    c->base.owner->stop_asked(c->base.owner_ctx, SL_DRAIN_REASON_OPERATOR, sl_str_from(c->reason),
                              c->deadline_ms);
}

static void on_stopped(void *ctx, const sl_consumer_stopped *stopped)
{
    consumer_source *const c = ctx;

    if (stopped->asked_by == SL_CONSUMER_BY_ITSELF || stopped->already_stopped)
        consumer_source_fence(c);
    else if (stopped->asked_by == SL_CONSUMER_BY_OPERATOR)
        ask_to_stop(c);
    else
        log_stop(c, "the server is going down: running work is finished, then the consumer comes back");
}

static void on_resumed(void *ctx)
{
    const consumer_source *const c = ctx;

    if (c->stop_was_asked)
        log_stop(c, "the operator's stop was taken back, but this worker is leaving already");
}

/* --- the connection --- */

static void on_connected(void *ctx, const sl_consumer_connected *connected)
{
    consumer_source *const c = ctx;

    c->is_up = true;
    c->problem[0] = '\0';
    c->base.confirms = c->base.has_tokens = connected->extensions != 0;
    c->base.keeps_delays = connected->keeps_delays != 0;
    c->base.owner->up(c->base.owner_ctx);
}

static void add_hint(const consumer_source *c, sl_text *text)
{
    static const sl_client_place place = { "--from", "sluice://HOST:PORT/STREAM/GROUP?tls=true" };

    sl_consumer_add_hint(c->consumer, &place, text);
}

/* A try that failed as the one before is no news. */
static void on_disconnected(void *ctx, const char *sentence, uint32_t retry_ms)
{
    consumer_source *const c = ctx;
    char problem[sizeof c->problem];
    bool is_news;
    sl_text text;

    (void)retry_ms;
    sl_text_init(&text, problem, sizeof problem);
    sl_text_add(&text, sentence);
    add_hint(c, &text);
    is_news = c->is_up || strcmp(c->problem, problem) != 0;
    c->is_up = false;
    if (is_news) {
        memcpy(c->problem, problem, text.bytes + 1);
        c->base.owner->down(c->base.owner_ctx, sl_text_str(&text));
    }
    consumer_source_fence(c); /* the next call begins stopped, and what it brings goes back unseen */
}

/* --- the end --- */

void consumer_source_close(consumer_source *c)
{
    if (!c->is_closing || !c->has_ended || c->is_closed)
        return;
    c->is_closed = true;
    c->base.owner->closed(c->base.owner_ctx);
}

static void fail(consumer_source *c, sl_consumer_status status, const char *sentence)
{
    const bool is_refusal = status == SL_CONSUMER_REFUSED || status == SL_CONSUMER_INVALID;
    const size_t bytes = strlen(sentence);
    char problem[sizeof c->problem];
    sl_text text;

    sl_text_init(&text, problem, sizeof problem);
    sl_text_add(&text, sentence);
    if (!is_refusal)
        add_hint(c, &text);
    if (!is_refusal && text.bytes == bytes)
        sl_text_add(&text, ". Is the server running, and is the address right?");
    c->has_failed = true;
    c->base.owner->failed(c->base.owner_ctx, is_refusal ? SL_SOURCE_REFUSED : SL_SOURCE_LOST,
                          sl_text_str(&text));
}

static void on_ended(void *ctx, sl_consumer_status status, const char *sentence)
{
    consumer_source *const c = ctx;

    c->has_ended = true;
    c->is_up = false;
    if (!c->is_closing && !c->has_failed)
        fail(c, status, sentence);
    consumer_source_fence(c);
    consumer_source_close(c);
}

const sl_consumer_handler consumer_source_handler = { .event = on_event,
                                                      .settled = on_settled,
                                                      .stop_requested = on_stop_requested,
                                                      .stopped = on_stopped,
                                                      .resumed = on_resumed,
                                                      .connected = on_connected,
                                                      .disconnected = on_disconnected,
                                                      .ended = on_ended };
