/* server/json.h — two steps of writing JSON with cJSON that several records need. */
#ifndef SL_SERVER_JSON_H
#define SL_SERVER_JSON_H

#include "base/arena.h"
#include "base/str.h"

#include <cjson/cJSON.h>

#include <stdbool.h>

/* cJSON wants texts that end with a zero; the arena's do. NULL: no memory. */
static inline cJSON *sl_json_text(sl_str text, sl_arena *arena)
{
    const char *const copy = sl_arena_copy_str(arena, text);

    return copy == NULL ? NULL : cJSON_CreateString(copy);
}

/* Takes the item; false when there is none, for want of memory. */
static inline bool sl_json_add(cJSON *object, const char *name, cJSON *item)
{
    if (item != NULL && cJSON_AddItemToObject(object, name, item))
        return true;
    cJSON_Delete(item);
    return false;
}

#endif
