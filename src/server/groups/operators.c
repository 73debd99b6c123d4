/* server/groups/operators.c — see operators.h: stopping and resuming, and who waits for that.
 *
 * A wait has a target for each consumer that is meant. The target watches the card of its consumer; a card that lets its watchers
 * go makes them empty, so what is left to wait for is the targets that are not. And it has a mark for each rule: before
 * these are durable nothing is told, because who asks may act on it. */
#include "server/groups/operators_private.h"

#include "base/cleanup.h"
#include "server/groups/names.h"
#include "server/groups/registry.h"

#include <assert.h>

#define MS_NS UINT64_C(1000000)

struct sl_stop_target {
    sl_list node; /* wait->targets */
    sl_card_watcher watcher;
    sl_uuid session;
    uint32_t held;           /* while it was away */
    bool is_of_earlier_life; /* away since before this process */
    bool is_back;            /* its session has come back and is waited for in its place */
};

/* A rule on its way to the disk. */
typedef struct rule_mark {
    sl_list node; /* wait->marks */
    sl_stop_wait *wait;
    sl_desk_mark mark;
} rule_mark;

/* --- who --- */

static bool is_too_long(sl_str text)
{
    return text.bytes > SL_WHO_TEXT_BYTES_MAX;
}

const char *sl_who_complaint(const sl_wire_who *who, bool may_be_everybody)
{
    const bool has_label = who->label_key.bytes > 0;

    if (who->group.bytes > 0 && who->stream.bytes == 0)
        return "A group is named together with its stream: say which one, \"$all\" for groups on everything.";
    if (who->label_value.bytes > 0 && !has_label)
        return "A label has a key and a value, and the key is missing.";
    if (is_too_long(who->stream) || is_too_long(who->group) || is_too_long(who->consumer_name) ||
        is_too_long(who->label_key) || is_too_long(who->label_value))
        return "A name is too long: at most 1,024 bytes.";
    if (!may_be_everybody && who->stream.bytes == 0 && who->consumer_name.bytes == 0 && !has_label)
        return "Say who is meant: a stream, a group of it, a consumer by its name, or a label. Everybody on "
               "the "
               "server at once is stopped by stopping the server.";
    return NULL;
}

uint32_t operators_tags_of(const sl_wire_who *who, uint64_t tags[2])
{
    uint32_t count = 0;

    if (who->consumer_name.bytes > 0) /* first: is_meant() */
        tags[count++] = sl_tag_of_name(sl_consumer_name_of(who->consumer_name));
    if (who->label_key.bytes > 0)
        tags[count++] = sl_tag_of_label(who->label_key, who->label_value);
    return count;
}

bool operators_fit(const sl_card *card, const uint64_t *tags, uint32_t tag_count)
{
    for (uint32_t i = 0; i < tag_count; i++)
        if (!sl_card_has_tag(card, tags[i]))
            return false;
    return true;
}

sl_err operators_each_desk(sl_host *host, const sl_wire_who *who, sl_desk_fn *fn, void *ctx)
{
    sl_desk *desk;

    if (who->group.bytes == 0) {
        sl_registry_each(host->registry, who->stream, fn, ctx);
        return SL_OK;
    }
    desk = sl_registry_find(host->registry, who->stream, who->group);
    if (desk == NULL)
        return SL_ERR_NOT_FOUND;
    fn(ctx, desk);
    return SL_OK;
}

/* --- waits --- */

static void set_end(sl_stop_wait *wait, uint32_t wait_ms)
{
    const uint64_t wait_ns = sl_min_u64(wait_ms, SL_STOP_WAIT_MS_MAX) * MS_NS;

    wait->is_over = wait_ms == 0;
    if (wait_ms > 0)
        sl_alarm_set(wait->host, &wait->end, sl_clock_mono_ns(wait->host->clock) + wait_ns);
}

static void on_end_of_waiting(void *ctx)
{
    sl_stop_wait *const wait = ctx;

    wait->is_over = true;
    sl_operators_touch(wait->host);
}

static sl_err begin_wait(sl_host *host, const sl_wire_who *who, sl_stop_wait *wait)
{
    sl_operators *const operators = host->operators;

    if (host->stopping)
        return SL_ERR_DRAINING;
    if (operators->wait_count >= SL_STOP_WAITS_MAX)
        return SL_ERR_FULL;
    *wait = (sl_stop_wait){
        .host = host, .changed = wait->changed, .ctx = wait->ctx, .user = wait->user, .who = *who
    };
    wait->tag_count = operators_tags_of(who, wait->tags);
    wait->end = (sl_alarm){ .fn = on_end_of_waiting, .ctx = wait };
    sl_list_init(&wait->targets);
    sl_list_init(&wait->marks);
    sl_list_push_back(&operators->waits, &wait->node);
    operators->wait_count++;
    sl_operators_touch(host);
    return SL_OK;
}

static void free_mark(rule_mark *mark)
{
    sl_desk_mark_forget(&mark->mark);
    sl_list_remove(&mark->node);
    sl_alloc_give(mark->wait->host->alloc, mark, sizeof *mark);
}

static void free_target(sl_stop_wait *wait, sl_stop_target *target)
{
    sl_card_unwatch(&target->watcher);
    sl_list_remove(&target->node);
    sl_alloc_give(wait->host->alloc, target, sizeof *target);
}

void sl_stop_wait_end(sl_stop_wait *wait)
{
    if (wait->host == NULL)
        return;
    SL_LIST_EACH_SAFE (node, &wait->targets)
        free_target(wait, SL_CONTAINER_OF(node, sl_stop_target, node));
    SL_LIST_EACH_SAFE (node, &wait->marks)
        free_mark(SL_CONTAINER_OF(node, rule_mark, node));
    sl_alarm_stop(wait->host, &wait->end);
    sl_list_remove(&wait->node);
    wait->host->operators->wait_count--;
    wait->host = NULL;
}

/* Two live calls may have one session, so a call that is there says nothing of another; but none outlives the server. */
static bool comes_from(const sl_stop_target *target, const sl_consumer_info *info)
{
    return sl_uuid_equal(target->session, info->session) &&
           (target->is_of_earlier_life || info->in_flight > 0);
}

static void note_back(sl_stop_wait *wait, const sl_consumer_info *info)
{
    SL_LIST_EACH (node, &wait->targets) {
        sl_stop_target *const target = SL_CONTAINER_OF(node, sl_stop_target, node);

        if ((target->watcher.card == NULL || target->watcher.card->is_away) && comes_from(target, info))
            target->is_back = true;
    }
}

static void add_target(sl_stop_wait *wait, sl_card *card)
{
    sl_stop_target *const target = sl_alloc_take(wait->host->alloc, sizeof *target);
    sl_consumer_info info = { 0 };

    if (target == NULL) {
        wait->failed = true;
        return;
    }
    (void)sl_card_info(card, &info);
    *target = (sl_stop_target){ .session = info.session, .is_of_earlier_life = card->is_of_earlier_life };
    if (info.state != SL_CONSUMER_AWAY)
        note_back(wait, &info);
    sl_list_push_back(&wait->targets, &target->node);
    wait->progress.meant++;
    wait->progress.unlabelled += card->is_of_earlier_life && wait->who.label_key.bytes > 0;
    if (!card->is_safe)
        sl_card_watch(card, &target->watcher);
}

/* The label of one that is there since before this process is not known, so it may be meant: only the tag of the name has to fit, which
 * operators_tags_of() puts before that of the label. */
static bool is_meant(const sl_stop_wait *wait, const sl_card *card)
{
    const uint32_t name_count = wait->who.consumer_name.bytes > 0;

    return operators_fit(card, wait->tags, card->is_of_earlier_life ? name_count : wait->tag_count);
}

static bool is_of(const sl_stop_wait *wait, const sl_card *card)
{
    const sl_group_definition *const definition = sl_desk_definition(card->desk);
    const sl_wire_who *const who = &wait->who;

    return (who->stream.bytes == 0 || sl_str_equal(who->stream, definition->stream)) &&
           (who->group.bytes == 0 || sl_str_equal(who->group, definition->name)) && is_meant(wait, card);
}

/* Somebody who is meant is not there, perhaps with work in its hands. A plain client that comes back under its name holds nothing of that
 * in the core's eyes, and is meant all the same; who comes after one that was drained is the next process, and is not. */
static bool is_missed(const sl_stop_target *target)
{
    const sl_card *const card = target->watcher.card;

    return card != NULL ? card->is_away : sl_max_u64(target->watcher.held, target->held) > 0;
}

static bool awaits(const sl_stop_wait *wait, sl_uuid session)
{
    SL_LIST_EACH (node, &wait->targets) {
        const sl_stop_target *const target = SL_CONTAINER_OF(node, const sl_stop_target, node);

        if (sl_uuid_equal(target->session, session) && is_missed(target))
            return true;
    }
    return false;
}

bool sl_operators_await(const sl_host *host, sl_uuid session)
{
    SL_LIST_EACH (node, &host->operators->waits) {
        const sl_stop_wait *const wait = SL_CONTAINER_OF(node, const sl_stop_wait, node);

        if (wait->is_once && awaits(wait, session))
            return true;
    }
    return false;
}

void sl_operators_joined(sl_card *card, const sl_consumer_info *info)
{
    sl_operators *const operators = sl_desk_host(card->desk)->operators;

    SL_LIST_EACH (node, &operators->waits) {
        sl_stop_wait *const wait = SL_CONTAINER_OF(node, sl_stop_wait, node);

        const bool is_awaited = awaits(wait, info->session);

        note_back(wait, info);
        if (!is_awaited || !is_of(wait, card))
            continue;
        add_target(wait, card);
        if (wait->is_once) /* no rule has stopped it */
            (void)sl_desk_stop_one(card->desk, card->consumer, &(sl_stop){ .asked_by = SL_ASKER_OPERATOR },
                                   (sl_str){ 0 });
    }
}

/* --- how far it is --- */

/* What it held is with others now, or will be: whether it still works on that nobody knows. */
static void add_ended(sl_wire_stop_progress *now, const sl_stop_target *target)
{
    const bool is_back = target->is_back && !target->watcher.was_handed_back;
    const uint32_t held = is_back ? 0 : (uint32_t)sl_max_u64(target->watcher.held, target->held);

    now->drained++;
    now->went_away += held > 0;
    now->lost += held;
}

static void look_at_target(sl_stop_wait *wait, sl_stop_target *target, sl_wire_stop_progress *now)
{
    const sl_card *const card = target->watcher.card;
    sl_consumer_info info = { 0 };
    const bool is_known = card != NULL && sl_card_info(card, &info) == SL_OK;

    if (is_known && info.state == SL_CONSUMER_AWAY && info.in_flight > 0)
        target->held = info.in_flight;
    if (card == NULL || (is_known && operators_is_idle_away(&info)))
        add_ended(now, target);
    now->in_flight += info.in_flight;
    wait->is_group_gone = wait->is_group_gone || target->watcher.is_lost;
}

static sl_wire_stop_progress look(sl_stop_wait *wait)
{
    sl_wire_stop_progress now = { .meant = wait->progress.meant,
                                  .unlabelled = wait->progress.unlabelled,
                                  .rules = wait->progress.rules };

    SL_LIST_EACH (node, &wait->targets)
        look_at_target(wait, SL_CONTAINER_OF(node, sl_stop_target, node), &now);
    now.done = now.drained == now.meant;
    return now;
}

static sl_wait_state state_of(const sl_stop_wait *wait, const sl_wire_stop_progress *now)
{
    if (wait->failed || wait->is_group_gone)
        return SL_WAIT_FAILED;
    if (wait->mark_count > 0)
        return SL_WAIT_WRITING;
    if (now->done)
        return SL_WAIT_DONE;
    return wait->is_over ? SL_WAIT_OVER : SL_WAIT_ON;
}

static bool same_progress(const sl_wire_stop_progress *a, const sl_wire_stop_progress *b)
{
    return a->meant == b->meant && a->drained == b->drained && a->in_flight == b->in_flight &&
           a->went_away == b->went_away && a->lost == b->lost && a->done == b->done;
}

static void look_at(sl_stop_wait *wait)
{
    const sl_wire_stop_progress now = look(wait);
    const sl_wait_state state = state_of(wait, &now);
    const bool same = state == wait->state && same_progress(&now, &wait->told);

    wait->progress = wait->told = now;
    wait->state = state;
    if (!same && state != SL_WAIT_WRITING)
        wait->changed(wait->ctx);
}

/* changed() may end its own wait, so each goes to the other list before it is looked at. */
static void on_turn_end(void *ctx)
{
    sl_operators *const operators = ctx;
    sl_list now;

    sl_list_init(&now);
    sl_list_splice(&now, &operators->waits);
    while (!sl_list_empty(&now)) {
        sl_stop_wait *const wait = SL_CONTAINER_OF(sl_list_first(&now), sl_stop_wait, node);

        sl_list_remove(&wait->node);
        sl_list_push_back(&operators->waits, &wait->node);
        look_at(wait);
    }
}

void sl_operators_touch(sl_host *host)
{
    if (host->operators != NULL && !sl_list_empty(&host->operators->waits))
        sl_host_at_turn_end(host, &host->operators->turn_end);
}

/* --- rules --- */

static void on_rule(void *ctx, bool is_durable)
{
    rule_mark *const mark = ctx;
    sl_stop_wait *const wait = mark->wait;

    wait->failed = wait->failed || !is_durable;
    wait->mark_count--;
    free_mark(mark);
    sl_operators_touch(wait->host);
}

typedef struct acting {
    sl_stop_wait *wait;
    const sl_operators_stop *how; /* NULL: resume */
    sl_stop stop;
    uint32_t desk_count; /* groups that were found */
    sl_err err;          /* the first one */
} acting;

static sl_err act_by_rule(acting *a, sl_desk *desk, uint64_t tag)
{
    rule_mark *const mark = sl_alloc_take(a->wait->host->alloc, sizeof *mark);
    sl_err err;

    if (mark == NULL)
        return SL_ERR_NOMEM;
    *mark = (rule_mark){ .wait = a->wait, .mark = { .fn = on_rule, .ctx = mark } };
    sl_list_init(&mark->mark.node);
    sl_list_push_back(&a->wait->marks, &mark->node);
    err = a->how == NULL ? sl_desk_resume_tag(desk, tag, &mark->mark)
                         : sl_desk_stop_tag(desk, tag, &a->stop, a->how->reason, &mark->mark);
    if (err != SL_OK) {
        free_mark(mark);
        return err;
    }
    a->wait->mark_count++;
    *(a->how == NULL ? &a->wait->resumed.rules : &a->wait->progress.rules) += 1;
    return SL_OK;
}

/* --- stop --- */

static void note_meant(void *ctx, sl_card *card)
{
    sl_stop_wait *const wait = ctx;
    sl_consumer_info info;
    const bool is_ghost = sl_card_info(card, &info) == SL_OK && operators_is_ghost(card, &info);

    if (!is_ghost && is_meant(wait, card))
        add_target(wait, card);
}

static void collect(void *ctx, sl_desk *desk)
{
    sl_desk_cards(desk, note_meant, ctx);
}

/* One by one, or to tell the wish for a hand-back to those that were stopped before. */
static void stop_card(void *ctx, sl_card *card)
{
    acting *const a = ctx;
    const bool again = card->is_stopped && a->how->hand_back_unstarted;
    const bool singly = a->how->once || a->wait->tag_count > 1;

    if (!operators_fit(card, a->wait->tags, a->wait->tag_count) || (card->is_stopped ? !again : !singly))
        return;
    (void)sl_desk_stop_one(card->desk, card->consumer, &a->stop, a->how->reason); /* it may be away */
}

/* How many of the cards fit; of all, or of those that are stopped. */
typedef struct counting {
    const sl_stop_wait *wait;
    bool only_stopped;
    uint32_t count;
} counting;

static void count_card(void *ctx, sl_card *card)
{
    counting *const c = ctx;

    if (!c->only_stopped || card->is_stopped)
        c->count += operators_fit(card, c->wait->tags, c->wait->tag_count);
}

static uint32_t count_in(sl_desk *desk, const sl_stop_wait *wait, bool only_stopped)
{
    counting c = { .wait = wait, .only_stopped = only_stopped };

    sl_desk_cards(desk, count_card, &c);
    return c.count;
}

/* Does a rule for these tags belong into this group? See the table in operators.h. */
static bool wants_rule(const acting *a, sl_desk *desk)
{
    if (a->how->once || a->wait->tag_count > 1)
        return false;
    if (a->wait->who.stream.bytes > 0)
        return true;
    if (a->wait->who.consumer_name.bytes == 0)
        return sl_desk_has_consumers(desk);
    return count_in(desk, a->wait, false) > 0;
}

static void keep_error(acting *a, sl_err err)
{
    const bool is_one_of_many = a->wait->who.group.bytes == 0;

    if (is_one_of_many && err == SL_ERR_STORE_FAILED)
        return; /* it serves nobody */
    if (a->err == SL_OK)
        a->err = err;
}

/* A stream on which there is no group is most likely a wrong name: "nobody is there" would sound like a success. */
static sl_err error_of(const acting *a)
{
    if (a->err == SL_OK && a->desk_count == 0 && a->wait->who.stream.bytes > 0)
        return SL_ERR_NOT_FOUND;
    return a->err;
}

/* Whoever waits until a group is open, to join it, is not known here and may be meant. */
static void stop_in(void *ctx, sl_desk *desk)
{
    acting *const a = ctx;
    const uint64_t tag = a->wait->tag_count == 0 ? SL_TAG_EVERYONE : a->wait->tags[0];

    a->desk_count++;
    if (sl_desk_is_opening(desk)) {
        keep_error(a, SL_ERR_AGAIN);
        return;
    }
    a->stop = (sl_stop){ .asked_by = SL_ASKER_OPERATOR, .hand_back_unstarted = a->how->hand_back_unstarted };
    if (a->how->deadline_ms > 0)
        a->stop.deadline_ns = sl_add_sat_u64(sl_desk_now_ns(desk), a->how->deadline_ms * MS_NS);
    sl_desk_cards(desk, stop_card, a);
    if (wants_rule(a, desk))
        keep_error(a, act_by_rule(a, desk, tag));
}

sl_err sl_operators_stop_consumers(sl_host *host, const sl_operators_stop *how, sl_stop_wait *wait)
{
    acting a = { .wait = wait, .how = how };
    sl_err err = begin_wait(host, &how->who, wait);

    if (err != SL_OK)
        return err;
    err = operators_recognise(host, how->who.consumer_name);
    if (err == SL_OK)
        err = operators_each_desk(host, &how->who, collect, wait);
    if (err == SL_OK)
        err = operators_each_desk(host, &how->who, stop_in, &a);
    if (err == SL_OK)
        err = error_of(&a);
    if (err == SL_OK && wait->failed)
        err = SL_ERR_NOMEM;
    wait->is_once = how->once || wait->tag_count > 1;
    if (err != SL_OK) {
        sl_stop_wait_end(wait);
        return err;
    }
    set_end(wait, how->wait_ms);
    operators_log_stop(wait, how);
    return SL_OK;
}

/* --- resume --- */

static void resume_card(void *ctx, sl_card *card)
{
    acting *const a = ctx;
    sl_err err;

    if (!card->is_stopped || !operators_fit(card, a->wait->tags, a->wait->tag_count))
        return;
    err = sl_desk_resume_one(card->desk, card->consumer);
    a->wait->resumed.resumed += err == SL_OK;
    a->wait->resumed.too_late += err == SL_ERR_DRAINED;
}

/* Taking back the rule resumes those that it has stopped; the ones that are still stopped then are asked one by one. */
static void resume_in(void *ctx, sl_desk *desk)
{
    acting *const a = ctx;
    sl_stop_wait *const wait = a->wait;
    const uint32_t stopped = count_in(desk, wait, true);
    sl_err err = SL_OK;

    a->desk_count++;
    if (wait->tag_count <= 1)
        err = act_by_rule(a, desk, wait->tag_count == 0 ? SL_TAG_EVERYONE : wait->tags[0]);
    wait->resumed.resumed += stopped - count_in(desk, wait, true);
    sl_desk_cards(desk, resume_card, a);
    keep_error(a, err == SL_ERR_NOT_FOUND ? SL_OK : err);
}

sl_err sl_operators_resume(sl_host *host, const sl_wire_who *who, sl_stop_wait *wait)
{
    acting a = { .wait = wait };
    sl_err err = begin_wait(host, who, wait);

    if (err != SL_OK)
        return err;
    err = operators_each_desk(host, who, resume_in, &a);
    if (err == SL_OK)
        err = error_of(&a);
    if (err == SL_OK)
        operators_log_resume(wait);
    else
        sl_stop_wait_end(wait);
    return err;
}

const char *sl_operators_sentence(sl_err err)
{
    switch ((int)err) {
    case SL_ERR_NOT_FOUND: return "There is no such group.";
    case SL_ERR_AGAIN: return "A group is still being opened: try again in a moment.";
    case SL_ERR_FULL:
        return "There are too many stops: a group keeps 64 rules, and 1,000 can be waited for at a time. "
               "Resume "
               "names and labels that will not come back.";
    case SL_ERR_DRAINING: return "The server is shutting down and stops every consumer itself.";
    case SL_ERR_STORE_FAILED: return "The group does not work at the moment; the log of the server says why.";
    default: return sl_err_text(err);
    }
}

/* --- its life --- */

sl_err sl_operators_new(sl_host *host, sl_operators **ret_operators)
{
    sl_operators *const operators = sl_alloc_take(host->alloc, sizeof *operators);

    if (operators == NULL)
        return SL_ERR_NOMEM;
    *operators = (sl_operators){ .host = host };
    sl_list_init(&operators->waits);
    sl_turn_end_init(&operators->turn_end, on_turn_end, operators);
    *ret_operators = operators;
    return SL_OK;
}

/* Who still waits is told that nobody knows any more. changed() may free the wait, so that is ended before. */
void sl_operators_end_waits(sl_operators *operators)
{
    if (operators == NULL)
        return;
    while (!sl_list_empty(&operators->waits)) {
        sl_stop_wait *const wait = SL_CONTAINER_OF(sl_list_first(&operators->waits), sl_stop_wait, node);

        wait->failed = true;
        wait->state = SL_WAIT_FAILED;
        sl_stop_wait_end(wait);
        wait->changed(wait->ctx);
    }
}

void sl_operators_free(sl_operators *operators)
{
    if (operators == NULL)
        return;
    sl_operators_end_waits(operators);
    sl_list_remove(&operators->turn_end.node);
    operators_reports_free(operators);
    sl_alloc_give(operators->host->alloc, operators, sizeof *operators);
}
