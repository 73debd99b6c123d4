/* bench/worker/handlers.h — the handlers of the worker, each made from a work_setup; for work_setup.make. */
#ifndef BENCH_WORKER_HANDLERS_H
#define BENCH_WORKER_HANDLERS_H

#include "work_run.h"

sl_handler *make_http(sl_loop *loop, const sl_logger *log, const work_setup *setup);
sl_handler *make_lines(sl_loop *loop, const sl_logger *log, const work_setup *setup);
sl_handler *make_exec(sl_loop *loop, const sl_logger *log, const work_setup *setup);
/* A C function that is done at once. */
sl_handler *make_callback(sl_loop *loop, const sl_logger *log, const work_setup *setup);

#endif
