/* bench/worker/handlers.c — see handlers.h. */
#include "handlers.h"

#include "worker/callback_handler.h"
#include "worker/exec_handler.h"
#include "worker/http_handler.h"
#include "worker/lines_handler.h"

typedef struct saying { /* what a handler that cannot be made has to say */
    char sentence[512];
    sl_text text;
} saying;

static sl_text *listen_to(saying *s)
{
    sl_text_init(&s->text, s->sentence, sizeof s->sentence);
    return &s->text;
}

static sl_handler *made(sl_err err, const saying *s, sl_handler *handler)
{
    if (err != SL_OK)
        bench_fail("the handler cannot be made: %s", s->sentence[0] != '\0' ? s->sentence : sl_err_text(err));
    return handler;
}

sl_handler *make_http(sl_loop *loop, const sl_logger *log, const work_setup *setup)
{
    const sl_http_options options = { .url = setup->target, .slots = setup->slots, .log = log };
    sl_handler *handler = NULL;
    saying s;

    const sl_err err = sl_http_handler_new(loop, &options, listen_to(&s), &handler);
    return made(err, &s, handler);
}

sl_handler *make_lines(sl_loop *loop, const sl_logger *log, const work_setup *setup)
{
    const sl_lines_options options = { .command = setup->target, .slots = setup->slots, .log = log };
    sl_handler *handler = NULL;
    saying s;

    const sl_err err = sl_lines_handler_new(loop, &options, listen_to(&s), &handler);
    return made(err, &s, handler);
}

sl_handler *make_exec(sl_loop *loop, const sl_logger *log, const work_setup *setup)
{
    const sl_exec_options options = { .command = setup->target, .slots = setup->slots, .log = log };
    sl_handler *handler = NULL;
    saying s;

    const sl_err err = sl_exec_handler_new(loop, &options, listen_to(&s), &handler);
    return made(err, &s, handler);
}

static sl_worker_result work(void *user, sl_ctx *ctx)
{
    (void)user;
    (void)ctx;
    return SL_WORKER_DONE;
}

sl_handler *make_callback(sl_loop *loop, const sl_logger *log, const work_setup *setup)
{
    const sl_callback_settings settings = {
        .work = work, .slots = setup->slots, .name = "bench", .log = log
    };
    sl_handler *handler = NULL;
    saying s;

    (void)listen_to(&s);
    const sl_err err = sl_callback_new(loop, &settings, &handler);
    return made(err, &s, handler);
}
