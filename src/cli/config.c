/* cli/config.c — from the bytes of a file to entries (section, key, value, line), and from entries to values.
 *
 * The file is read whole and cut in place: every text of an entry points into it. Then each entry is held against the rows
 * of the commands that its section is for. Nothing is taken over before the whole file was found to be right, so there is
 * no half-applied configuration. */
#include "cli/config.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cli/config_text.h"
#include "cli/print.h"
#include "cli/suggest.h"

enum {
    FROM_BYTES = 256,
    NAME_BYTES = 64,
};

typedef struct entry {
    const char *section; /* NULL: before the first */
    const char *key, *value;
    unsigned line;
} entry;

typedef struct member {
    const sl_command *command;
    const char *name, *section; /* the section is "COMMAND NAME" */
    unsigned line;
} member;

struct sl_config {
    const sl_alloc *alloc;
    const sl_config_tables *tables; /* the caller's, as the path */
    const char *path;
    char *text; /* zero-terminated */
    size_t text_bytes, text_capacity;
    entry *entries;
    size_t entry_count, entries_bytes; /* room for SL_CONFIG_ENTRIES_MAX */
    member members[SL_CONFIG_MEMBERS_MAX];
    size_t member_count;
};

__attribute__((format(printf, 4, 5))) static sl_err complain(sl_complaint *complaint, const char *path,
                                                             unsigned line, const char *format, ...)
{
    sl_text text;
    char sentence[SL_COMPLAINT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    sl_text_init(&text, complaint->text, sizeof complaint->text);
    sl_text_add(&text, sl_quote(path).text);
    if (line > 0) {
        sl_text_add(&text, ", line ");
        sl_text_add_u64(&text, line);
    }
    sl_text_add(&text, ": ");
    sl_text_add(&text, sentence);
    return SL_ERR_INVALID;
}

/* --- which rows a section is about --- */

/* "work billing" is about a member of "work". */
static bool is_member_of(const char *section, const sl_command *command)
{
    const size_t bytes = strlen(command->name);

    return command->member != NULL && section != NULL && strncmp(section, command->name, bytes) == 0 &&
           (section[bytes] == ' ' || section[bytes] == '\t');
}

static const sl_command *command_of_member(const sl_config_tables *tables, const char *section)
{
    for (size_t i = 0; i < tables->command_count; i++) {
        if (is_member_of(section, tables->commands[i]))
            return tables->commands[i];
    }
    return NULL;
}

/* No section is about all commands. */
static bool is_for(const char *section, const sl_command *command)
{
    return section == NULL || strcmp(section, command->name) == 0 || sl_command_in_family(command, section) ||
           is_member_of(section, command);
}

static uint64_t bits_of(const sl_config_tables *tables, const char *section)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < tables->command_count; i++)
        bits |= is_for(section, tables->commands[i]) ? tables->commands[i]->bit : 0;
    return bits;
}

/* The row has this name and is an option of one of these commands. */
static bool is_meant(const sl_option *row, uint64_t bits, const char *key)
{
    return (row->commands & bits) != 0 && strcmp(row->name, key) == 0;
}

bool sl_config_has(const sl_option *row)
{
    return (sl_option_is_setting(row) || row->is_in_file) &&
           strcmp(row->name, sl_options[SL_OPT_CONFIG].name) != 0;
}

/* May it stand in this section, whose commands have it? */
static bool fits_section(const sl_config_tables *tables, const char *section, const sl_option *row)
{
    return sl_config_has(row) && (row->of_member || command_of_member(tables, section) == NULL);
}

/* The nearest name among those that the section may have. */
static const char *nearest_key(const sl_config_tables *tables, const char *section, const char *key)
{
    const uint64_t bits = bits_of(tables, section);
    const char *names[SL_OPTION_ROWS_MAX];

    for (size_t i = 0; i < tables->row_count; i++) {
        const sl_option *const row = &tables->rows[i];
        names[i] = (row->commands & bits) != 0 && fits_section(tables, section, row) ? row->name : NULL;
    }
    return sl_suggest_nearest(key, names, tables->row_count);
}

typedef struct section_text {
    char text[2 * NAME_BYTES];
} section_text;

/* For "wrok billing" the first word counts, because the second may be anything. Empty: nothing is near. */
static section_text nearest_section(const sl_config_tables *tables, const char *section)
{
    const char *names[SL_COMMANDS_MAX], *with_members[SL_COMMANDS_MAX];
    const size_t word_bytes = strcspn(section, " \t");
    section_text nearest = { "" };
    char word[NAME_BYTES];
    const char *found;

    for (size_t i = 0; i < tables->command_count; i++) {
        names[i] = tables->commands[i]->name;
        with_members[i] = tables->commands[i]->member == NULL ? NULL : names[i];
    }
    snprintf(word, sizeof word, "%.*s", (int)word_bytes, section);
    found =
        section[word_bytes] == '\0' ? NULL : sl_suggest_nearest(word, with_members, tables->command_count);
    if (found != NULL)
        snprintf(nearest.text, sizeof nearest.text, "%s%s", found, sl_quote(section + word_bytes).text);
    else if ((found = sl_suggest_nearest(section, names, tables->command_count)) != NULL)
        snprintf(nearest.text, sizeof nearest.text, "%s", found);
    return nearest;
}

/* --- checking --- */

/* It is an option of the command, but about all members together. */
static sl_err complain_shared(const sl_config *config, const entry *e, sl_complaint *complaint)
{
    const sl_command *const command = command_of_member(config->tables, e->section);

    return complain(complaint, config->path, e->line,
                    "'%s' is about all %ss of the process together: put it into [%s].", e->key,
                    command->member, command->name);
}

static sl_err complain_key(const sl_config *config, const entry *e, bool exists, sl_complaint *complaint)
{
    const char *const nearest = nearest_key(config->tables, e->section, e->key);
    char where[NAME_BYTES] = "";

    if (e->section != NULL)
        snprintf(where, sizeof where, " in [%s]", e->section);
    if (exists)
        return complain(complaint, config->path, e->line, "'%s' can be set on the command line only.",
                        e->key);
    if (nearest != NULL)
        return complain(complaint, config->path, e->line, "there is no option '%s'%s. Did you mean '%s'?",
                        sl_quote(e->key).text, where, nearest);
    return complain(complaint, config->path, e->line, "there is no option '%s'%s.", sl_quote(e->key).text,
                    where);
}

/* Every row of that name must take the value: which command will run is not known yet. */
static sl_err check_value(const sl_config *config, const entry *e, sl_complaint *complaint)
{
    const sl_config_tables *const tables = config->tables;
    const uint64_t bits = bits_of(tables, e->section);
    bool exists = false, fits = false, is_shared = false;
    char from[FROM_BYTES];

    snprintf(from, sizeof from, "%s, line %u: %s", sl_quote(config->path).text, e->line,
             sl_quote(e->key).text);
    for (size_t i = 0; i < tables->row_count; i++) {
        const sl_option *const row = &tables->rows[i];
        if (!is_meant(row, bits, e->key))
            continue;
        exists = true;
        is_shared |= sl_config_has(row) && !fits_section(tables, e->section, row);
        if (!fits_section(tables, e->section, row))
            continue;
        fits = true;
        const sl_err err = sl_option_check(row, from, e->value, complaint);
        if (err != SL_OK)
            return err;
    }
    if (is_shared)
        return complain_shared(config, e, complaint);
    return fits ? SL_OK : complain_key(config, e, exists, complaint);
}

static bool may_repeat(const sl_config_tables *tables, const entry *e)
{
    const uint64_t bits = bits_of(tables, e->section);

    for (size_t i = 0; i < tables->row_count; i++) {
        if (tables->rows[i].repeats && is_meant(&tables->rows[i], bits, e->key))
            return true;
    }
    return false;
}

static bool same_place(const entry *a, const entry *b)
{
    const bool same_section = a->section == NULL || b->section == NULL ? a->section == b->section
                                                                       : strcmp(a->section, b->section) == 0;

    return same_section && strcmp(a->key, b->key) == 0;
}

/* Of two lines only one can be meant, and the file does not say which. */
static sl_err check_twice(const sl_config *config, size_t index, sl_complaint *complaint)
{
    const entry *const e = &config->entries[index];

    if (may_repeat(config->tables, e))
        return SL_OK;
    for (size_t i = 0; i < index; i++) {
        if (same_place(&config->entries[i], e))
            return complain(complaint, config->path, e->line, "'%s' was set in line %u already.", e->key,
                            config->entries[i].line);
    }
    return SL_OK;
}

static sl_err check_section(const sl_config *config, const char *section, unsigned line,
                            sl_complaint *complaint)
{
    section_text nearest;

    if (bits_of(config->tables, section) != 0)
        return SL_OK;
    nearest = nearest_section(config->tables, section);
    if (nearest.text[0] == '\0')
        return complain(complaint, config->path, line, "there is no command '%s'.", sl_quote(section).text);
    return complain(complaint, config->path, line, "there is no command '%s'. Did you mean '[%s]'?",
                    sl_quote(section).text, nearest.text);
}

/* A name goes into logs, metrics and reports, so it is a plain word. */
static bool is_member_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t bytes = strlen(name);

    return bytes >= 1 && bytes <= SL_CONFIG_MEMBER_NAME_BYTES_MAX && strspn(name, allowed) == bytes;
}

static sl_err complain_member(const sl_config *config, const member *m, sl_complaint *complaint)
{
    if (!is_member_name(m->name))
        return complain(complaint, config->path, m->line,
                        "'%s' is no name for a %s: 1 to %d letters, digits, '.', '_' and '-' are.",
                        sl_quote(m->name).text, m->command->member, SL_CONFIG_MEMBER_NAME_BYTES_MAX);
    return complain(complaint, config->path, m->line, "more than %d sections of this kind are too many.",
                    SL_CONFIG_MEMBERS_MAX);
}

/* Two sections of one name are most likely a copy that was not changed. */
static sl_err add_member(sl_config *config, const char *section, unsigned line, sl_complaint *complaint)
{
    const sl_command *const command = command_of_member(config->tables, section);
    member added = { .command = command, .section = section, .line = line };

    if (command == NULL)
        return SL_OK;
    added.name = section + strlen(command->name);
    added.name += strspn(added.name, " \t");
    if (!is_member_name(added.name) || config->member_count == SL_CONFIG_MEMBERS_MAX)
        return complain_member(config, &added, complaint);
    for (size_t i = 0; i < config->member_count; i++) {
        if (config->members[i].command == command && strcmp(config->members[i].name, added.name) == 0)
            return complain(complaint, config->path, line, "[%s %s] was begun in line %u already.",
                            command->name, added.name, config->members[i].line);
    }
    config->members[config->member_count++] = added;
    return SL_OK;
}

/* --- lines --- */

static sl_err add_entry(sl_config *config, const entry *added, sl_complaint *complaint)
{
    sl_err err;

    if (config->entry_count == SL_CONFIG_ENTRIES_MAX)
        return complain(complaint, config->path, added->line, "more than %d settings are too many.",
                        SL_CONFIG_ENTRIES_MAX);
    config->entries[config->entry_count] = *added;
    err = check_value(config, added, complaint);
    if (err == SL_OK)
        err = check_twice(config, config->entry_count, complaint);
    config->entry_count += err == SL_OK;
    return err;
}

static sl_err read_line(sl_config *config, char *text, unsigned line, const char **section,
                        sl_complaint *complaint)
{
    entry e = { .section = *section, .line = line };
    char *key = NULL, *value = NULL;
    const char *const problem = sl_config_cut_line(text, &key, &value);

    if (problem != NULL)
        return complain(complaint, config->path, line, "%s", problem);
    if (key == NULL)
        return SL_OK;
    if (value == NULL) {
        const sl_err err = check_section(config, key, line, complaint);
        *section = key;
        return err == SL_OK ? add_member(config, key, line, complaint) : err;
    }
    e.key = key;
    e.value = value;
    return add_entry(config, &e, complaint);
}

static sl_err read_lines(sl_config *config, sl_complaint *complaint)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf"; /* of editors that think every text needs one */
    const char *section = NULL;
    char *at = config->text, *const end = config->text + config->text_bytes;
    sl_err err = SL_OK;

    if (strncmp(at, byte_order_mark, sizeof byte_order_mark - 1) == 0)
        at += sizeof byte_order_mark - 1;
    for (unsigned line = 1; err == SL_OK && at < end; line++) {
        const size_t bytes = sl_str_find((sl_str){ at, (size_t)(end - at) }, '\n');

        if (bytes > SL_CONFIG_LINE_BYTES_MAX)
            return complain(complaint, config->path, line, "the line is longer than %d bytes.",
                            SL_CONFIG_LINE_BYTES_MAX);
        if (memchr(at, '\0', bytes) != NULL)
            return complain(complaint, config->path, line, "there is a zero byte: this is no text file.");
        at[bytes] = '\0'; /* the last line ends with the zero behind the text */
        err = read_line(config, at, line, &section, complaint);
        at += bytes + 1;
    }
    return err;
}

/* --- the file --- */

static sl_err complain_unreadable(const char *path, sl_complaint *complaint)
{
    complain(complaint, path, 0,
             "the file cannot be read: %s. --config and SLUICE_CONFIG must name one that is there and may be "
             "read.",
             strerror(errno));
    return SL_ERR_IO;
}

static sl_err read_file(sl_config *config, sl_complaint *complaint)
{
    FILE *const file = fopen(config->path, "re");
    bool failed;

    if (file == NULL)
        return complain_unreadable(config->path, complaint);
    errno = 0;
    config->text_bytes = fread(config->text, 1, config->text_capacity - 1, file);
    failed = ferror(file) != 0;
    if (failed)
        complain_unreadable(config->path, complaint);
    fclose(file);
    if (failed)
        return SL_ERR_IO;
    config->text[config->text_bytes] = '\0';
    if (config->text_bytes > SL_CONFIG_FILE_BYTES_MAX)
        return complain(complaint, config->path, 0,
                        "the file is larger than %d bytes: it cannot be the right one.",
                        SL_CONFIG_FILE_BYTES_MAX);
    return SL_OK;
}

/* One byte more than allowed shows that a file is too large, and one ends the text. */
static sl_err take_memory(sl_config *config)
{
    const size_t text_capacity = SL_CONFIG_FILE_BYTES_MAX + 2;
    const size_t entries_bytes = SL_CONFIG_ENTRIES_MAX * sizeof(entry);

    config->text = sl_alloc_take(config->alloc, text_capacity);
    config->text_capacity = config->text == NULL ? 0 : text_capacity;
    config->entries = sl_alloc_take(config->alloc, entries_bytes);
    config->entries_bytes = config->entries == NULL ? 0 : entries_bytes;
    return config->text == NULL || config->entries == NULL ? SL_ERR_NOMEM : SL_OK;
}

sl_err sl_config_load(const sl_alloc *alloc, const sl_config_tables *tables, const char *path,
                      sl_config **ret_config, sl_complaint *ret_complaint)
{
    sl_config *const config = sl_alloc_take(alloc, sizeof *config);
    sl_err err;

    if (config == NULL)
        return SL_ERR_NOMEM;
    *config = (sl_config){ .alloc = alloc, .tables = tables, .path = path };
    err = take_memory(config);
    if (err == SL_OK)
        err = read_file(config, ret_complaint);
    if (err == SL_OK)
        err = read_lines(config, ret_complaint);
    if (err == SL_OK)
        *ret_config = config;
    else
        sl_config_free(config);
    return err;
}

void sl_config_free(sl_config *config)
{
    if (config == NULL)
        return;
    sl_alloc_give(config->alloc, config->text, config->text_capacity);
    sl_alloc_give(config->alloc, config->entries, config->entries_bytes);
    sl_alloc_give(config->alloc, config, sizeof *config);
}

/* --- from entries to values --- */

/* How near a section is to the command; 0: it is about others. */
static unsigned nearness(const char *section, const sl_command *command)
{
    if (section == NULL)
        return 1;
    if (strcmp(section, command->name) == 0)
        return 3;
    return sl_command_in_family(command, section) ? 2 : 0;
}

static unsigned nearest_of(const sl_config *config, const sl_command *command, const sl_option *row)
{
    unsigned best = 0;

    for (size_t i = 0; i < config->entry_count; i++) {
        const unsigned near = nearness(config->entries[i].section, command);
        if (near > best && strcmp(config->entries[i].key, row->name) == 0)
            best = near;
    }
    return best;
}

static sl_err apply_row(const sl_config *config, const sl_command *command, sl_option_reading *reading,
                        const sl_option *row)
{
    const unsigned wanted = nearest_of(config, command, row);
    sl_err err = SL_OK;

    for (size_t i = 0; err == SL_OK && i < config->entry_count; i++) {
        const entry *const e = &config->entries[i];
        if (nearness(e->section, command) != wanted || wanted == 0 || strcmp(e->key, row->name) != 0)
            continue;
        err = sl_option_take(reading, row, row->name, e->value, SL_OPTION_FROM_FILE);
        reading->values[row - reading->table->rows].line = e->line;
    }
    return err;
}

sl_err sl_config_apply(const sl_config *config, const sl_command *command, sl_option_reading *reading)
{
    const sl_option_table *const table = reading->table;

    for (size_t i = 0; i < table->row_count; i++) {
        const sl_option *const row = &table->rows[i];
        if (!sl_option_belongs(table, row) || !sl_config_has(row) ||
            reading->values[i].source > SL_OPTION_FROM_DEFAULT)
            continue;
        const sl_err err = apply_row(config, command, reading, row);
        if (err != SL_OK)
            return err;
    }
    return SL_OK;
}

/* --- members --- */

static const member *find_member(const sl_config *config, const sl_command *command, size_t index)
{
    for (size_t i = 0; config != NULL && i < config->member_count; i++) {
        if (config->members[i].command == command && index-- == 0)
            return &config->members[i];
    }
    return NULL;
}

size_t sl_config_member_count(const sl_config *config, const sl_command *command)
{
    size_t count = 0;

    while (find_member(config, command, count) != NULL)
        count++;
    return count;
}

const char *sl_config_member_name(const sl_config *config, const sl_command *command, size_t index)
{
    return find_member(config, command, index)->name;
}

static bool is_of(const entry *e, const member *m, const sl_option *row)
{
    return e->section == m->section && strcmp(e->key, row->name) == 0;
}

bool sl_config_member_sets(const sl_config *config, const sl_command *command, size_t index,
                           const sl_option *row)
{
    const member *const m = find_member(config, command, index);

    for (size_t i = 0; i < config->entry_count; i++) {
        if (is_of(&config->entries[i], m, row))
            return true;
    }
    return false;
}

/* Values of the weaker sections are forgotten first, or those of an option that repeats would be joined. */
static sl_err apply_member_row(const sl_config *config, const member *m, sl_option_reading *reading,
                               const sl_option *row)
{
    sl_option_value *const value = &reading->values[row - reading->table->rows];
    sl_err err = SL_OK;

    *value = (sl_option_value){ .source = SL_OPTION_UNSET };
    for (size_t i = 0; err == SL_OK && i < config->entry_count; i++) {
        if (!is_of(&config->entries[i], m, row))
            continue;
        err = sl_option_take(reading, row, row->name, config->entries[i].value, SL_OPTION_FROM_FILE);
        value->line = config->entries[i].line;
    }
    return err;
}

sl_err sl_config_apply_member(const sl_config *config, const sl_command *command, size_t index,
                              sl_option_reading *reading)
{
    const sl_option_table *const table = reading->table;
    sl_err err = SL_OK;

    for (size_t i = 0; err == SL_OK && i < table->row_count; i++) {
        if (!sl_option_belongs(table, &table->rows[i]) || !table->rows[i].of_member ||
            reading->values[i].source > SL_OPTION_FROM_FILE ||
            !sl_config_member_sets(config, command, index, &table->rows[i]))
            continue;
        err = apply_member_row(config, find_member(config, command, index), reading, &table->rows[i]);
    }
    return err;
}
