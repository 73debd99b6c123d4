/* tests/unit/server/test_operations.c — scavenging by name, the end on request, and calls that a single node only nods at. */
#include "rig.h"

#include "../journal/lab.h"
#include "server/user_admin.h"
#include "wire/proto_bytes.h"
#include "wire/server_control.h"

#include <stdio.h>
#include <string.h>

#define OPERATION_PATH(name) "/event_store.client.operations.Operations/" name

/* --- what scripts call --- */

TEST(operations_for_clusters_succeed_on_a_single_node_so_that_scripts_go_on)
{
    static const struct {
        const char *path;
        sl_str request;
    } rows[] = {
        { OPERATION_PATH("MergeIndexes"), SL_STR_INIT("") },
        { OPERATION_PATH("ResignNode"), SL_STR_INIT("") },
        { OPERATION_PATH("SetNodePriority"), SL_STR_INIT("\x08\x05") },
        { OPERATION_PATH("RestartPersistentSubscriptions"), SL_STR_INIT("") },
    };
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server_call *const call = server_rig_unary(&rig, rows[i].path, rows[i].request);
        EXPECT_CALL_STATUS(call, SL_STATUS_OK);
        EXPECT_EQ(call->message_count, 1);
        EXPECT_EQ(call->messages[0].bytes, 0);
    }
    server_rig_done(&rig);
}

TEST(operations_with_a_request_that_is_no_protobuf_are_invalid)
{
    static const char *const paths[] = { OPERATION_PATH("SetNodePriority"), OPERATION_PATH("StartScavenge"),
                                         OPERATION_PATH("StopScavenge") };
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        EXPECT_CALL_STATUS(server_rig_unary(&rig, paths[i], SL_STR("\x0a\x7f\x01")),
                           SL_STATUS_INVALID_ARGUMENT);
    server_rig_done(&rig);
}

/* As soon as there is a user, who comes without a password is nobody. */
static sl_store *store_with_user(void)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 1, 2 } };
    const sl_str group = SL_STR("$admins");
    char buffer[256];
    sl_store *store;
    sl_text problem;

    sl_text_init(&problem, buffer, sizeof buffer);
    EXPECT_OK(sl_store_open_memory(&setup, &store));
    EXPECT_OK(sl_user_admin_add(store, SL_STR("admin"), SL_STR("Ada"), &group, 1, SL_STR("correct horse"), 1,
                                &problem));
    return store;
}

TEST(operations_are_for_operators_only_and_what_clients_ask_first_is_for_everybody)
{
    static const struct {
        const char *path;
        sl_status status;
    } rows[] = {
        { OPERATION_PATH("StartScavenge"), SL_STATUS_PERMISSION_DENIED },
        { OPERATION_PATH("StopScavenge"), SL_STATUS_PERMISSION_DENIED },
        { OPERATION_PATH("Shutdown"), SL_STATUS_PERMISSION_DENIED },
        { OPERATION_PATH("MergeIndexes"), SL_STATUS_PERMISSION_DENIED },
        { OPERATION_PATH("ResignNode"), SL_STATUS_PERMISSION_DENIED },
        { OPERATION_PATH("SetNodePriority"), SL_STATUS_PERMISSION_DENIED },
        { OPERATION_PATH("RestartPersistentSubscriptions"), SL_STATUS_PERMISSION_DENIED },
        { "/event_store.client.server_features.ServerFeatures/GetSupportedMethods", SL_STATUS_OK },
        { "/event_store.client.gossip.Gossip/Read", SL_STATUS_OK },
    };
    sl_store *const store = store_with_user();
    server_rig rig;

    server_rig_init(&rig);
    rig.store = store;
    server_rig_start(&rig);
    EXPECT_CALL_STATUS(server_rig_unary(&rig, "/event_store.client.monitoring.Monitoring/Stats", SL_STR("")),
                       SL_STATUS_PERMISSION_DENIED);
    rig.settings.anonymous = true; /* nobody may then do what users may, but not what operators may */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_CALL_STATUS(server_rig_unary(&rig, rows[i].path, SL_STR("")), rows[i].status);
    server_rig_done(&rig);
    sl_store_close(store);
}

/* --- Shutdown --- */

typedef struct ending {
    unsigned calls;
    char reason[128];
} ending;

static void note_shutdown(void *ctx, const char *reason)
{
    ending *const e = ctx;

    e->calls++;
    snprintf(e->reason, sizeof e->reason, "%s", reason);
}

TEST(operations_begin_the_end_of_the_server_and_answer_before)
{
    ending e = { 0 };
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    rig.host->shutdown = note_shutdown;
    rig.host->shutdown_ctx = &e;
    EXPECT_CALL_STATUS(server_rig_unary(&rig, OPERATION_PATH("Shutdown"), SL_STR("")), SL_STATUS_OK);
    EXPECT_EQ(e.calls, 1);
    EXPECT_STR(e.reason, "asked for by a client");
    rig.host->shutdown = NULL;
    EXPECT_CALL_STATUS(server_rig_unary(&rig, OPERATION_PATH("Shutdown"), SL_STR("")),
                       SL_STATUS_FAILED_PRECONDITION);
    EXPECT_EQ(e.calls, 1);
    server_rig_done(&rig);
}

/* --- scavenging --- */

typedef struct scavenge_answer {
    char id[64];
    sl_scavenge_result result;
} scavenge_answer;

static scavenge_answer read_scavenge(const server_call *call)
{
    sl_proto_reader reader = sl_proto_reader_from(call->messages[0]);
    sl_proto_field field;
    scavenge_answer read = { 0 };

    while (sl_proto_next(&reader, &field)) {
        if (field.number == 1)
            snprintf(read.id, sizeof read.id, "%.*s", (int)field.bytes.bytes, field.bytes.data);
        else if (field.number == 2)
            read.result = (sl_scavenge_result)field.value;
    }
    EXPECT(reader.reason == NULL);
    return read;
}

/* StopScavengeReq { options { scavenge_id } } */
static size_t stop_request(const char *id, char request[static 128])
{
    const size_t bytes = strlen(id);

    EXPECT(bytes < 100);
    request[0] = 0x0a;
    request[1] = (char)(bytes + 2);
    request[2] = 0x0a;
    request[3] = (char)bytes;
    memcpy(request + 4, id, bytes);
    return bytes + 4;
}

static server_call *post(server_rig *rig, const char *path, sl_str request)
{
    server_call *const call = server_rig_call(rig, path);

    server_call_send(call, request);
    server_call_half_close(call);
    return call;
}

static server_call *stop(server_rig *rig, const char *id)
{
    char request[128];
    const size_t bytes = stop_request(id, request);

    return server_rig_unary(rig, OPERATION_PATH("StopScavenge"), (sl_str){ request, bytes });
}

static void run_until_scavenged(server_rig *rig)
{
    while (rig->host->scavenge != NULL) {
        server_rig_wait(rig);
        server_rig_run(rig);
    }
}

static void start_on_journal(server_rig *rig, lab *w)
{
    *w = lab_open(0);
    lab_append_many(w, 50); /* less than a segment: the store does nothing by itself */
    server_rig_init(rig);
    rig->store = w->store;
    server_rig_start(rig);
}

/* All calls come in one turn, so the answer of the store cannot come between them. */
TEST(a_scavenge_has_a_name_and_a_second_one_is_told_the_name_of_the_first)
{
    server_call *first, *second, *third;
    scavenge_answer started, again;
    server_rig rig;
    lab w;

    start_on_journal(&rig, &w);
    first = post(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    second = post(&rig, OPERATION_PATH("StartScavenge"), SL_STR("\x0a\x04\x08\x04\x10\x07"));
    server_rig_run_until_ended(&rig, second);
    EXPECT_CALL_STATUS(first, SL_STATUS_OK);
    EXPECT_CALL_STATUS(second, SL_STATUS_OK);
    started = read_scavenge(first);
    again = read_scavenge(second);
    EXPECT_EQ(started.result, SL_SCAVENGE_RESULT_STARTED);
    EXPECT_EQ(strlen(started.id), SL_UUID_TEXT_BYTES);
    EXPECT_EQ(again.result, SL_SCAVENGE_RESULT_IN_PROGRESS);
    EXPECT_STR(again.id, started.id);
    run_until_scavenged(&rig);
    EXPECT(server_rig_logged(&rig, "scavenge ended"));
    EXPECT(server_rig_logged(&rig, started.id));
    third = server_rig_unary(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    EXPECT_EQ(read_scavenge(third).result, SL_SCAVENGE_RESULT_STARTED);
    EXPECT(strcmp(read_scavenge(third).id, started.id) != 0);
    run_until_scavenged(&rig);
    server_rig_done(&rig);
    lab_close(&w);
}

static void note_done(void *ctx, const sl_scavenged *result)
{
    EXPECT_OK(result->err);
    *(bool *)ctx = true;
}

/* The store is busy with one that nobody asked for, as when it takes on a segment by itself. That one is begun in the same
 * breath, so its answer cannot be there yet. */
TEST(a_scavenge_that_comes_while_the_store_does_its_own_is_run_after_it)
{
    const sl_scavenge own = { .now_ns = 1 };
    bool own_is_done = false;
    server_call *call, *again;
    server_rig rig;
    lab w;

    start_on_journal(&rig, &w);
    EXPECT_OK(sl_store_scavenge(w.store, &own, note_done, &own_is_done));
    call = post(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    server_rig_turn(&rig);
    server_rig_run_until_ended(&rig, call);
    EXPECT_EQ(read_scavenge(call).result, SL_SCAVENGE_RESULT_STARTED);
    server_rig_run_until(&rig, &own_is_done);
    again = server_rig_unary(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    EXPECT_EQ(read_scavenge(again).result, SL_SCAVENGE_RESULT_IN_PROGRESS);
    EXPECT(!server_rig_logged(&rig, "scavenge ended"));
    server_rig_advance(&rig, UINT64_C(100000000));
    run_until_scavenged(&rig);
    EXPECT(server_rig_logged(&rig, "scavenge ended"));
    server_rig_done(&rig);
    lab_close(&w);
}

TEST(a_scavenge_that_is_to_be_stopped_is_told_to_go_on_and_another_name_is_not_found)
{
    server_call *start, *stopped, *other;
    bool own_is_done = false;
    scavenge_answer started;
    server_rig rig;
    lab w;

    start_on_journal(&rig, &w);
    EXPECT_OK(sl_store_scavenge(w.store, &(sl_scavenge){ .now_ns = 1 }, note_done, &own_is_done));
    start = post(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    server_rig_run_until_ended(&rig, start); /* waits for its retry: time stands still */
    started = read_scavenge(start);
    stopped = stop(&rig, started.id);
    EXPECT_CALL_STATUS(stopped, SL_STATUS_OK);
    EXPECT_EQ(read_scavenge(stopped).result, SL_SCAVENGE_RESULT_IN_PROGRESS);
    EXPECT_STR(read_scavenge(stopped).id, started.id);
    other = stop(&rig, "0f0f0f0f-0000-4000-8000-000000000000");
    EXPECT_CALL_STATUS(other, SL_STATUS_NOT_FOUND);
    EXPECT_STR(server_call_trailer(other, "exception"), "scavenge-not-found");
    EXPECT_STR(server_call_trailer(other, "scavenge-id"), "0f0f0f0f-0000-4000-8000-000000000000");
    EXPECT_CALL_STATUS(stop(&rig, ""), SL_STATUS_NOT_FOUND);
    server_rig_done(&rig); /* while it waits: nothing is left behind */
    lab_close(&w);
}

/* The store is closed after the host is freed and then tells that the scavenge ended: to nobody. */
TEST(a_scavenge_that_outlives_the_host_harms_nobody)
{
    server_call *call;
    server_rig rig;
    lab w;

    start_on_journal(&rig, &w);
    call = post(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    while (!call->ended && rig.host->scavenge == NULL)
        server_rig_turn(&rig);
    server_rig_done(&rig);
    lab_close(&w);
}

/* It would rewrite files in the time that is left for the last writes. */
TEST(a_server_that_stops_begins_no_scavenge)
{
    server_call *asked, *late;
    bool own_is_done = false;
    server_rig rig;
    lab w;

    start_on_journal(&rig, &w);
    late = server_rig_call(&rig, OPERATION_PATH("StartScavenge")); /* its request comes later */
    server_rig_run(&rig);
    EXPECT_OK(sl_store_scavenge(w.store, &(sl_scavenge){ .now_ns = 1 }, note_done, &own_is_done));
    asked = post(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    server_rig_run_until_ended(&rig, asked);
    EXPECT(rig.host->scavenge != NULL); /* until the store's own one is over */
    sl_host_stop(rig.host, "SIGTERM");
    EXPECT(rig.host->scavenge == NULL);
    EXPECT(server_rig_logged(&rig, "scavenge ended"));
    server_rig_run_until(&rig, &own_is_done);
    server_call_send(late, SL_STR(""));
    server_call_half_close(late);
    server_rig_run_until_ended(&rig, late);
    EXPECT_CALL_STATUS(late, SL_STATUS_UNAVAILABLE);
    EXPECT_STR(late->message, "The server is shutting down: SIGTERM");
    EXPECT(rig.host->scavenge == NULL);
    server_rig_done(&rig);
    lab_close(&w);
}

TEST(a_scavenge_of_a_store_in_memory_is_refused_with_a_sentence)
{
    server_call *call;
    server_rig rig;

    server_rig_init(&rig);
    server_rig_start(&rig);
    call = server_rig_unary(&rig, OPERATION_PATH("StartScavenge"), SL_STR(""));
    EXPECT_CALL_STATUS(call, SL_STATUS_FAILED_PRECONDITION);
    EXPECT(strstr(call->message, "in memory") != NULL);
    EXPECT(rig.host->scavenge == NULL);
    EXPECT_CALL_STATUS(stop(&rig, "x"), SL_STATUS_NOT_FOUND);
    server_rig_done(&rig);
}
