/* worker/destination_show.c — destinations counted, and described for people. */
#include "base/cleanup.h"
#include "base/utf8.h"
#include "worker/destination_inside.h"

#include <cjson/cJSON.h>

#define MS_NS UINT64_C(1000000)

enum {
    SHOWN_MAX = 100 /* destinations in a description */
};

static bool is_used(const sl_destination *at)
{
    return at->key != NULL || at->waiting_count + at->running_count > 0;
}

size_t sl_destinations_count(const sl_destinations *all)
{
    return all->by_key.count + (all->rules.key == SL_KEY_NONE || is_used(&all->shared) ? 1 : 0);
}

static bool is_open(const sl_destinations *all, const sl_destination *at, uint64_t now_ns)
{
    return all->rules.has_breaker && sl_breaker_state_at(&at->breaker, now_ns) != SL_BREAKER_CLOSED;
}

size_t sl_destinations_open_count(const sl_destinations *all, uint64_t now_ns)
{
    size_t count = 0;

    if (!all->rules.has_breaker)
        return 0;
    SL_LIST_EACH (node, &all->every)
        count += is_open(all, SL_CONTAINER_OF(node, sl_destination, every), now_ns) ? 1 : 0;
    return count;
}

/* A key may hold anything; what people and JSON readers get is text. */
static void add_key(const sl_destination *at, cJSON *object)
{
    char room[SL_DESTINATION_KEY_BYTES_MAX + 1];
    sl_str left = { at->key, at->key_bytes };
    sl_text text;

    sl_text_init(&text, room, sizeof room);
    while (left.bytes > 0) {
        uint32_t code = 0;
        const size_t bytes = sl_utf8_first(left, &code);

        sl_text_add_str(&text, bytes == 0 || code < ' ' ? SL_STR("?") : (sl_str){ left.data, bytes });
        left = (sl_str){ left.data + sl_max_u64(bytes, 1), left.bytes - sl_max_u64(bytes, 1) };
    }
    (void)cJSON_AddStringToObject(object, "key", room);
}

static void describe_one(const sl_destinations *all, const sl_destination *at, uint64_t now_ns, cJSON *array)
{
    cJSON *const object = cJSON_CreateObject();

    if (object == NULL)
        return;
    if (at->key != NULL)
        add_key(at, object);
    else if (all->rules.key != SL_KEY_NONE)
        (void)cJSON_AddBoolToObject(object, "shared", true);
    (void)cJSON_AddNumberToObject(object, "waiting", (double)at->waiting_count);
    (void)cJSON_AddNumberToObject(object, "running", (double)at->running_count);
    if (all->rules.has_breaker)
        (void)cJSON_AddStringToObject(object, "breaker",
                                      sl_breaker_state_name(sl_breaker_state_at(&at->breaker, now_ns)));
    if (at->place == PLACE_TIMED)
        (void)cJSON_AddNumberToObject(object, "wait_ms",
                                      (double)((sl_max_u64(at->wake_ns, now_ns) - now_ns) / MS_NS));
    if (!cJSON_AddItemToArray(array, object))
        cJSON_Delete(object);
}

/* Those with trouble first: with many, only so many are shown. */
void sl_destinations_describe(const sl_destinations *all, uint64_t now_ns, cJSON *array)
{
    int left = SHOWN_MAX;

    for (int wants_open = 1; wants_open >= 0; wants_open--)
        SL_LIST_EACH (node, &all->every) {
            const sl_destination *const at = SL_CONTAINER_OF(node, sl_destination, every);

            if (left == 0)
                return;
            if (is_open(all, at, now_ns) != (wants_open == 1))
                continue;
            if (at == &all->shared && all->rules.key != SL_KEY_NONE && !is_used(at) && wants_open == 0)
                continue;
            describe_one(all, at, now_ns, array);
            left--;
        }
}
