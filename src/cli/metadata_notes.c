/* cli/metadata_notes.c — see cli/metadata_notes.h. */
#include "cli/metadata_notes.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/print.h"
#include "cli/suggest.h"
#include "store/metadata.h"

enum {
    SENTENCE_BYTES = 512
};

typedef struct member {
    const char *name, *needs;
} member;

static const member members[] = {
    { "$maxCount", "a whole number from 1 on" },
    { "$maxAge", "a whole number of seconds from 1 on" },
    { "$tb", "a revision, from 0 on" },
    { "$acl", "an object" },
};

static const member *find(const char *name)
{
    for (size_t i = 0; i < SL_COUNT_OF(members); i++)
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    return NULL;
}

/* The store reads it; what has no effect is 0 to it. */
static bool has_effect(const cJSON *item, const sl_retention *retention)
{
    if (strcmp(item->string, "$maxCount") == 0)
        return retention->max_count != 0;
    if (strcmp(item->string, "$maxAge") == 0)
        return retention->max_age_s != 0;
    if (strcmp(item->string, "$tb") == 0)
        return retention->truncate_before != 0 || (cJSON_IsNumber(item) && item->valuedouble == 0.0);
    return cJSON_IsObject(item);
}

static const char *nearest(const char *name)
{
    const char *names[SL_COUNT_OF(members)];

    for (size_t i = 0; i < SL_COUNT_OF(members); i++)
        names[i] = members[i].name;
    return sl_suggest_nearest(name, names, SL_COUNT_OF(members));
}

static void look_at(const cJSON *item, const sl_retention *retention, FILE *err)
{
    const member *const known = find(item->string);
    const char *const meant = known == NULL ? nearest(item->string) : NULL;
    char sentence[SENTENCE_BYTES];

    if (known != NULL && !has_effect(item, retention))
        snprintf(sentence, sizeof sentence, "Note: %s has no effect as it is: it needs %s.", known->name,
                 known->needs);
    else if (meant != NULL)
        snprintf(sentence, sizeof sentence, "Note: '%s' means nothing to the server. Did you mean '%s'?",
                 sl_quote(item->string).text, meant);
    else
        return;
    sl_print_complaint(err, sentence);
}

void sl_metadata_notes(sl_str json, FILE *err)
{
    const sl_retention retention = sl_metadata_parse(json);
    cJSON *const object = sl_metadata_object(json);
    const cJSON *item;

    if (object == NULL)
        return;
    cJSON_ArrayForEach(item, object) look_at(item, &retention, err);
    cJSON_Delete(object);
}
