/* tests/sim/world_client.c — clients as they are: they stall, die, come back, repeat themselves and guess. */
#include "world.h"

#include "trace.h"

#include <assert.h>
#include <string.h>

#define MS UINT64_C(1000000)

static void draw_client(sim_world *world, uint32_t index)
{
    sim_client *client = &world->clients[index];
    sim_rng *rng = &world->rng;
    const bool twin = index > 0 && sim_chance(rng, 15);
    client->session = twin ? world->clients[index - 1].session : sim_session_id(index + 1);
    client->tag_count = sim_chance(rng, 5) ? SL_TAGS_MAX : sim_pick(rng, 4);
    for (uint32_t i = 0; i < client->tag_count; i++)
        client->tags[i] = 1 + sim_pick(rng, world->plan.tag_count);
    client->window = sim_chance(rng, 40) ? 1 + sim_pick(rng, 3) : 1 + sim_pick(rng, 20);
    client->extensions = sim_chance(rng, 60);
    client->sends_started = sim_chance(rng, 60);
    client->reconnect_ns = sim_chance(rng, 10) ? 0 : sim_between(rng, 50, 4000) * MS;
    if (sim_chance(rng, 3))
        client->reconnect_ns = UINT64_MAX;
    if (sim_chance(rng, 20)) /* window and lease may then end together */
        client->reconnect_ns = world->plan.settings.lease_ns;
}

void sim_clients_init(sim_world *world)
{
    assert(world->plan.client_count <= WORLD_CLIENTS_MAX);
    for (uint32_t i = 0; i < world->plan.client_count; i++)
        draw_client(world, i);
}

/* A client with a call, or one without; NULL when there is none. */
sim_client *sim_client_pick(sim_world *world, bool connected)
{
    sim_client *fitting[WORLD_CLIENTS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->plan.client_count; i++)
        if ((world->clients[i].consumer != 0) == connected)
            fitting[count++] = &world->clients[i];
    return count == 0 ? NULL : fitting[sim_pick(&world->rng, count)];
}

/* --- what clients see ------------------------------------------------------------------------------------- */

static sim_client *client_of(sim_world *world, uint64_t consumer)
{
    for (uint32_t i = 0; i < world->plan.client_count; i++)
        if (world->clients[i].consumer == consumer)
            return &world->clients[i];
    return NULL;
}

static void forget_at(sim_client *client, uint32_t index)
{
    client->held_count--;
    for (uint32_t i = index; i < client->held_count; i++)
        client->held[i] = client->held[i + 1];
}

static void forget_id(sim_client *client, sl_uuid id)
{
    for (uint32_t i = client->held_count; i-- > 0;)
        if (memcmp(client->held[i].id.bytes, id.bytes, sizeof id.bytes) == 0)
            forget_at(client, i);
}

static void remember(sim_client *client, const sl_effect *deliver)
{
    if (client->held_count == WORLD_HELD_MAX)
        forget_at(client, 0);
    client->held[client->held_count++] =
        (sim_holding){ .id = deliver->deliver.id, .token = deliver->deliver.token };
}

void sim_client_saw(sim_world *world, const sl_effect *effect)
{
    uint64_t consumer = 0;
    if (effect->kind == SL_EFFECT_JOIN && world->joining != NULL)
        world->joining->consumer = effect->join.consumer;
    if (effect->kind == SL_EFFECT_DELIVER)
        consumer = effect->deliver.consumer;
    else if (effect->kind == SL_EFFECT_SETTLED)
        consumer = effect->settled.consumer;
    else if (effect->kind == SL_EFFECT_LOST)
        consumer = effect->lost.consumer;
    else if (effect->kind == SL_EFFECT_DRAINED)
        consumer = effect->drained.consumer;
    sim_client *client = consumer == 0 ? NULL : client_of(world, consumer);
    if (client == NULL)
        return;
    if (effect->kind == SL_EFFECT_DELIVER)
        remember(client, effect);
    else if (effect->kind == SL_EFFECT_DRAINED)
        client->drained = true;
    else if (sim_chance(&world->rng, 90)) /* otherwise it did not listen, and will ask again */
        forget_id(client, effect->kind == SL_EFFECT_LOST ? effect->lost.id : effect->settled.id);
}

/* --- calls ------------------------------------------------------------------------------------------------ */

static void draw_resume(sim_world *world, const sim_client *client, sim_call *call)
{
    const uint32_t percent = sim_chance(&world->rng, 60) ? 100 : 10 * sim_pick(&world->rng, 10);
    for (uint32_t i = 0; i < client->held_count && call->join.resume_count < SIM_RESUME_MAX - 2; i++)
        if (sim_chance(&world->rng, percent))
            call->resume[call->join.resume_count++] = client->held[i].id;
    if (sim_chance(&world->rng, 10)) /* of somebody else, of nobody, or twice */
        call->resume[call->join.resume_count++] = sim_event_id(1 + sim_pick(&world->rng, 40));
    if (call->join.resume_count > 0 && sim_chance(&world->rng, 5)) {
        const sl_uuid again = call->resume[sim_pick(&world->rng, call->join.resume_count)];
        call->resume[call->join.resume_count++] = again;
    }
}

void sim_client_connect(sim_world *world, sim_client *client)
{
    sim_call call = { .kind = SIM_CALL_JOIN,
                      .now_ns = world->clock_ns,
                      .join = { .session = client->session,
                                .tag_count = client->tag_count,
                                .window = client->window,
                                .extensions = client->extensions,
                                .reconnect_ns = client->reconnect_ns } };
    call.join.sends_started = client->sends_started && sim_chance(&world->rng, 20);
    memcpy(call.tags, client->tags, sizeof call.tags);
    if (client->extensions)
        draw_resume(world, client, &call);
    if (sim_chance(&world->rng, 30))
        client->held_count = 0; /* a new process knows nothing of the old one */
    world->joining = client;    /* its first deliveries come before the call returns */
    sim_world_call(world, &call);
    world->joining = NULL;
}

void sim_client_end(sim_world *world, sim_client *client, sim_call_kind how)
{
    const uint64_t consumer = client->consumer;
    client->consumer = 0;
    client->drained = false;
    sim_world_call(world, &(sim_call){ .kind = how, .now_ns = world->clock_ns, .consumer = consumer });
}

/* --- what clients say ------------------------------------------------------------------------------------- */

static uint64_t draw_token(sim_world *world, const sim_holding *holding)
{
    const uint32_t dice = sim_pick(&world->rng, 100);
    if (dice < 45)
        return 0;
    if (dice < 95)
        return holding->token;
    return holding->token + 1 - 2 * (uint64_t)sim_pick(&world->rng, 2);
}

static void add_claim(sim_world *world, const sim_client *client, sim_call *call)
{
    const bool wild = client->held_count == 0 || sim_chance(&world->rng, 6);
    if (wild) {
        const sim_client *other = &world->clients[sim_pick(&world->rng, world->plan.client_count)];
        const sim_holding guess = other->held_count > 0
                                      ? other->held[sim_pick(&world->rng, other->held_count)]
                                      : (sim_holding){ .id = sim_event_id(1), .token = 7 };
        call->claims[call->claim_count++] =
            (sl_claim){ .id = guess.id, .token = sim_chance(&world->rng, 50) ? 0 : guess.token };
        return;
    }
    const sim_holding *holding = &client->held[sim_pick(&world->rng, client->held_count)];
    call->claims[call->claim_count++] = (sl_claim){ .id = holding->id, .token = draw_token(world, holding) };
}

static void draw_nack(sim_world *world, sim_call *call)
{
    const uint32_t dice = sim_pick(&world->rng, 10);
    call->nack.action = dice < 7 ? SL_NACK_RETRY : dice < 9 ? SL_NACK_PARK : SL_NACK_SKIP;
    call->nack.has_delay = sim_chance(&world->rng, 30);
    call->nack.delay_ns = call->nack.has_delay ? sim_between(&world->rng, 0, 3000) * MS : 0;
    if (call->nack.has_delay && sim_chance(&world->rng, 3))
        call->nack.delay_ns = sim_rng_next(&world->rng); /* for ever, as it thinks */
}

static void draw_extend(sim_world *world, sim_call *call)
{
    static const uint64_t lengths_ns[] = { 0, 0, 1, 100 * MS, 10000 * MS, UINT64_MAX };
    call->lease_ns = lengths_ns[sim_pick(&world->rng, 6)];
}

static sim_call_kind draw_word(sim_world *world, const sim_client *client)
{
    const uint32_t dice = sim_pick(&world->rng, 100);
    if (dice < 30 && client->sends_started)
        return SIM_CALL_STARTED;
    if (dice < 68)
        return SIM_CALL_ACK;
    if (dice < 82)
        return SIM_CALL_NACK;
    return dice < 94 ? SIM_CALL_RELEASE : SIM_CALL_EXTEND;
}

static void send_later(sim_world *world, const sim_call *call)
{
    if (world->letter_count < WORLD_LETTERS_MAX)
        world->letters[world->letter_count++] = *call;
}

/* A client that settles believes to be done with it, most of the time. */
static void forget_claims(sim_world *world, sim_client *client, const sim_call *call)
{
    if (call->kind == SIM_CALL_STARTED || call->kind == SIM_CALL_EXTEND || sim_chance(&world->rng, 20))
        return;
    for (uint32_t i = 0; i < call->claim_count; i++)
        forget_id(client, call->claims[i].id);
}

void sim_client_work(sim_world *world, sim_client *client)
{
    sim_call call = { .kind = draw_word(world, client),
                      .now_ns = world->clock_ns,
                      .consumer = client->consumer };
    const bool promises = call.kind == SIM_CALL_STARTED && sim_chance(&world->rng, 15);
    uint32_t count = promises ? 0 : 1 + sim_pick(&world->rng, 4);
    while (count-- > 0)
        add_claim(world, client, &call);
    if (call.kind == SIM_CALL_NACK)
        draw_nack(world, &call);
    if (call.kind == SIM_CALL_EXTEND)
        draw_extend(world, &call);
    forget_claims(world, client, &call);
    const uint32_t dice = sim_pick(&world->rng, 100);
    if (dice < 25)
        send_later(world, &call);
    if (dice >= 20)
        sim_world_call(world, &call); /* 20 to 24: twice */
}

/* A letter arrives: late, out of order, maybe through the next call of the same client. */
void sim_letter_deliver(sim_world *world)
{
    if (world->letter_count == 0)
        return;
    const uint32_t index = sim_pick(&world->rng, world->letter_count);
    sim_call call = world->letters[index];
    world->letters[index] = world->letters[--world->letter_count];
    call.now_ns = world->clock_ns;
    if (sim_chance(&world->rng, 30)) {
        const sim_client *client = sim_client_pick(world, true);
        call.consumer = client == NULL ? call.consumer : client->consumer;
    }
    sim_world_call(world, &call);
}

void sim_client_ack_all(sim_world *world, sim_client *client)
{
    while (client->held_count > 0) {
        sim_call call = { .kind = SIM_CALL_ACK, .now_ns = world->clock_ns, .consumer = client->consumer };
        while (client->held_count > 0 && call.claim_count < SIM_CLAIMS_MAX) {
            const sim_holding *holding = &client->held[--client->held_count];
            call.claims[call.claim_count++] = (sl_claim){ .id = holding->id, .token = holding->token };
        }
        sim_world_call(world, &call);
    }
}
