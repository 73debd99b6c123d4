/* tests/unit/server/operators_rig.c — see operators_rig.h. */
#include "operators_rig.h"

#include <stdio.h>

static void arena_init(sl_arena *arena)
{
    sl_arena_init(arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 64 * 1024 * 1024 });
}

static server_call *ask(groups *g, const char *path, sl_str message)
{
    server_call *const call = server_rig_call(&g->rig, path);

    server_call_send(call, message);
    server_call_half_close(call);
    while (server_rig_turn(&g->rig)) /* not server_rig_run(): it waits for what a test may hold back */
        continue;
    return call;
}

server_call *operators_stop(groups *g, sl_wire_stop_request how)
{
    server_call *call;
    sl_arena arena;
    sl_str message;

    arena_init(&arena);
    EXPECT_OK(sl_wire_stop_request_encode(&how, &arena, &message));
    call = ask(g, OPERATORS_PATH "Stop", message);
    sl_arena_done(&arena);
    return call;
}

server_call *operators_resume(groups *g, sl_wire_who who)
{
    server_call *call;
    sl_arena arena;
    sl_str message;

    arena_init(&arena);
    EXPECT_OK(sl_wire_resume_request_encode(&who, &arena, &message));
    call = ask(g, OPERATORS_PATH "Resume", message);
    sl_arena_done(&arena);
    return call;
}

static void say_progress(sl_text *text, sl_str message, sl_arena *arena)
{
    sl_wire_stop_progress progress;
    char buffer[64];

    EXPECT_OK(sl_wire_stop_progress_decode(message, arena, &progress, NULL));
    snprintf(buffer, sizeof buffer, "%u/%u:%u", progress.meant, progress.drained, progress.in_flight);
    sl_text_add(text, buffer);
    if (progress.went_away > 0) {
        snprintf(buffer, sizeof buffer, "-%u/%u", progress.went_away, progress.lost);
        sl_text_add(text, buffer);
    }
    if (progress.unlabelled > 0) {
        snprintf(buffer, sizeof buffer, "?%u", progress.unlabelled);
        sl_text_add(text, buffer);
    }
    sl_text_add(text, progress.done ? "!" : "");
}

const char *operators_heard(const server_call *call)
{
    static char buffer[4096];
    sl_arena arena;
    sl_text text;

    arena_init(&arena);
    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < call->message_count; i++) {
        sl_text_add(&text, text.bytes == 0 ? "" : " ");
        say_progress(&text, call->messages[i], &arena);
    }
    if (call->ended) {
        sl_text_add(&text, text.bytes == 0 ? "" : " ");
        sl_text_add(&text, sl_status_name(call->status));
    }
    sl_arena_done(&arena);
    return buffer;
}

uint32_t operators_rules(const server_call *call)
{
    sl_wire_stop_progress progress;
    sl_arena arena;

    EXPECT(call->message_count > 0);
    arena_init(&arena);
    EXPECT_OK(sl_wire_stop_progress_decode(call->messages[call->message_count - 1], &arena, &progress, NULL));
    sl_arena_done(&arena);
    return progress.rules;
}

uint32_t operators_rules_back(const server_call *call)
{
    sl_wire_resume_answer answer;
    sl_arena arena;

    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    arena_init(&arena);
    EXPECT_OK(sl_wire_resume_answer_decode(call->messages[0], &arena, &answer, NULL));
    sl_arena_done(&arena);
    return answer.rules;
}

const char *operators_resumed(const server_call *call)
{
    static char buffer[64];
    sl_wire_resume_answer answer;
    sl_arena arena;

    EXPECT(call->ended);
    if (call->status != SL_STATUS_OK)
        return sl_status_name(call->status);
    EXPECT_EQ(call->message_count, 1);
    arena_init(&arena);
    EXPECT_OK(sl_wire_resume_answer_decode(call->messages[0], &arena, &answer, NULL));
    sl_arena_done(&arena);
    snprintf(buffer, sizeof buffer, "%u-%u", answer.resumed, answer.too_late);
    return buffer;
}

static sl_wire_consumers fetch(groups *g, sl_wire_who who, sl_arena *arena)
{
    const sl_wire_consumers_request request = { .who = who, .with_reports = true };
    sl_wire_consumers consumers;
    server_call *call;
    sl_str message;

    EXPECT_OK(sl_wire_consumers_request_encode(&request, arena, &message));
    call = ask(g, OPERATORS_PATH "Consumers", message);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_OK(sl_wire_consumers_decode(call->messages[0], arena, &consumers, NULL));
    return consumers;
}

static void say_asker(sl_text *text, sl_str asked_by)
{
    sl_text_add(text, asked_by.bytes == 0 ? "" : "^");
    sl_text_add_str(text, asked_by);
}

const char *operators_list(groups *g, sl_wire_who who)
{
    static char buffer[32 * 1024];
    sl_wire_consumers consumers;
    sl_arena arena;
    sl_text text;

    arena_init(&arena);
    consumers = fetch(g, who, &arena);
    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < consumers.consumer_count; i++) {
        const sl_wire_consumer *const row = &consumers.consumers[i];

        sl_text_add(&text, i == 0 ? "" : " ");
        sl_text_add_str(&text, row->name);
        sl_text_add(&text, "=");
        sl_text_add_str(&text, row->state);
        sl_text_add(&text, ":");
        sl_text_add_u64(&text, row->in_flight);
        sl_text_add(&text, row->safe_to_terminate ? "+" : "");
        say_asker(&text, row->asked_by);
    }
    sl_arena_done(&arena);
    return buffer;
}

const char *operators_costs(groups *g, sl_wire_who who)
{
    static char buffer[1024];
    sl_wire_consumers consumers;
    sl_arena arena;
    sl_text text;

    arena_init(&arena);
    consumers = fetch(g, who, &arena);
    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < consumers.consumer_count; i++) {
        const sl_wire_consumer *const row = &consumers.consumers[i];

        sl_text_add(&text, i == 0 ? "" : " ");
        sl_text_add_str(&text, row->name);
        sl_text_add(&text, "=");
        sl_text_add_u64(&text, row->removal_cost);
        sl_text_add(&text, row->cheapest_to_remove ? "*" : "");
    }
    sl_arena_done(&arena);
    return buffer;
}

const char *operators_reports(groups *g, sl_wire_who who)
{
    static char buffer[64 * 1024];
    sl_wire_consumers consumers;
    sl_arena arena;
    sl_text text;

    arena_init(&arena);
    consumers = fetch(g, who, &arena);
    sl_text_init(&text, buffer, sizeof buffer);
    for (size_t i = 0; i < consumers.report_count; i++) {
        const sl_wire_drain_report *const row = &consumers.reports[i];
        char counts[64], interrupted[16];

        interrupted[0] = '\0';
        if (row->interrupted > 0)
            snprintf(interrupted, sizeof interrupted, "(%u)", row->interrupted);
        snprintf(counts, sizeof counts, ":%u/%u%s/%u", row->settled, row->released, interrupted, row->lost);
        sl_text_add(&text, i == 0 ? "" : " ");
        sl_text_add_str(&text, row->name);
        sl_text_add(&text, "=");
        sl_text_add_str(&text, row->outcome);
        sl_text_add(&text, counts);
        say_asker(&text, row->asked_by);
    }
    sl_arena_done(&arena);
    return buffer;
}
