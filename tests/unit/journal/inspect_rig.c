/* tests/unit/journal/inspect_rig.c — see inspect_rig.h. */
#include "inspect_rig.h"

#include "base/list.h"

#include <poll.h>

enum {
    SEGMENT_BYTES = 32 * 1024
};

static const sl_store_setup setup = { .alloc = &sl_alloc_default, .seed = { 3, 5 } };

sl_err open_again(world *w)
{
    const sl_journal_options options = { .segment_bytes =
                                             w->segment_bytes == 0 ? SEGMENT_BYTES : w->segment_bytes };
    char words[512];
    sl_text report;

    sl_text_init(&report, words, sizeof words);
    return sl_store_open_faulty(&setup, &options, w->disk, &report, &w->store);
}

static void snapshot(void *ctx, uint64_t group, sl_sink sink)
{
    const sl_effect record = { .kind = SL_EFFECT_CHECKPOINT, .checkpoint = { SL_LANE_MAIN, group } };

    (void)ctx;
    sink.emit(sink.ctx, &record);
}

world world_open(void)
{
    return world_open_with(SEGMENT_BYTES);
}

world world_open_with(uint64_t segment_bytes)
{
    world w = { .disk = sl_faulty_new(), .next_id = 1, .segment_bytes = segment_bytes };

    EXPECT_OK(open_again(&w));
    sl_store_on_snapshot(w.store, snapshot, NULL);
    return w;
}

void world_close(world *w)
{
    if (w->store != NULL)
        sl_store_close(w->store);
    w->store = NULL;
}

void world_free(world *w)
{
    world_close(w);
    sl_faulty_free(w->disk);
}

static void note_done(void *ctx, const sl_commit *commit)
{
    EXPECT_OK(commit->err);
    ((world *)ctx)->waiting--;
}

void wait_once(world *w)
{
    struct pollfd waiting = { .fd = sl_store_wait_fd(w->store), .events = POLLIN };

    EXPECT_EQ(poll(&waiting, 1, 10 * 1000), 1);
    sl_store_poll(w->store);
}

static void submit(world *w, const sl_op *op)
{
    const sl_batch batch = { .ops = op, .op_count = 1 };

    EXPECT_OK(sl_store_submit(w->store, &batch, note_done, w));
    w->waiting++;
}

void commit(world *w, const sl_op *op)
{
    submit(w, op);
    sl_store_turn(w->store);
    while (w->waiting > 0)
        wait_once(w);
}

sl_event_in event_of(world *w, size_t bytes)
{
    static char data[SEGMENT_BYTES];

    memset(data, 'd', sizeof data);
    return (sl_event_in){ .id = sl_uuid_from_halves(1, (int64_t)w->next_id++),
                          .type = SL_STR("type"),
                          .data = { data, bytes },
                          .created_ns = 1 };
}

void append(world *w, const char *stream, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sl_event_in event = event_of(w, 500);
        const sl_op op = { .kind = SL_OP_APPEND, .append = { sl_str_from(stream), { 0 }, &event, 1 } };
        commit(w, &op);
    }
}

void fill(world *w)
{
    const sl_op create = { .kind = SL_OP_GROUP_CREATE, .group_create = { 7, SL_STR("seven") } };
    const sl_effect record = { .kind = SL_EFFECT_CHECKPOINT, .checkpoint = { SL_LANE_MAIN, 1 } };
    const sl_op settle = { .kind = SL_OP_GROUP_RECORD, .group_record = { 7, &record, 1 } };
    const sl_op again = { .kind = SL_OP_GROUP_UPDATE, .group_update = { 7, SL_STR("seven again") } };
    const sl_op at_last = { .kind = SL_OP_GROUP_UPDATE, .group_update = { 7, SL_STR(FILLED_DEFINITION) } };
    const sl_op forget = { .kind = SL_OP_DELETE, .remove = { SL_STR("gone"), { 0 }, 1, { { 9 } } } };

    commit(w, &create);
    for (int i = 0; i < 20; i++) {
        append(w, "gone", 2);
        append(w, "a", 2);
        append(w, "b", 2);
        commit(w, &settle);
        if (i == 3 || i == 10)
            commit(w, i == 3 ? &again : &at_last);
    }
    commit(w, &forget);
}

static void note_scavenged(void *ctx, const sl_scavenged *result)
{
    ((world *)ctx)->scavenged = *result;
    ((world *)ctx)->waiting--;
}

/* The store may be at it by itself. */
void scavenge(world *w)
{
    const sl_scavenge how = { .now_ns = 2 };
    sl_err err;

    while ((err = sl_store_scavenge(w->store, &how, note_scavenged, w)) == SL_ERR_EXISTS) {
        sl_store_turn(w->store);
        wait_once(w);
    }
    EXPECT_OK(err);
    w->waiting++;
    sl_store_turn(w->store);
    while (w->waiting > 0)
        wait_once(w);
    EXPECT_OK(w->scavenged.err);
}

/* --- loading --- */

typedef struct loaded {
    char definition[32];
    unsigned groups, records;
} loaded;

static sl_err load_group(void *ctx, uint64_t group, sl_str definition)
{
    loaded *const l = ctx;

    EXPECT_EQ(group, 7);
    EXPECT(definition.bytes < sizeof l->definition);
    memcpy(l->definition, definition.data, definition.bytes);
    l->groups++;
    return SL_OK;
}

static sl_err load_record(void *ctx, uint64_t group, const sl_effect *record)
{
    EXPECT(group == 7 && record->kind == SL_EFFECT_CHECKPOINT);
    ((loaded *)ctx)->records++;
    return SL_OK;
}

void expect_definition(world *w, const char *definition)
{
    loaded l = { 0 };

    EXPECT_OK(sl_store_load(w->store, &(sl_loader){ &l, load_group, load_record }));
    EXPECT_EQ(l.groups, 1);
    EXPECT_STR(l.definition, definition);
    EXPECT(l.records > 0);
}

/* --- verifying --- */

void note_finding(void *ctx, const sl_finding *finding)
{
    found *const f = ctx;

    EXPECT(finding->what[0] != '\0' && finding->advice[0] != '\0');
    f->notes += !finding->is_damage;
    if (!finding->is_damage)
        return;
    if (f->damages++ == 0) {
        snprintf(f->file, sizeof f->file, "%s", finding->file);
        f->offset = finding->offset;
        f->lost_from = finding->lost_from;
        f->lost_to = finding->lost_to;
    }
    f->several_files = f->several_files || strcmp(f->file, finding->file) != 0;
}

found verify_door(sl_disk *door, sl_verified *ret_verified)
{
    found f = { 0 };
    const sl_inspection how = { .ctx = &f, .finding = note_finding };

    EXPECT_OK(sl_verify_disk(door, &how, ret_verified));
    EXPECT_EQ(ret_verified->damages, f.damages);
    return f;
}

found verify(sl_faulty *disk, sl_verified *ret_verified)
{
    sl_disk *const door = sl_faulty_door(disk);
    const found f = verify_door(door, ret_verified);

    door->ops->free(door);
    return f;
}

kept keep_file(sl_faulty *disk, const char *name)
{
    kept file = { 0 };
    const uint8_t *const bytes = sl_faulty_content(disk, name, &file.byte_count);

    EXPECT(bytes != NULL);
    snprintf(file.name, sizeof file.name, "%s", name);
    file.bytes = malloc(file.byte_count);
    assert_non_null(file.bytes);
    memcpy(file.bytes, bytes, file.byte_count);
    return file;
}

void put_file(sl_faulty *disk, const kept *file)
{
    sl_disk *const door = sl_faulty_door(disk);
    sl_file *made = NULL;

    (void)door->ops->remove(door, file->name);
    EXPECT_OK(door->ops->create(door, file->name, file->byte_count, NULL, &made));
    EXPECT_OK(door->ops->write(made, 0, file->bytes, file->byte_count));
    EXPECT_OK(door->ops->sync(made));
    door->ops->close(made);
    door->ops->free(door);
}

/* --- a door with a hook --- */

typedef struct hooked {
    sl_disk base;
    sl_disk *inner;
    const hook *hook;
} hooked;

typedef struct hooked_file {
    sl_file base;
    sl_file *inner;
} hooked_file;

static hooked *hooked_of(sl_disk *disk)
{
    return SL_CONTAINER_OF(disk, hooked, base);
}

static sl_file *inner_of(sl_file *file)
{
    return SL_CONTAINER_OF(file, hooked_file, base)->inner;
}

static sl_err hooked_list(sl_disk *disk, sl_name_fn *fn, void *ctx)
{
    return hooked_of(disk)->inner->ops->list(hooked_of(disk)->inner, fn, ctx);
}

static sl_err hooked_open(sl_disk *disk, const char *name, sl_file **ret_file)
{
    hooked *const h = hooked_of(disk);
    hooked_file *const file = malloc(sizeof *file);
    sl_err err;

    assert_non_null(file);
    if (h->hook->open != NULL)
        h->hook->open(h->hook->ctx, name);
    *file = (hooked_file){ .base = { .disk = disk } };
    err = h->inner->ops->open(h->inner, name, &file->inner);
    if (err != SL_OK)
        free(file);
    else
        *ret_file = &file->base;
    return err;
}

static void hooked_close(sl_file *file)
{
    sl_file *const inner = inner_of(file);

    inner->disk->ops->close(inner);
    free(SL_CONTAINER_OF(file, hooked_file, base));
}

static uint64_t hooked_size(sl_file *file)
{
    return inner_of(file)->disk->ops->size(inner_of(file));
}

static sl_err hooked_read(sl_file *file, uint64_t offset, void *data, size_t bytes)
{
    const hook *const h = hooked_of(file->disk)->hook;

    if (h->read != NULL)
        h->read(h->ctx, offset);
    return inner_of(file)->disk->ops->read(inner_of(file), offset, data, bytes);
}

static void hooked_free(sl_disk *disk)
{
    hooked_of(disk)->inner->ops->free(hooked_of(disk)->inner);
    free(hooked_of(disk));
}

static const sl_disk_ops hooked_ops = { .list = hooked_list,
                                        .open = hooked_open,
                                        .close = hooked_close,
                                        .size = hooked_size,
                                        .read = hooked_read,
                                        .free = hooked_free };

sl_disk *hooked_door(sl_faulty *disk, const hook *h)
{
    hooked *const door = malloc(sizeof *door);

    assert_non_null(door);
    *door = (hooked){ .base = { .ops = &hooked_ops }, .inner = sl_faulty_door(disk), .hook = h };
    return &door->base;
}
