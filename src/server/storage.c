/* server/storage.c — see storage.h. One errand at a time; what it shares with the loop is the progress, under a mutex. */
#include "server/storage.h"

#include "server/errand.h"

#include <assert.h>

enum {
    REPORT_BYTES = 1024
};

typedef struct progress {
    const char *what; /* static text of the store; NULL: nothing yet */
    uint64_t done, total;
} progress;

struct sl_storage {
    const sl_alloc *alloc;
    const sl_logger *log;
    sl_loop *loop;
    sl_storage_state state;
    sl_errand errand;

    /* Of the other thread until the errand was taken back. */
    sl_store_setup setup;
    sl_journal_options options;
    sl_store *store;
    sl_err err;
    char report_text[REPORT_BYTES];
    sl_text report;

    pthread_mutex_t mutex;
    progress now; /* under the mutex */
    progress told;
    uint64_t began_ns;
};

/* --- in the other thread --- */

static bool is_a_step(const progress *last, const char *what, uint64_t done, uint64_t total)
{
    return last->what == NULL || strcmp(last->what, what) != 0 || done == total ||
           done / (total / 10 + 1) != last->done / (total / 10 + 1);
}

/* Wakes the loop for each tenth: the log shall say that something happens, not everything that happens. */
static void note_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    sl_storage *const storage = ctx;
    bool is_step;

    pthread_mutex_lock(&storage->mutex);
    is_step = is_a_step(&storage->now, what, done, total);
    storage->now = (progress){ what, done, total };
    pthread_mutex_unlock(&storage->mutex);
    if (is_step)
        sl_errand_wake(&storage->errand);
}

static void open_it(void *ctx)
{
    sl_storage *const storage = ctx;

    storage->err =
        sl_store_open_journal(&storage->setup, &storage->options, &storage->report, &storage->store);
}

static void close_it(void *ctx)
{
    sl_storage *const storage = ctx;

    sl_store_close(storage->store);
}

/* --- in the loop's thread --- */

sl_err sl_storage_new(const sl_storage_setup *setup, sl_storage **ret_storage)
{
    sl_storage *const storage = sl_alloc_take(setup->alloc, sizeof *storage);

    if (storage == NULL)
        return SL_ERR_NOMEM;
    *storage = (sl_storage){ .alloc = setup->alloc, .log = setup->log, .loop = setup->loop };
    storage->setup = (sl_store_setup){ .alloc = setup->alloc, .seed = setup->seed };
    storage->options = (sl_journal_options){ .folder = setup->settings->data_folder,
                                             .sync_by_os = setup->settings->sync_by_os,
                                             .progress = note_progress,
                                             .progress_ctx = storage };
    sl_text_init(&storage->report, storage->report_text, sizeof storage->report_text);
    storage->began_ns = sl_loop_now_ns(setup->loop);
    if (pthread_mutex_init(&storage->mutex, NULL) != 0 ||
        sl_errand_begin(&storage->errand, setup->loop, open_it, storage) != SL_OK) {
        sl_alloc_give(setup->alloc, storage, sizeof *storage);
        return SL_ERR_IO;
    }
    *ret_storage = storage;
    return SL_OK;
}

static progress look(sl_storage *storage)
{
    progress now;

    pthread_mutex_lock(&storage->mutex);
    now = storage->now;
    pthread_mutex_unlock(&storage->mutex);
    return now;
}

static void tell_progress(sl_storage *storage)
{
    const progress now = look(storage);

    if (now.what == NULL || !is_a_step(&storage->told, now.what, now.done, now.total))
        return;
    storage->told = now;
    sl_log(storage->log, SL_LOG_INFO, "opening the store", SL_LOG_STR("step", now.what),
           SL_LOG_U64("done", now.done), SL_LOG_U64("total", now.total));
}

static void opened(sl_storage *storage)
{
    storage->state = storage->err == SL_OK ? SL_STORAGE_OPEN : SL_STORAGE_FAILED;
    if (storage->err != SL_OK)
        return;
    if (storage->report.bytes > 0)
        sl_log(storage->log, SL_LOG_WARN, "the store found something when it was opened",
               SL_LOG_STR("report", sl_text_str(&storage->report)));
    sl_log(storage->log, SL_LOG_INFO, "store opened", SL_LOG_STR("folder", storage->options.folder),
           SL_LOG_U64("end_position", sl_store_end(storage->store)),
           SL_LOG_DURATION("took", sl_loop_now_ns(storage->loop) - storage->began_ns));
}

sl_storage_state sl_storage_turn(sl_storage *storage)
{
    if (storage->state == SL_STORAGE_OPENING)
        tell_progress(storage);
    if (!sl_errand_take(&storage->errand))
        return storage->state;
    if (storage->state == SL_STORAGE_OPENING)
        opened(storage);
    else
        storage->state = SL_STORAGE_CLOSED;
    return storage->state;
}

sl_store *sl_storage_store(const sl_storage *storage)
{
    assert(storage->state == SL_STORAGE_OPEN);
    return storage->store;
}

sl_err sl_storage_err(const sl_storage *storage)
{
    return storage->err;
}

const char *sl_storage_report(const sl_storage *storage)
{
    return storage->report.bytes == 0 ? sl_err_text(storage->err) : storage->report_text;
}

void sl_storage_progress(sl_storage *storage, sl_text *text)
{
    const progress now = look(storage);

    if (now.what == NULL)
        return;
    sl_text_add(text, now.what);
    sl_text_add(text, ": ");
    sl_text_add_u64(text, now.done);
    sl_text_add(text, " of ");
    sl_text_add_u64(text, now.total);
}

void sl_storage_close(sl_storage *storage)
{
    assert(storage->state == SL_STORAGE_OPEN);
    storage->state = SL_STORAGE_CLOSING;
    if (sl_errand_begin(&storage->errand, storage->loop, close_it, storage) == SL_OK)
        return;
    sl_store_close(storage->store);
    storage->state = SL_STORAGE_CLOSED;
}

void sl_storage_free(sl_storage *storage)
{
    if (storage == NULL)
        return;
    assert(storage->state != SL_STORAGE_OPEN);
    if (storage->state == SL_STORAGE_OPENING || storage->state == SL_STORAGE_CLOSING) {
        sl_errand_leave(&storage->errand);
        return;
    }
    pthread_mutex_destroy(&storage->mutex);
    sl_alloc_give(storage->alloc, storage, sizeof *storage);
}
