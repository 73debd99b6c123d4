/* bench/server/peer_postgres.c — PostgreSQL: all queued messages as the rows of one INSERT, in one transaction. */
#include "peer.h"

#include "base/buf.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct database {
    PGconn *connection;
    sl_buf statement;
    uint32_t queued, sent;
} database;

enum {
    STATEMENT_BYTES_MAX = 16 * 1024 * 1024
};

/* PostgreSQL does not run as root: then the user that Debian's package makes runs it. */
static void run_and_wait(peer *p, const char *command)
{
    const bool is_root = geteuid() == 0;
    const char *const words[] = { "/bin/sh", "-c", command, NULL };
    char own[2 * BENCH_PATH_BYTES_MAX + 64];

    if (is_root) {
        snprintf(own, sizeof own, "chown -R postgres %s && chmod 711 %s/..", p->folder, p->folder);
        if (system(own) != 0)
            bench_fail("postgres: there is no user postgres");
    }
    peer_spawn(p, words, NULL);
    if (!peer_ended_well(p))
        bench_fail("postgres: %s failed; see %s/log", command, p->folder);
}

static void connect_to(peer *p, database *d)
{
    char text[256];

    close(peer_connect(p));
    snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=postgres dbname=postgres", p->port);
    for (double end_s = bench_now_s() + ANSWER_SECONDS_MAX; bench_now_s() < end_s;) {
        d->connection = PQconnectdb(text);
        if (PQstatus(d->connection) == CONNECTION_OK)
            return;
        PQfinish(d->connection);
        usleep(50 * 1000);
    }
    bench_fail("postgres: no connection");
}

static void start(peer *p)
{
    database *const d = bench_allocate(sizeof *d);
    char command[4 * BENCH_PATH_BYTES_MAX], programs[BENCH_PATH_BYTES_MAX];
    const char *const as = geteuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --clear-groups" : "";

    snprintf(programs, sizeof programs, "%s", peer_program("initdb"));
    *strrchr(programs, '/') = '\0';
    snprintf(command, sizeof command, "%s %s/initdb -D %s/pg -U postgres -A trust >/dev/null", as, programs,
             p->folder);
    run_and_wait(p, command);
    snprintf(
        command, sizeof command,
        "exec %s %s/postgres -D %s/pg -p %u -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s/pg "
        "-c shared_buffers=1GB -c fsync=on -c synchronous_commit=on",
        as, programs, p->folder, p->port, p->folder);
    peer_spawn(p, (const char *const[]){ "/bin/sh", "-c", command, NULL }, NULL);
    *d = (database){ 0 };
    connect_to(p, d);
    PQclear(PQexec(d->connection, "CREATE TABLE bench (id bigserial PRIMARY KEY, body text NOT NULL)"));
    PQsetnonblocking(d->connection, 1);
    sl_buf_init(&d->statement, &sl_alloc_default, STATEMENT_BYTES_MAX);
    p->state = d;
}

static void put(peer *p, uint32_t count)
{
    ((database *)p->state)->queued += count;
}

static void send_rows(database *d)
{
    static const char head[] = "INSERT INTO bench (body) VALUES ";

    sl_buf_clear(&d->statement);
    bench_must(sl_buf_append(&d->statement, head, sizeof head - 1), "postgres");
    for (uint32_t i = 0; i < d->queued; i++) {
        bench_must(sl_buf_append(&d->statement, i == 0 ? "('" : ",('", i == 0 ? 2 : 3), "postgres");
        bench_must(sl_buf_append(&d->statement, peer_payload(), PAYLOAD_BYTES), "postgres");
        bench_must(sl_buf_append(&d->statement, "')", 2), "postgres");
    }
    bench_must(sl_buf_append_u8(&d->statement, 0), "postgres");
    if (!PQsendQuery(d->connection, (const char *)sl_buf_data(&d->statement)))
        bench_fail("postgres: %s", PQerrorMessage(d->connection));
    d->sent = d->queued;
    d->queued = 0;
}

static uint32_t take_result(database *d)
{
    PGresult *const result = PQgetResult(d->connection);
    const uint32_t confirmed = d->sent;

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        bench_fail("postgres: %s", PQerrorMessage(d->connection));
    PQclear(result);
    while (PQgetResult(d->connection) != NULL)
        continue;
    d->sent = 0;
    return confirmed;
}

/* One statement at a time, as one connection can; what is queued meanwhile goes with the next. */
static uint32_t await_answers(peer *p, uint64_t timeout_ns)
{
    database *const d = p->state;
    const double end_s = bench_now_s() + (double)timeout_ns * 1e-9;

    if (d->sent == 0 && d->queued > 0)
        send_rows(d);
    while (d->sent > 0) {
        bench_check();
        const int unsent = PQflush(d->connection);
        if (!PQconsumeInput(d->connection))
            bench_fail("postgres: %s", PQerrorMessage(d->connection));
        if (!PQisBusy(d->connection))
            return take_result(d);
        const double left_s = end_s - bench_now_s();
        if (left_s <= 0)
            return 0;
        struct pollfd wanted = { .fd = PQsocket(d->connection),
                                 .events = (short)(POLLIN | (unsent > 0 ? POLLOUT : 0)) };
        const struct timespec left = { .tv_sec = (time_t)left_s,
                                       .tv_nsec = (long)((left_s - (double)(time_t)left_s) * 1e9) };
        ppoll(&wanted, 1, &left, NULL);
    }
    while (bench_now_s() < end_s)
        usleep(50);
    return 0;
}

static void stop(peer *p)
{
    database *const d = p->state;

    PQfinish(d->connection);
    sl_buf_done(&d->statement);
    free(d);
}

const peer_kind peer_postgres = { .name = "postgres",
                                  .program = "initdb",
                                  .flushes = true,
                                  .start = start,
                                  .put = put,
                                  .wait = await_answers,
                                  .stop = stop };
