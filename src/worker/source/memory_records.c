/* worker/source/memory_records.c — the messages of a memory source: made or put, waiting, out, and settled. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "worker/source/memory_inside.h"

#include <assert.h>
#include <string.h>

bool sl_memory_number_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    return SL_CONTAINER_OF(a, sl_memory_record, waiting)->number <
           SL_CONTAINER_OF(b, sl_memory_record, waiting)->number;
}

bool sl_memory_due_before(const sl_pairing_node *a, const sl_pairing_node *b)
{
    const sl_memory_record *const one = SL_CONTAINER_OF(a, sl_memory_record, waiting);
    const sl_memory_record *const other = SL_CONTAINER_OF(b, sl_memory_record, waiting);

    return one->due_ns != other->due_ns ? one->due_ns < other->due_ns : one->number < other->number;
}

static sl_uuid id_of(uint64_t number)
{
    const sl_hash_seed seeds[2] = { { 0x6d656d6f7279, 1 }, { 0x6d656d6f7279, 2 } };
    uint64_t halves[2];
    uint8_t bytes[16];

    for (int i = 0; i < 2; i++)
        halves[i] = sl_hash(seeds[i], &number, sizeof number);
    memcpy(bytes, halves, sizeof bytes);
    return sl_uuid_v4(bytes);
}

static sl_memory_record *new_record(sl_memory *memory)
{
    sl_memory_record *const added = sl_alloc_take(&sl_alloc_default, sizeof *added);

    if (added == NULL)
        return NULL;
    *added =
        (sl_memory_record){ .number = memory->next_number++, .created_ns = sl_loop_wall_ns(memory->loop) };
    sl_list_push_back(&memory->every, &added->every);
    sl_list_init(&added->fresh);
    return added;
}

void sl_memory_forget(sl_memory_record *gone)
{
    sl_list_remove(&gone->every);
    sl_list_remove(&gone->fresh);
    sl_job_free(gone->message);
    sl_alloc_give(&sl_alloc_default, gone, sizeof *gone);
}

static sl_uuid id_of_record(const sl_memory_record *about)
{
    return about->message == NULL ? id_of(about->number) : about->message->message.id;
}

sl_memory_record *sl_memory_find_number(const sl_memory *memory, uint64_t number)
{
    SL_LIST_EACH (node, &memory->every)
        if (SL_CONTAINER_OF(node, sl_memory_record, every)->number == number)
            return SL_CONTAINER_OF(node, sl_memory_record, every);
    return NULL;
}

sl_memory_record *sl_memory_find_id(const sl_memory *memory, sl_uuid id)
{
    SL_LIST_EACH (node, &memory->every)
        if (sl_uuid_equal(id_of_record(SL_CONTAINER_OF(node, sl_memory_record, every)), id))
            return SL_CONTAINER_OF(node, sl_memory_record, every);
    return NULL;
}

static sl_job *copy_of(const sl_memory_record *about, const sl_job_message *message)
{
    sl_job_message filled = *message;

    filled.revision = about->number;
    if (sl_uuid_is_zero(filled.id))
        filled.id = id_of(about->number);
    if (filled.created_ns == 0)
        filled.created_ns = about->created_ns;
    return sl_job_new(&filled);
}

sl_err sl_memory_source_put(sl_source *source, const sl_job_message *message, uint64_t *ret_number)
{
    sl_memory *const memory = sl_memory_of(source);
    sl_memory_record *const added = new_record(memory);

    if (added == NULL)
        return SL_ERR_NOMEM;
    added->message = copy_of(added, message);
    if (added->message == NULL) {
        memory->next_number--;
        sl_memory_forget(added);
        return SL_ERR_NOMEM;
    }
    added->look.token = message->token;
    sl_list_push_back(&memory->fresh, &added->fresh);
    if (ret_number != NULL)
        *ret_number = added->number;
    sl_memory_pump_soon(memory);
    return SL_OK;
}

/* --- messages that it makes by itself --- */

/* JSON of exactly the size that was asked for, where that is enough for JSON. */
static sl_str make_data(sl_memory *memory, uint64_t number)
{
    const size_t bytes = memory->settings.data_bytes;
    char *const room = memory->room;
    sl_text head;

    memset(room, 'x', bytes);
    if (bytes < SL_MEMORY_JSON_BYTES_MIN)
        return (sl_str){ room, bytes };
    sl_text_init(&head, room, bytes);
    sl_text_add(&head, "{\"number\":");
    sl_text_add_u64(&head, number);
    sl_text_add(&head, ",\"fill\":\"");
    assert(head.bytes + 2 <= bytes);
    room[head.bytes] = 'x';
    memcpy(room + bytes - 2, "\"}", 2);
    return (sl_str){ room, bytes };
}

/* Made anew for each delivery, which is one as a rule: nothing but its number is kept of it. */
sl_job_message sl_memory_message_of(sl_memory *memory, const sl_memory_record *about)
{
    if (about->message != NULL)
        return about->message->message;
    return (sl_job_message){
        .id = id_of(about->number),
        .revision = about->number,
        .created_ns = about->created_ns,
        .stream = SL_STR("memory"),
        .type = sl_str_from(memory->settings.type),
        .content_type = memory->settings.data_bytes < SL_MEMORY_JSON_BYTES_MIN
                            ? SL_STR("application/octet-stream")
                            : SL_STR("application/json"),
        .data = make_data(memory, about->number),
    };
}

static sl_memory_record *make_record(sl_memory *memory)
{
    sl_memory_record *const made = new_record(memory);

    if (made != NULL) {
        made->is_made = true;
        memory->made++;
    }
    return made;
}

bool sl_memory_has_next(const sl_memory *memory)
{
    return memory->returned.root != NULL || !sl_list_empty(&memory->fresh) ||
           memory->made < memory->settings.count;
}

/* Old ones come before new ones: they have the smaller numbers. */
sl_memory_record *sl_memory_next(sl_memory *memory)
{
    sl_pairing_node *const returned = sl_pairing_min(&memory->returned);
    sl_list *const fresh = sl_list_first(&memory->fresh);

    assert(sl_memory_has_next(memory));
    if (returned != NULL) {
        sl_pairing_remove(&memory->returned, returned);
        return SL_CONTAINER_OF(returned, sl_memory_record, waiting);
    }
    if (fresh != NULL) {
        sl_list_remove(fresh);
        return SL_CONTAINER_OF(fresh, sl_memory_record, fresh);
    }
    return make_record(memory);
}

void sl_memory_return(sl_memory *memory, sl_memory_record *back)
{
    back->delivery = NULL;
    back->look.state = SL_MEMORY_READY;
    sl_pairing_insert(&memory->returned, &back->waiting);
}

void sl_memory_delay(sl_memory *memory, sl_memory_record *later, uint64_t delay_ns)
{
    later->delivery = NULL;
    later->look.state = SL_MEMORY_DELAYED;
    later->due_ns = sl_add_sat_u64(sl_loop_now_ns(memory->loop), delay_ns);
    sl_pairing_insert(&memory->delayed, &later->waiting);
}

void sl_memory_end(sl_memory_record *settled, sl_memory_state state)
{
    settled->delivery = NULL;
    settled->look.state = state;
    if (settled->is_made)
        sl_memory_forget(settled);
}
