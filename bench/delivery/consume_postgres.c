/* bench/delivery/consume_postgres.c — PostgreSQL as a queue: rows are leased with SKIP LOCKED in batches, and deleted when they are done.
 *
 * Two statements for a batch, each a transaction: what a worker holds must be known to others, so that it can be taken over. An
 * empty table is asked again at once; a real worker would wait, or listen. */
#include "consumer.h"

#include "base/buf.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct worker {
    PGconn *connection;
    bool deletes; /* what is asked now: leases or the end of them */
    uint32_t held;
} worker;

static void complain(const worker *w)
{
    bench_fail("postgres: %s", PQerrorMessage(w->connection));
}

static PGconn *connect_to(peer *p)
{
    char text[128];

    snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=postgres dbname=postgres", p->port);
    PGconn *const connection = PQconnectdb(text);
    if (PQstatus(connection) != CONNECTION_OK)
        bench_fail("postgres: %s", PQerrorMessage(connection));
    return connection;
}

static void prepare(peer *p)
{
    PGconn *const connection = connect_to(p);

    PQclear(PQexec(connection,
                   "ALTER TABLE bench ADD COLUMN leased_until timestamptz, ADD COLUMN leased_by int"));
    PQfinish(connection);
}

static void ask(consumer *c)
{
    worker *const w = c->state;
    char text[512];

    if (w->deletes)
        snprintf(text, sizeof text, "DELETE FROM bench WHERE leased_by = %u", c->index);
    else
        snprintf(
            text, sizeof text,
            "UPDATE bench SET leased_until = now() + interval '60 s', leased_by = %u WHERE id IN (SELECT id "
            "FROM bench WHERE leased_until IS NULL ORDER BY id LIMIT %u FOR UPDATE SKIP LOCKED) RETURNING "
            "body",
            c->index, c->window);
    if (!PQsendQuery(w->connection, text))
        complain(w);
}

static void open_consumer(consumer *c)
{
    worker *const w = bench_allocate(sizeof *w);

    *w = (worker){ .connection = connect_to(c->server) };
    PQsetnonblocking(w->connection, 1);
    c->state = w;
    c->fd = PQsocket(w->connection);
    ask(c);
    PQflush(w->connection);
}

static void take_result(consumer *c)
{
    worker *const w = c->state;
    PGresult *const result = PQgetResult(w->connection);
    const ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        complain(w);
    for (int i = 0; status == PGRES_TUPLES_OK && i < PQntuples(result); i++)
        consumer_take(c, PQgetvalue(result, i, 0));
    if (w->deletes)
        c->acked += w->held;
    w->held = w->deletes ? 0 : (uint32_t)PQntuples(result);
    w->deletes = w->held > 0;
    PQclear(result);
    while (PQgetResult(w->connection) != NULL)
        continue;
}

static bool turn(consumer *c)
{
    worker *const w = c->state;

    if (!PQconsumeInput(w->connection))
        complain(w);
    if (!PQisBusy(w->connection)) {
        take_result(c);
        ask(c);
    }
    return PQflush(w->connection) > 0;
}

static void close_consumer(consumer *c)
{
    worker *const w = c->state;

    PQfinish(w->connection);
    free(w);
}

const consumer_kind consumer_postgres = {
    .peer = &peer_postgres, .prepare = prepare, .open = open_consumer, .turn = turn, .close = close_consumer
};
