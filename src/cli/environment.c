/* cli/environment.c — see cli/environment.h. */
#include "cli/environment.h"

#include <string.h>

#include "cli/options.h"
#include "cli/print.h"
#include "cli/suggest.h"

enum {
    NAME_BYTES = 64 /* longer names are near to none of ours */
};

static const char prefix[] = "SLUICE_";
static const char password[] = "SLUICE_PASSWORD"; /* no option: command lines are seen by everybody */

/* What `sluice work --exec` tells its handlers, which may call us in turn. No option may have one of these names. */
static const char *const of_handlers[] = { "SLUICE_ID",       "SLUICE_TOKEN",        "SLUICE_ATTEMPT",
                                           "SLUICE_STREAM",   "SLUICE_GROUP",        "SLUICE_TYPE",
                                           "SLUICE_REVISION", "SLUICE_CONTENT_TYPE", "SLUICE_METADATA",
                                           "SLUICE_CREATED",  "SLUICE_DEADLINE_MS",  "SLUICE_DRAIN_FD" };

bool sl_environment_is_of_handlers(const char *name)
{
    for (size_t i = 0; i < sizeof of_handlers / sizeof of_handlers[0]; i++) {
        if (strcmp(of_handlers[i], name) == 0)
            return true;
    }
    return false;
}

static const char *known_name(size_t index)
{
    return index == SL_OPT_COUNT_ ? password : sl_options[index].environment;
}

/* What differs is behind the prefix; with it, short names would all be near to each other. */
static const char *nearest(const char *name)
{
    const char *ends[SL_OPT_COUNT_ + 1] = { 0 };

    for (size_t i = 0; i <= SL_OPT_COUNT_; i++) {
        const char *const known = known_name(i);

        if (known != NULL && strcmp(known, name) == 0)
            return NULL;
        ends[i] = known == NULL ? NULL : known + sizeof prefix - 1;
    }
    return sl_suggest_nearest(name + sizeof prefix - 1, ends, SL_OPT_COUNT_ + 1);
}

static void look_at(const char *name, FILE *err)
{
    char sentence[4 * NAME_BYTES];
    const char *const meant = sl_environment_is_of_handlers(name) ? NULL : nearest(name);

    if (meant == NULL)
        return;
    snprintf(sentence, sizeof sentence, "The variable %s means nothing. Did you mean %s%s?",
             sl_quote(name).text, prefix, meant);
    sl_print_complaint(err, sentence);
}

void sl_environment_warn(char *const *variables, FILE *err)
{
    for (; *variables != NULL; variables++) {
        const size_t bytes = strcspn(*variables, "=");
        char name[NAME_BYTES];

        if (bytes >= sizeof name || strncmp(*variables, prefix, sizeof prefix - 1) != 0)
            continue;
        memcpy(name, *variables, bytes);
        name[bytes] = '\0';
        look_at(name, err);
    }
}
