/* tests/unit/server/auth_rig.c — see auth_rig.h. */
#include "auth_rig.h"

#include <sodium.h>
#include <stdio.h>

static void note_commit(void *ctx, const sl_commit *commit)
{
    *(sl_err *)ctx = commit->err;
}

void auth_rig_append(sl_store *store, const char *stream, const char *type, const char *data)
{
    static int64_t id; /* an id that is there already would be taken for a repetition */
    const sl_event_in event = { .id = sl_uuid_from_halves(++id, 77),
                                .type = sl_str_from(type),
                                .data = sl_str_from(data),
                                .is_json = true,
                                .created_ns = 1234567890 };
    const sl_op op = { .kind = SL_OP_APPEND,
                       .append = { .stream = sl_str_from(stream), .events = &event, .event_count = 1 } };
    sl_err err = SL_ERR_AGAIN;

    EXPECT_OK(sl_store_submit(store, &(sl_batch){ .ops = &op, .op_count = 1 }, note_commit, &err));
    sl_store_turn(store);
    sl_store_poll(store);
    EXPECT_OK(err);
}

const char *auth_rig_record(const char *name, const char *password, const char *groups, bool disabled)
{
    static char json[1024];
    char hash[crypto_pwhash_STRBYTES];

    EXPECT(sodium_init() >= 0);
    EXPECT_EQ(crypto_pwhash_str(hash, password, strlen(password), crypto_pwhash_OPSLIMIT_MIN,
                                crypto_pwhash_MEMLIMIT_MIN),
              0);
    (void)snprintf(json, sizeof json,
                   "{\"loginName\":\"%s\",\"fullName\":\"\",\"groups\":[%s],\"hash\":\"%s\",\"disabled\":%s}",
                   name, groups, hash, disabled ? "true" : "false");
    return json;
}

void auth_rig_user(sl_store *store, const char *name, const char *password, const char *groups)
{
    char stream[128];

    (void)snprintf(stream, sizeof stream, "$user-%s", name);
    auth_rig_append(store, stream, "$UserCreated", auth_rig_record(name, password, groups, false));
    auth_rig_append(store, "$users", "$User", name);
}

const char *auth_rig_basic(const char *name, const char *password)
{
    static char header[4096];
    char plain[2048];
    const int bytes = snprintf(plain, sizeof plain, "%s:%s", name, password);

    memcpy(header, "Basic ", 6);
    sodium_bin2base64(header + 6, sizeof header - 6, (const unsigned char *)plain, (size_t)bytes,
                      sodium_base64_VARIANT_ORIGINAL);
    return header;
}

static void note_verdict(void *ctx, sl_auth_verdict verdict, const sl_identity *identity)
{
    auth_seen *const seen = ctx;

    seen->calls++;
    seen->done = true;
    seen->verdict = verdict;
    EXPECT(identity->name.bytes < sizeof seen->name);
    if (identity->name.bytes > 0)
        memcpy(seen->name, identity->name.data, identity->name.bytes);
    seen->group_count = identity->group_count;
    seen->is_admin = identity->is_admin;
    seen->is_operator = identity->is_operator;
    seen->is_trusted = identity->is_trusted;
}

void auth_rig_ask(server_rig *rig, const char *header, const char *peer, auth_seen *seen)
{
    *seen = (auth_seen){ 0 };
    sl_auth_check(rig->host->auth, sl_str_from(header), sl_str_from(peer), &seen->ticket, note_verdict, seen);
}

auth_seen auth_rig_check(server_rig *rig, const char *header, const char *peer)
{
    auth_seen seen;

    auth_rig_ask(rig, header, peer, &seen);
    if (!seen.done)
        server_rig_run_until(rig, &seen.done);
    EXPECT_EQ(seen.calls, 1);
    EXPECT(seen.ticket.job == NULL);
    return seen;
}

void auth_rig_start(server_rig *rig)
{
    const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 5, 6 } };

    server_rig_init(rig);
    EXPECT_OK(sl_store_open_memory(&setup, &rig->store));
    auth_rig_user(rig->store, "root", "root-secret", "\"$admins\"");
    server_rig_start(rig);
}

void auth_rig_done(server_rig *rig)
{
    sl_store *const store = rig->store;

    server_rig_done(rig);
    sl_store_close(store);
}
