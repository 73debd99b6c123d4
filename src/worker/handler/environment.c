/* worker/handler/environment.c — see environment.h. */
#include "worker/handler/environment.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "worker/exec_handler.h"

#include <assert.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)

enum {
    FIXED_BYTES = 1024 /* names, numbers, times and the id of a message */
};

static const char *const message_names[] = {
    "SLUICE_ID",           "SLUICE_TOKEN",    "SLUICE_ATTEMPT",     "SLUICE_REVISION",
    "SLUICE_CREATED",      "SLUICE_STREAM",   "SLUICE_GROUP",       "SLUICE_TYPE",
    "SLUICE_CONTENT_TYPE", "SLUICE_METADATA", "SLUICE_DEADLINE_MS", "SLUICE_DRAIN_FD",
};
static_assert(SL_COUNT_OF(message_names) <= SL_ENVIRONMENT_MESSAGE_ENTRIES_MAX,
              "there is room for each of them");

/* What is the worker's own: a handler that spoke to systemd for it would be believed, and passwords are nobody else's business. */
static const char *const worker_names[] = { "NOTIFY_SOCKET",   "WATCHDOG_USEC", "WATCHDOG_PID",
                                            "SLUICE_PASSWORD", "SLUICE_FROM",   "SLUICE_APPEND" };

/* --- the base --- */

static sl_str name_of(const char *entry)
{
    const sl_str all = sl_str_from(entry);

    return (sl_str){ all.data, sl_str_find(all, '=') };
}

static bool is_of_message(const char *entry)
{
    for (size_t i = 0; i < SL_COUNT_OF(message_names); i++) {
        if (sl_str_equal(name_of(entry), sl_str_from(message_names[i])))
            return true;
    }
    return false;
}

static bool is_for_the_worker(const char *entry)
{
    for (size_t i = 0; i < SL_COUNT_OF(worker_names); i++) {
        if (sl_str_equal(name_of(entry), sl_str_from(worker_names[i])))
            return true;
    }
    return false;
}

/* Programs differ on which of two entries with one name counts, so there is only one: the configuration's. */
static bool is_replaced(const char *entry, const char *const *extra)
{
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++) {
        if (sl_str_equal(name_of(entry), name_of(extra[i])))
            return true;
    }
    return false;
}

static bool extra_is_valid(const char *const *extra, sl_text *problem)
{
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++) {
        const sl_str entry = sl_str_from(extra[i]);
        const sl_str name = name_of(extra[i]);
        const char *wrong = NULL;

        if (name.bytes == 0 || name.bytes == entry.bytes)
            wrong = "\" is not of the form NAME=value";
        else if (entry.bytes >= SL_ENVIRONMENT_ENTRY_BYTES_MAX)
            wrong = "\" is longer than the system allows for an environment variable (128 KiB)";
        else if (is_of_message(extra[i]))
            wrong = "\" is set for each message: choose another name";
        if (wrong == NULL)
            continue;
        sl_text_add(problem, "the handler's environment: \"");
        sl_text_add_str(problem, (sl_str){ name.data, sl_min_u64(name.bytes, 100) });
        sl_text_add(problem, wrong);
        return false;
    }
    return true;
}

/* With entries NULL it only counts. */
static void add_base(sl_environment *environment, const char *entry, size_t *count, size_t *bytes)
{
    const size_t entry_bytes = strlen(entry) + 1;

    if (environment->entries != NULL) {
        environment->entries[*count] = environment->texts + *bytes;
        memcpy(environment->texts + *bytes, entry, entry_bytes);
    }
    *count += 1;
    *bytes += entry_bytes;
}

static void add_all(sl_environment *environment, char *const *base, const char *const *extra,
                    size_t *ret_count, size_t *ret_bytes)
{
    *ret_count = *ret_bytes = 0;
    for (size_t i = 0; base[i] != NULL; i++) {
        if (!is_of_message(base[i]) && !is_for_the_worker(base[i]) && !is_replaced(base[i], extra))
            add_base(environment, base[i], ret_count, ret_bytes);
    }
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++)
        add_base(environment, extra[i], ret_count, ret_bytes);
}

/* Sizes stand only beside memory that is there, so that sl_environment_done() can give back whichever of the two it finds. */
static bool make_room(sl_environment *environment, size_t entry_capacity, size_t texts_bytes)
{
    environment->entries = sl_alloc_take(&sl_alloc_default, entry_capacity * sizeof *environment->entries);
    environment->texts = sl_alloc_take(&sl_alloc_default, texts_bytes);
    environment->entry_capacity = environment->entries == NULL ? 0 : entry_capacity;
    environment->texts_bytes = environment->texts == NULL ? 0 : texts_bytes;
    return environment->entries != NULL && environment->texts != NULL;
}

sl_err sl_environment_init(sl_environment *environment, char *const *base, const char *const *extra,
                           sl_text *problem)
{
    size_t count, bytes;

    *environment = (sl_environment){ 0 };
    if (!extra_is_valid(extra, problem))
        return SL_ERR_INVALID;
    sl_buf_init(&environment->message, &sl_alloc_default, SIZE_MAX);
    add_all(environment, base, extra, &count, &bytes);
    if (!make_room(environment, count + SL_ENVIRONMENT_MESSAGE_ENTRIES_MAX + 1, bytes + 1)) {
        sl_environment_done(environment);
        return SL_ERR_NOMEM;
    }
    add_all(environment, base, extra, &environment->base_count, &bytes);
    environment->count = environment->base_count;
    environment->entries[environment->count] = NULL;
    return SL_OK;
}

void sl_environment_done(sl_environment *environment)
{
    sl_alloc_give(&sl_alloc_default, environment->entries,
                  environment->entry_capacity * sizeof *environment->entries);
    sl_alloc_give(&sl_alloc_default, environment->texts, environment->texts_bytes);
    sl_buf_done(&environment->message);
    *environment = (sl_environment){ 0 };
}

/* --- the message --- */

/* The room was reserved for all entries, so that no text moves while they are pointed to. */
static void open_entry(sl_environment *environment, const char *name, sl_text *ret_entry, size_t value_bytes)
{
    char *at = (char *)sl_buf_tail(&environment->message);

    environment->entries[environment->count++] = at;
    sl_text_init(ret_entry, at, strlen(name) + 1 + value_bytes + 1);
    sl_text_add(ret_entry, name);
    sl_text_add_char(ret_entry, '=');
}

static void close_entry(sl_environment *environment, const sl_text *entry)
{
    assert(!entry->cut);
    sl_buf_added(&environment->message, entry->bytes + 1);
}

static bool fits(sl_str value)
{
    return value.bytes <= SL_EXEC_VALUE_BYTES_MAX && sl_str_find(value, '\0') == value.bytes;
}

static void add_str(sl_environment *environment, const char *name, sl_str value)
{
    sl_text entry;

    if (!fits(value))
        return;
    open_entry(environment, name, &entry, value.bytes);
    /* A builder does not cut characters in half, and these bytes need not be UTF-8. */
    if (value.bytes > 0)
        memcpy(entry.data + entry.bytes, value.data, value.bytes);
    entry.bytes += value.bytes;
    entry.data[entry.bytes] = '\0';
    close_entry(environment, &entry);
}

static void add_u64(sl_environment *environment, const char *name, uint64_t value)
{
    sl_text entry;

    open_entry(environment, name, &entry, 20);
    sl_text_add_u64(&entry, value);
    close_entry(environment, &entry);
}

static void add_time(sl_environment *environment, const char *name, uint64_t wall_ns)
{
    sl_text entry;

    open_entry(environment, name, &entry, 40);
    sl_text_add_time(&entry, wall_ns);
    close_entry(environment, &entry);
}

static void add_fixed(sl_environment *environment, const sl_job *job, sl_environment_times times)
{
    const sl_job_message *message = &job->message;
    const uint64_t left_ns = job->until_ns > times.now_ns ? job->until_ns - times.now_ns : 0;
    char id[SL_UUID_TEXT_BYTES + 1];

    sl_uuid_format(message->event_id, id);
    add_str(environment, "SLUICE_ID", sl_str_from(id));
    add_u64(environment, "SLUICE_TOKEN", message->token);
    add_u64(environment, "SLUICE_ATTEMPT", message->attempt);
    add_u64(environment, "SLUICE_REVISION", message->revision);
    add_time(environment, "SLUICE_CREATED", message->created_ns);
    if (job->until_ns != UINT64_MAX)
        add_u64(environment, "SLUICE_DEADLINE_MS", sl_add_sat_u64(times.wall_ns, left_ns) / MS_NS);
    add_str(environment, "SLUICE_DRAIN_FD", SL_STR("3"));
}

static size_t value_bytes(sl_str value)
{
    return fits(value) ? value.bytes : 0;
}

char *const *sl_environment_of(sl_environment *environment, const sl_job *job, sl_environment_times times)
{
    const sl_job_message *message = &job->message;
    const size_t bytes = FIXED_BYTES + value_bytes(message->stream) + value_bytes(message->group) +
                         value_bytes(message->type) + value_bytes(message->content_type) +
                         value_bytes(message->metadata);

    sl_buf_clear(&environment->message);
    if (sl_buf_reserve(&environment->message, bytes) != SL_OK)
        return NULL;
    environment->count = environment->base_count;
    add_fixed(environment, job, times);
    add_str(environment, "SLUICE_STREAM", message->stream);
    add_str(environment, "SLUICE_GROUP", message->group);
    add_str(environment, "SLUICE_TYPE", message->type);
    add_str(environment, "SLUICE_CONTENT_TYPE", message->content_type);
    add_str(environment, "SLUICE_METADATA", message->metadata);
    assert(environment->count < environment->entry_capacity);
    environment->entries[environment->count] = NULL;
    return environment->entries;
}
