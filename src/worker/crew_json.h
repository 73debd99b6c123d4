/* worker/crew_json.h — additions to JSON objects whose failure, which is always want of memory, is noticed once, at the end.
 *
 * Every function takes NULL for the object: what could not be made is not filled either. */
#ifndef SL_WORKER_CREW_JSON_H
#define SL_WORKER_CREW_JSON_H

#include <cjson/cJSON.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct sl_jot {
    bool failed;
} sl_jot;

static inline cJSON *sl_jot_object(sl_jot *jot, cJSON *to, const char *name)
{
    cJSON *const object = to == NULL ? NULL : cJSON_AddObjectToObject(to, name);

    jot->failed = jot->failed || object == NULL;
    return object;
}

static inline cJSON *sl_jot_array(sl_jot *jot, cJSON *to, const char *name)
{
    cJSON *const array = to == NULL ? NULL : cJSON_AddArrayToObject(to, name);

    jot->failed = jot->failed || array == NULL;
    return array;
}

/* An object at the end of an array. */
static inline cJSON *sl_jot_item(sl_jot *jot, cJSON *array)
{
    cJSON *object = array == NULL ? NULL : cJSON_CreateObject();

    if (object != NULL && !cJSON_AddItemToArray(array, object)) {
        cJSON_Delete(object);
        object = NULL;
    }
    jot->failed = jot->failed || object == NULL;
    return object;
}

static inline void sl_jot_text(sl_jot *jot, cJSON *to, const char *name, const char *text)
{
    jot->failed = to == NULL || cJSON_AddStringToObject(to, name, text) == NULL || jot->failed;
}

static inline void sl_jot_flag(sl_jot *jot, cJSON *to, const char *name, bool flag)
{
    jot->failed = to == NULL || cJSON_AddBoolToObject(to, name, flag) == NULL || jot->failed;
}

/* As text, because a double rounds large numbers. */
static inline void sl_jot_u64(sl_jot *jot, cJSON *to, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    jot->failed = to == NULL || cJSON_AddRawToObject(to, name, text) == NULL || jot->failed;
}

/* Whole microseconds are enough for people, and short. */
static inline void sl_jot_seconds(sl_jot *jot, cJSON *to, const char *name, uint64_t duration_ns)
{
    char text[48];

    snprintf(text, sizeof text, "%" PRIu64 ".%06" PRIu64, duration_ns / UINT64_C(1000000000),
             duration_ns % UINT64_C(1000000000) / 1000);
    jot->failed = to == NULL || cJSON_AddRawToObject(to, name, text) == NULL || jot->failed;
}

#endif
