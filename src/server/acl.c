/* server/acl.c — reading access lists out of JSON, and deciding.
 *
 * The parsed form is one block, measured before it is filled: it is kept by the thousand and dropped whole. */
#include "server/acl.h"

#include "store/metadata.h"

#include <cjson/cJSON.h>

#include <assert.h>

static const char *const right_names[] = {
    [SL_RIGHT_READ] = "$r",       [SL_RIGHT_WRITE] = "$w",       [SL_RIGHT_DELETE] = "$d",
    [SL_RIGHT_META_READ] = "$mr", [SL_RIGHT_META_WRITE] = "$mw",
};
_Static_assert(sizeof right_names / sizeof right_names[0] == SL_RIGHT_COUNT_, "one name for each right");

/* --- parsing --- */

/* Of two members with one name the last counts, as in all metadata. */
static const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *item, *found = NULL;

    cJSON_ArrayForEach(item, object) if (strcmp(item->string, name) == 0) found = item;
    return found == NULL || cJSON_IsNull(found) ? NULL : found;
}

typedef struct filling {
    sl_str *names;
    char *text;
    size_t name_count, text_bytes; /* so far */
    bool measuring;                /* nothing is written */
} filling;

static void add_name(filling *fill, const cJSON *item)
{
    const size_t bytes = cJSON_IsString(item) ? strlen(item->valuestring) : 0;

    if (!cJSON_IsString(item))
        return;
    if (!fill->measuring) {
        memcpy(fill->text + fill->text_bytes, item->valuestring, bytes);
        fill->names[fill->name_count] = (sl_str){ fill->text + fill->text_bytes, bytes };
    }
    fill->name_count++;
    fill->text_bytes += bytes;
}

static sl_acl_names add_right(filling *fill, const cJSON *value)
{
    const size_t before = fill->name_count;
    const cJSON *item;

    if (value == NULL)
        return (sl_acl_names){ 0 };
    if (cJSON_IsArray(value)) {
        cJSON_ArrayForEach(item, value) add_name(fill, item);
    } else {
        add_name(fill, value);
    }
    return (sl_acl_names){ .given = true,
                           .names = fill->measuring ? NULL : fill->names + before,
                           .count = fill->name_count - before };
}

static void add_rights(filling *fill, const cJSON *object, sl_acl_names rights[SL_RIGHT_COUNT_])
{
    for (size_t i = 0; i < SL_RIGHT_COUNT_; i++)
        rights[i] = add_right(fill, member(object, right_names[i]));
}

static sl_acl *make(const cJSON *object, const sl_alloc *alloc)
{
    sl_acl_names unused[SL_RIGHT_COUNT_];
    filling measured = { .measuring = true }, fill = { 0 };
    size_t bytes;
    sl_acl *acl;

    add_rights(&measured, object, unused);
    bytes = sizeof *acl + measured.name_count * sizeof(sl_str) + measured.text_bytes;
    acl = sl_alloc_take(alloc, bytes);
    if (acl == NULL)
        return NULL;
    acl->bytes = bytes;
    fill.names = (sl_str *)(acl + 1);
    fill.text = (char *)(fill.names + measured.name_count);
    add_rights(&fill, object, acl->rights);
    assert(fill.name_count == measured.name_count);
    assert(fill.text_bytes == measured.text_bytes);
    return acl;
}

sl_err sl_acl_parse(sl_str json, const char *name, const sl_alloc *alloc, sl_acl **ret_acl)
{
    cJSON *const root = sl_metadata_object(json);
    const cJSON *const object = root == NULL ? NULL : member(root, name);
    sl_err err = SL_ERR_EMPTY;

    if (object != NULL && cJSON_IsObject(object)) {
        sl_acl *const acl = make(object, alloc);

        err = acl == NULL ? SL_ERR_NOMEM : SL_OK;
        if (acl != NULL)
            *ret_acl = acl;
    }
    cJSON_Delete(root);
    return err;
}

void sl_acl_free(const sl_alloc *alloc, sl_acl *acl)
{
    if (acl != NULL)
        sl_alloc_give(alloc, acl, acl->bytes);
}

/* --- deciding --- */

static bool is_in_group(const sl_identity *identity, sl_str group)
{
    for (size_t i = 0; i < identity->group_count; i++)
        if (sl_str_equal(identity->groups[i], group))
            return true;
    return false;
}

/* An empty name in a list must not mean the caller who has none. */
static bool means(sl_str name, const sl_acl_question *question)
{
    const sl_identity *const identity = question->identity;

    if (sl_str_equal(name, SL_STR("$all")))
        return identity->name.bytes > 0 || question->admit_anonymous;
    if (identity->name.bytes == 0)
        return false;
    return sl_str_equal(name, identity->name) || is_in_group(identity, name);
}

static bool names_admit(const sl_acl_names *names, const sl_acl_question *question)
{
    for (size_t i = 0; i < names->count; i++)
        if (means(names->names[i], question))
            return true;
    return false;
}

bool sl_acl_allows(const sl_acl_question *question, const sl_acl *own, const sl_acl *defaults)
{
    if (question->identity->is_trusted || question->identity->is_admin)
        return true;
    if (sl_acl_decides(own, question->right))
        return names_admit(&own->rights[question->right], question);
    if (sl_acl_decides(defaults, question->right))
        return names_admit(&defaults->rights[question->right], question);
    return !question->is_system && means(SL_STR("$all"), question);
}
