/* tests/unit/server/test_features.c — what a client learns before it does anything: features and members. */
#include "rig.h"

#include "server/method.h"
#include "wire/server_control.h"

#include <string.h>

#define FEATURES_PATH "/event_store.client.server_features.ServerFeatures/GetSupportedMethods"
#define GOSSIP_PATH   "/event_store.client.gossip.Gossip/Read"

typedef struct features_rig {
    server_rig rig;
    sl_arena arena; /* what was decoded */
} features_rig;

static void begin(features_rig *f)
{
    server_rig_init(&f->rig);
    sl_arena_init(&f->arena, &sl_alloc_default, (sl_arena_sizes){ 4096, 1024 * 1024 });
}

static void end(features_rig *f)
{
    sl_arena_done(&f->arena);
    server_rig_done(&f->rig);
}

/* --- features --- */

static sl_supported_methods ask_features(features_rig *f)
{
    server_call *const call = server_rig_unary(&f->rig, FEATURES_PATH, SL_STR(""));
    sl_supported_methods methods;
    const char *reason;

    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_EQ(call->message_count, 1);
    EXPECT_OK(sl_supported_methods_decode(call->messages[0], &f->arena, &methods, &reason));
    return methods;
}

static const sl_supported_method *find(const sl_supported_methods *methods, const char *service,
                                       const char *method)
{
    for (size_t i = 0; i < methods->method_count; i++) {
        if (sl_str_equal(methods->methods[i].service, sl_str_from(service)) &&
            sl_str_equal(methods->methods[i].method, sl_str_from(method)))
            return &methods->methods[i];
    }
    return NULL;
}

TEST(features_list_every_method_that_is_offered_once_and_in_lower_case)
{
    features_rig f;
    sl_supported_methods methods;

    begin(&f);
    server_rig_start(&f.rig);
    methods = ask_features(&f);
    EXPECT_EQ(methods.method_count, sl_method_count);
    for (size_t i = 0; i < methods.method_count; i++) {
        const sl_supported_method *const row = &methods.methods[i];
        EXPECT_EQ(row->service.bytes, sl_methods[i]->service.bytes);
        EXPECT_EQ(row->feature_count, sl_methods[i]->feature_count);
        for (size_t j = 0; j < row->method.bytes; j++)
            EXPECT(row->method.data[j] < 'A' || row->method.data[j] > 'Z');
        for (size_t j = 0; j < row->service.bytes; j++)
            EXPECT(row->service.data[j] < 'A' || row->service.data[j] > 'Z');
    }
    EXPECT(find(&methods, "event_store.client.gossip.gossip", "read") != NULL);
    EXPECT(find(&methods, "event_store.client.operations.operations", "restartpersistentsubscriptions") !=
           NULL);
    EXPECT(find(&methods, "event_store.client.server_features.serverfeatures", "getsupportedmethods") !=
           NULL);
    EXPECT(find(&methods, "event_store.client.monitoring.monitoring", "stats") != NULL);
    EXPECT(find(&methods, "event_store.client.projections.projections", "create") == NULL);
    end(&f);
}

/* Clients ask one by one whether a group of a stream, or of $all, can be made, read, listed ...; what is missing here they do by HTTP/1.1, which
 * there is none of. */
TEST(features_say_of_every_method_of_groups_that_it_works_for_streams_and_for_all)
{
    static const char *const names[] = { "create", "update",           "delete",
                                         "read",   "getinfo",          "replayparked",
                                         "list",   "restartsubsystem", "truncateparked" };
    features_rig f;
    sl_supported_methods methods;

    begin(&f);
    server_rig_start(&f.rig);
    methods = ask_features(&f);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const sl_supported_method *const row =
            find(&methods, "event_store.client.persistent_subscriptions.persistentsubscriptions", names[i]);

        assert_non_null(row);
        EXPECT(row->feature_count >= 2);
        EXPECT(sl_str_equal(row->features[0], SL_STR("stream")));
        EXPECT(sl_str_equal(row->features[1], SL_STR("all")));
    }
    end(&f);
}

/* Node's client compares with 21.10.1 by the rules of semver; Go and Rust want numbers in all three parts. */
TEST(features_give_a_version_that_every_client_understands)
{
    features_rig f;
    sl_str version, part;
    uint64_t major = 0, number;

    begin(&f);
    server_rig_start(&f.rig);
    version = ask_features(&f).version;
    EXPECT(sl_str_cut(version, '.', &part, &version));
    EXPECT_OK(sl_str_parse_u64(part, &major));
    EXPECT(major >= 22);
    EXPECT(sl_str_cut(version, '.', &part, &version));
    EXPECT_OK(sl_str_parse_u64(part, &number));
    EXPECT_OK(sl_str_parse_u64(version, &number));
    end(&f);
}

/* --- members --- */

static sl_cluster_member ask_members(features_rig *f)
{
    server_peer *const peer = server_rig_connect(&f->rig, "127.0.0.1:40001");
    server_call *const call = server_rig_unary_with(
        &f->rig, &(server_call_options){ .peer = peer, .path = GOSSIP_PATH }, SL_STR(""));
    sl_cluster_info info;
    const char *reason;

    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_OK(sl_cluster_info_decode(call->messages[0], &f->arena, &info, &reason));
    EXPECT_EQ(info.member_count, 1);
    return info.members[0];
}

static void expect_place(features_rig *f, const char *address, uint32_t port)
{
    const sl_cluster_member member = ask_members(f);

    EXPECT(sl_str_equal(member.address, sl_str_from(address)));
    EXPECT_EQ(member.port, port);
}

TEST(a_gossip_has_one_living_leader)
{
    features_rig f;
    sl_cluster_member member;

    begin(&f);
    server_rig_start(&f.rig);
    member = ask_members(&f);
    EXPECT_EQ(member.state, SL_MEMBER_LEADER);
    EXPECT(member.is_alive);
    EXPECT(sl_uuid_equal(member.instance, f.rig.host->instance));
    EXPECT_EQ(member.now_ticks, f.rig.time.wall_ns / SL_WIRE_TICK_NS);
    end(&f);
}

/* A call that came before the end began is still answered; new ones are refused by the dispatcher. */
TEST(a_gossip_tells_that_the_server_stops)
{
    features_rig f;
    sl_cluster_info info;
    server_call *call;
    const char *reason;

    begin(&f);
    server_rig_start(&f.rig);
    call = server_rig_call(&f.rig, GOSSIP_PATH);
    server_rig_run(&f.rig);
    sl_host_stop(f.rig.host, "SIGTERM");
    server_call_send(call, SL_STR(""));
    server_call_half_close(call);
    server_rig_run_until_ended(&f.rig, call);
    EXPECT_CALL_STATUS(call, SL_STATUS_OK);
    EXPECT_OK(sl_cluster_info_decode(call->messages[0], &f.arena, &info, &reason));
    EXPECT_EQ(info.members[0].state, SL_MEMBER_SHUTTING_DOWN);
    end(&f);
}

TEST(a_gossip_gives_the_address_that_the_client_itself_has_used)
{
    static const struct {
        const char *authority, *address;
        uint32_t port;
    } rows[] = {
        { "localhost:2113", "localhost", 2113 },
        { "sluice.example.com:443", "sluice.example.com", 443 }, /* behind a proxy */
        { "127.0.0.1:12113", "127.0.0.1", 12113 },               /* a mapped port */
        { "[::1]:2113", "[::1]", 2113 },
        { "name-without-port", "name-without-port", 4711 },
        { "[::1]", "[::1]", 4711 },
    };
    features_rig f;

    begin(&f);
    server_rig_start(&f.rig);
    f.rig.host->port = 4711; /* as a driver that has found a free one */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.rig.authority = rows[i].authority;
        expect_place(&f, rows[i].address, rows[i].port);
    }
    end(&f);
}

TEST(a_gossip_gives_the_same_address_to_every_call_of_a_connection)
{
    server_call *first, *second;
    features_rig f;

    begin(&f);
    server_rig_start(&f.rig);
    first = server_rig_unary(&f.rig, GOSSIP_PATH, SL_STR(""));
    second = server_rig_unary(&f.rig, GOSSIP_PATH, SL_STR(""));
    EXPECT(first->peer == second->peer);
    EXPECT(sl_str_equal(first->messages[0], second->messages[0])); /* time stands still */
    end(&f);
}

/* What cannot be an address is not handed on. Blanks, slashes and the like do not even come here: nghttp2 refuses them. */
TEST(a_gossip_falls_back_to_its_own_address_when_the_clients_is_none)
{
    static const char *const rows[] = { "user@host:1", "host:0", "host:65536", "host:port:thing]",
                                        "host:",       ":2113",  "[::1]x" };
    char long_name[SL_AUTHORITY_BYTES_MAX + 2] = "";
    features_rig f;

    begin(&f);
    server_rig_start(&f.rig);
    f.rig.host->port = 4711;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.rig.authority = rows[i];
        expect_place(&f, "127.0.0.1", 4711);
    }
    memset(long_name, 'a', SL_AUTHORITY_BYTES_MAX + 1);
    f.rig.authority = long_name;
    expect_place(&f, "127.0.0.1", 4711);
    end(&f);
}

TEST(a_gossip_gives_what_the_operator_has_said_before_everything_else)
{
    static const struct {
        const char *advertise, *address;
        uint32_t port;
    } rows[] = {
        { "orders.internal", "orders.internal", 4711 },
        { "orders.internal:31113", "orders.internal", 31113 },
        { "2001:db8::7", "[2001:db8::7]", 4711 }, /* clients put the port behind it */
        { "not an address", "localhost", 2113 },
    };
    features_rig f;

    begin(&f);
    server_rig_start(&f.rig);
    f.rig.host->port = 4711;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.rig.settings.advertise_host = rows[i].advertise;
        expect_place(&f, rows[i].address, rows[i].port);
    }
    end(&f);
}

TEST(a_gossip_never_gives_an_address_that_means_all_of_them)
{
    static const struct {
        const char *host, *address;
    } rows[] = {
        { "0.0.0.0", "127.0.0.1" }, { "::", "127.0.0.1" }, { "10.1.2.3", "10.1.2.3" }, { "::1", "[::1]" }
    };
    features_rig f;

    begin(&f);
    f.rig.authority = "host:0"; /* says nothing */
    server_rig_start(&f.rig);
    f.rig.host->port = 4711;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.rig.settings.host = rows[i].host;
        expect_place(&f, rows[i].address, 4711);
    }
    end(&f);
}
