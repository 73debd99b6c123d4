/* server/access.c — finds the lists that decide about a stream, and remembers them.
 *
 *      check("orders", WRITE) --> last event of "$$orders" --> its $acl names $w?  --> decided
 *                                                              else last event of "$settings" --> its default names $w?
 *                                                              else what is built in
 *
 * A list is remembered under the revision of the event that it was read from. The store knows the newest revision
 * of each stream in memory, so a check that finds the same number there needs no disk and cannot be out of date.
 *
 * An event that is on its way to the disk has a newer number but cannot be read, and in a $$ stream it hides the
 * one before already. Until it is durable the one before counts if it is remembered; if not, the check waits.
 * Without that a stream would be open to everybody for some milliseconds whenever its list is replaced.
 *
 * Reading may take the disk some time. Such a reading belongs to this file and not to who asked: it goes on when
 * the asker is gone, is shared by all who ask for the same stream, and there are never more than READINGS_MAX. */
#include "server/access.h"

#include "server/acl.h"
#include "store/metadata.h"

#include <assert.h>

#define METADATA_PREFIX "$$"
#define SETTINGS_STREAM "$settings"

enum {
    DOCUMENTS_MAX = 8 * 1024,                  /* of the streams with metadata: those in use at a time */
    DOCUMENTS_BYTES_MAX = 16 * 1024 * 1024,    /* an $acl may be as long as metadata can be */
    DOCUMENTS_MIN = 2,                         /* a check looks at two: the stream's own and the defaults */
    READINGS_MAX = 64,                         /* at the same time; each has an open cursor */
    NAME_BYTES_MAX = SL_STREAM_NAME_BYTES_MAX, /* a longer $$ name has no stream */
};

enum {
    ACL_OWN = 0, /* $acl of a $$ stream */
    ACL_USER_STREAMS = 0,
    ACL_SYSTEM_STREAMS = 1, /* both of $settings */
    ACLS_MAX = 2
};

/* What the last event of one stream says about rights; NULL where it says nothing. */
typedef struct document {
    sl_map_node by_name;
    sl_list used; /* access->used, longest ago first */
    uint64_t revision;
    sl_acl *acls[ACLS_MAX];
    size_t bytes; /* of all, with the name */
    sl_str name;  /* behind the struct */
} document;

typedef struct reading {
    sl_list node; /* access->readings */
    sl_cursor *cursor;
    bool failed;
    size_t bytes; /* of this, with the name */
    sl_str name;  /* behind the struct */
} reading;

struct sl_access {
    sl_host *host;
    sl_map documents;
    sl_list used;
    size_t documents_bytes;
    sl_list readings;
    size_t reading_count;
    sl_reader_node driver; /* carries readings on when nobody asks again */
    sl_map_node *table[DOCUMENTS_MAX];
};

typedef enum found {
    FOUND,   /* *ret_document */
    NOTHING, /* the stream has no event that can be read */
    WAITING, /* for the disk */
    FAILED,
} found;

/* --- what is remembered --- */

static document *remembered(sl_access *access, sl_str name)
{
    const uint64_t hash = sl_hash(access->host->seed, name.data, name.bytes);

    for (sl_map_node *node = sl_map_find(&access->documents, hash); node != NULL; node = sl_map_next(node)) {
        document *const doc = SL_CONTAINER_OF(node, document, by_name);

        if (sl_str_equal(doc->name, name))
            return doc;
    }
    return NULL;
}

static void drop(sl_access *access, document *doc)
{
    sl_map_remove(&access->documents, &doc->by_name);
    sl_list_remove(&doc->used);
    access->documents_bytes -= doc->bytes;
    for (size_t i = 0; i < ACLS_MAX; i++)
        sl_acl_free(access->host->alloc, doc->acls[i]);
    sl_alloc_give(access->host->alloc, doc, sizeof *doc + doc->name.bytes);
}

static void make_room(sl_access *access)
{
    while (access->documents.count > DOCUMENTS_MIN &&
           (access->documents.count > DOCUMENTS_MAX || access->documents_bytes > DOCUMENTS_BYTES_MAX))
        drop(access, SL_CONTAINER_OF(sl_list_first(&access->used), document, used));
}

static void touch(sl_access *access, document *doc)
{
    sl_list_remove(&doc->used);
    sl_list_push_back(&access->used, &doc->used);
}

/* SL_ERR_EMPTY, nothing said, is as good an answer as any. */
static sl_err parse_into(sl_access *access, sl_str json, const char *name, sl_acl **acl, size_t *bytes)
{
    const sl_err err = sl_acl_parse(json, name, access->host->alloc, acl);

    *bytes += err == SL_OK ? (*acl)->bytes : 0;
    return err == SL_ERR_EMPTY ? SL_OK : err;
}

static sl_err parse(sl_access *access, document *doc, sl_str json)
{
    sl_err err;

    if (!sl_str_equal(doc->name, SL_STR(SETTINGS_STREAM)))
        return parse_into(access, json, "$acl", &doc->acls[ACL_OWN], &doc->bytes);
    err = parse_into(access, json, "$userStreamAcl", &doc->acls[ACL_USER_STREAMS], &doc->bytes);
    if (err == SL_OK)
        err = parse_into(access, json, "$systemStreamAcl", &doc->acls[ACL_SYSTEM_STREAMS], &doc->bytes);
    return err;
}

static document *remember(sl_access *access, sl_str name, const sl_event *event)
{
    const size_t bytes = sizeof(document) + name.bytes;
    document *const old = remembered(access, name);
    document *const doc = sl_alloc_take(access->host->alloc, bytes);

    if (doc == NULL)
        return NULL;
    *doc =
        (document){ .revision = event->revision, .bytes = bytes, .name = { (char *)(doc + 1), name.bytes } };
    memcpy(doc + 1, name.data, name.bytes);
    sl_list_push_back(&access->used, &doc->used);
    sl_map_insert(&access->documents, &doc->by_name, sl_hash(access->host->seed, name.data, name.bytes));
    if (old != NULL)
        drop(access, old);
    if (parse(access, doc, event->data) == SL_OK) {
        access->documents_bytes += doc->bytes;
        make_room(access);
        return doc;
    }
    access->documents_bytes += doc->bytes;
    drop(access, doc);
    return NULL;
}

/* --- reading --- */

static void end_reading(sl_access *access, reading *r)
{
    sl_list_remove(&r->node);
    access->reading_count--;
    sl_cursor_close(r->cursor);
    sl_alloc_give(access->host->alloc, r, r->bytes);
}

static reading *find_reading(sl_access *access, sl_str name)
{
    SL_LIST_EACH (node, &access->readings) {
        reading *const r = SL_CONTAINER_OF(node, reading, node);

        if (sl_str_equal(r->name, name))
            return r;
    }
    return NULL;
}

static sl_err begin_reading(sl_access *access, sl_str name, reading **ret_reading)
{
    const sl_read how = { .stream = name,
                          .backwards = true,
                          .from = SL_REVISION_MAX,
                          .now_ns = sl_clock_wall_ns(access->host->clock) };
    const size_t bytes = sizeof(reading) + name.bytes;
    reading *const r = sl_alloc_take(access->host->alloc, bytes);
    sl_err err;

    if (r == NULL)
        return SL_ERR_NOMEM;
    *r = (reading){ .bytes = bytes, .name = { (char *)(r + 1), name.bytes } };
    memcpy(r + 1, name.data, name.bytes);
    err = sl_store_read(access->host->store, &how, &r->cursor);
    if (err != SL_OK) {
        sl_alloc_give(access->host->alloc, r, bytes);
        return err;
    }
    sl_list_push_back(&access->readings, &r->node);
    access->reading_count++;
    *ret_reading = r;
    return SL_OK;
}

static found ask_disk(sl_access *access, reading *r, document **ret_document)
{
    sl_event event;
    uint32_t count;
    const sl_err err = r->failed ? SL_ERR_IO : sl_cursor_next(r->cursor, &event, 1, &count);

    if (err == SL_ERR_AGAIN)
        return WAITING;
    if (err == SL_ERR_EMPTY || err == SL_ERR_STREAM_DELETED)
        return NOTHING;
    if (err != SL_OK)
        return FAILED;
    *ret_document = remember(access, r->name, &event);
    return *ret_document == NULL ? FAILED : FOUND;
}

/* For one who asks: the reading is over unless this gives WAITING. */
static found carry_on(sl_access *access, reading *r, document **ret_document)
{
    const found result = ask_disk(access, r, ret_document);

    if (result != WAITING)
        end_reading(access, r);
    return result;
}

static void wait_for_readings(sl_access *access)
{
    if (!sl_list_empty(&access->readings))
        sl_tail_wait_disk(access->host->tail, &access->driver);
}

/* A failure is kept until the next time, so that those who wait hear of it: they would begin anew else, and again. */
static void drive(void *ctx)
{
    sl_access *const access = ctx;
    document *unused;

    SL_LIST_EACH_SAFE (node, &access->readings) {
        reading *const r = SL_CONTAINER_OF(node, reading, node);
        const found result = r->failed ? NOTHING : ask_disk(access, r, &unused);

        r->failed = result == FAILED;
        if (result == FOUND || result == NOTHING)
            end_reading(access, r);
    }
    wait_for_readings(access);
}

static found read_now(sl_access *access, sl_str name, document **ret_document)
{
    reading *r;
    found result;
    sl_err err;

    if (access->reading_count >= READINGS_MAX)
        return WAITING;
    err = begin_reading(access, name, &r);
    if (err == SL_ERR_NOT_FOUND || err == SL_ERR_STREAM_DELETED)
        return NOTHING;
    if (err != SL_OK)
        return FAILED;
    result = carry_on(access, r, ret_document);
    wait_for_readings(access);
    return result;
}

/* A reading that began earlier may show an event that is not the last one any more; then it is done again. */
static found read_last(sl_access *access, sl_str name, uint64_t revision, document **ret_document)
{
    reading *const begun = find_reading(access, name);
    found result = begun == NULL ? NOTHING : carry_on(access, begun, ret_document);

    if (result == NOTHING || (result == FOUND && (*ret_document)->revision != revision))
        result = read_now(access, name, ret_document);
    return result;
}

/* The stream has an event, but shows none. The first one of all changes nothing before it is durable. Nothing but
 * an event on its way hides others in a $$ stream; $settings may have a $maxAge. */
static found settle_hidden(sl_access *access, sl_str name, uint64_t revision, document *before,
                           document **ret_document)
{
    if (before != NULL) {
        touch(access, before);
        *ret_document = before;
        return FOUND;
    }
    if (revision == 0 || !sl_str_starts_with(name, SL_STR(METADATA_PREFIX)))
        return NOTHING;
    return sl_store_problem(access->host->store)[0] == '\0' ? WAITING : FAILED;
}

static found look_up(sl_access *access, sl_str name, document **ret_document)
{
    sl_stream_info info;
    document *before;
    found result;

    sl_store_stream(access->host->store, name, &info);
    if (info.revision == SL_REVISION_NONE || info.state == SL_STREAM_TOMBSTONED)
        return NOTHING;
    before = remembered(access, name);
    if (before != NULL && before->revision == info.revision) {
        touch(access, before);
        *ret_document = before;
        return FOUND;
    }
    result = read_last(access, name, info.revision, ret_document);
    if (result == NOTHING)
        return settle_hidden(access, name, info.revision, remembered(access, name), ret_document);
    return result;
}

/* --- the question --- */

typedef struct target {
    sl_str owner; /* the stream that the rights belong to */
    sl_right right;
} target;

/* False: nobody may do that, whatever lists say. */
static bool find_target(sl_str stream, sl_action action, target *ret_target)
{
    static const sl_right plain[] = { SL_RIGHT_READ, SL_RIGHT_WRITE, SL_RIGHT_DELETE };
    sl_str owner = stream;
    const bool is_metadata = sl_metadata_owner(stream, &owner);

    if (action == SL_ACTION_DELETE && is_metadata)
        return false;
    if (action != SL_ACTION_READ && sl_str_equal(stream, SL_STR("$all")))
        return false;
    *ret_target = (target){ .owner = owner, .right = plain[action] };
    if (is_metadata)
        ret_target->right = action == SL_ACTION_READ ? SL_RIGHT_META_READ : SL_RIGHT_META_WRITE;
    return true;
}

static found look_up_own(sl_access *access, sl_str owner, document **ret_document)
{
    char name[NAME_BYTES_MAX];
    const size_t prefix_bytes = sizeof METADATA_PREFIX - 1;

    if (owner.bytes > sizeof name - prefix_bytes)
        return NOTHING;
    memcpy(name, METADATA_PREFIX, prefix_bytes);
    memcpy(name + prefix_bytes, owner.data, owner.bytes);
    return look_up(access, (sl_str){ name, owner.bytes + prefix_bytes }, ret_document);
}

static found decide(sl_access *access, const sl_acl_question *question, sl_str owner, bool *ret_allowed)
{
    document *own = NULL, *settings = NULL;
    const sl_acl *own_acl = NULL, *defaults = NULL;
    found result = look_up_own(access, owner, &own);

    if (result == WAITING || result == FAILED)
        return result;
    if (result == FOUND)
        own_acl = own->acls[ACL_OWN];
    if (!sl_acl_decides(own_acl, question->right)) {
        result = look_up(access, SL_STR(SETTINGS_STREAM), &settings);
        if (result == WAITING || result == FAILED)
            return result;
        if (result == FOUND)
            defaults = settings->acls[question->is_system ? ACL_SYSTEM_STREAMS : ACL_USER_STREAMS];
    }
    *ret_allowed = sl_acl_allows(question, own_acl, defaults);
    return FOUND;
}

static sl_access_verdict deny(sl_access *access)
{
    access->host->counters.access_denied++;
    return SL_ACCESS_DENIED;
}

sl_access_verdict sl_access_check(sl_access *access, const sl_identity *identity, sl_str stream,
                                  sl_action action, sl_reader_node *reader)
{
    sl_acl_question question = { .identity = identity, .admit_anonymous = access->host->settings->anonymous };
    target asked;
    bool allowed = false;

    if (identity->is_revoked)
        return deny(access);
    if (identity->is_trusted)
        return SL_ACCESS_ALLOWED;
    if (!find_target(stream, action, &asked))
        return deny(access);
    if (identity->name.bytes == 0 && !question.admit_anonymous)
        return deny(access); /* whatever lists say: strangers cost no disk */
    if (identity->is_admin)
        return SL_ACCESS_ALLOWED;
    question.right = asked.right;
    question.is_system = sl_str_starts_with(asked.owner, SL_STR("$"));
    switch (decide(access, &question, asked.owner, &allowed)) {
    case FOUND:
    case NOTHING: return allowed ? SL_ACCESS_ALLOWED : deny(access);
    case WAITING: sl_tail_wait_disk(access->host->tail, reader); return SL_ACCESS_PENDING;
    case FAILED: break;
    }
    return SL_ACCESS_FAILED;
}

/* --- beginning and end --- */

sl_err sl_access_new(sl_host *host, sl_access **ret_access)
{
    sl_access *const access = sl_alloc_take(host->alloc, sizeof *access);

    if (access == NULL)
        return SL_ERR_NOMEM;
    access->host = host;
    access->documents_bytes = 0;
    access->reading_count = 0;
    sl_map_init(&access->documents, access->table, DOCUMENTS_MAX);
    sl_list_init(&access->used);
    sl_list_init(&access->readings);
    sl_reader_init(&access->driver, SL_STR(""), drive, access);
    *ret_access = access;
    return SL_OK;
}

void sl_access_free(sl_access *access)
{
    if (access == NULL)
        return;
    sl_tail_forget(access->host->tail, &access->driver);
    while (!sl_list_empty(&access->readings))
        end_reading(access, SL_CONTAINER_OF(sl_list_first(&access->readings), reading, node));
    while (!sl_list_empty(&access->used))
        drop(access, SL_CONTAINER_OF(sl_list_first(&access->used), document, used));
    assert(access->documents_bytes == 0);
    sl_alloc_give(access->host->alloc, access, sizeof *access);
}
