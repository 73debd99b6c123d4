/* server/groups/card.h — what a desk knows of a consumer beside what the core knows: who it is, and what became of its stop.
 *
 * A seat is an open call; a card is kept from joining until the core says that the consumer is gone, so also while it is away, and
 * until its drain is durable. The
 * core tells consumers apart by numbers and has hashes for names; people want the names. They are not in the records: a consumer
 * that is away since before the server was started has a card without a name. Its session is in the records, and that is made of
 * its user and its name, so whoever asks for a name finds it all the same (operators_names.c), and it has the name from then on.
 *
 * Whoever waits for consumers to be drained or gone has a watcher at each card, and is let go from there. */
#ifndef SL_SERVER_GROUPS_CARD_H
#define SL_SERVER_GROUPS_CARD_H

#include "base/list.h"
#include "base/map.h"
#include "core/group.h"
#include "wire/common_codec.h"

typedef struct sl_desk sl_desk;

enum {
    SL_CARD_LABELS_MAX = SL_TAGS_MAX - 1,
    SL_STOP_REASON_BYTES_MAX = 1024, /* longer ones are refused */
};

/* Something that is promised once the log of a group is durable up to a record. */
typedef struct sl_desk_mark {
    sl_list node;                           /* all zero, or alone: it waits for nothing */
    uint64_t needs;                         /* number of a record */
    void (*fn)(void *ctx, bool is_durable); /* false: the group failed or is gone; nobody knows */
    void *ctx;
} sl_desk_mark;

typedef struct sl_card {
    sl_desk *desk;
    sl_list node; /* desk->cards, oldest first */
    sl_map_node by_consumer;
    uint64_t consumer;
    uint64_t tags[SL_TAGS_MAX];
    uint32_t tag_count;
    sl_str name, user, address;
    bool is_unnamed;         /* away since before this process, and nobody asked for it by its name yet */
    bool is_of_earlier_life; /* the same, also since then: its labels are not known */
    sl_uuid session;         /* of such a one */
    char *learnt;            /* its name and user since then; NULL: none, or no memory for them */
    size_t learnt_bytes;
    sl_wire_label labels[SL_CARD_LABELS_MAX];
    size_t label_count;

    bool is_stopped;          /* somebody asked it to stop, and that was not taken back */
    bool is_drained, is_safe; /* it holds nothing any more; and that is durable */
    bool is_away, is_reported;
    bool is_gone;         /* for the core; is_drained, and not yet is_safe */
    bool is_dropped;      /* its group was changed, was deleted, or failed: */
    bool is_lost;         /* so nobody will know how it ended */
    bool was_handed_back; /* is_dropped: others get what it held, and it may still work on that */
    sl_asker asked_by;
    uint64_t stopped_ns, ended_ns; /* of the group's time, which is wall time */
    uint32_t settled, released, lost;
    uint32_t interrupted; /* of released */
    uint32_t held;        /* when its call ended, or its group was changed */
    char *reason;         /* what the consumer is told; NULL: nothing special */
    size_t reason_bytes;
    sl_desk_mark mark; /* is_drained, not yet is_safe */
    sl_list watchers;  /* sl_card_watcher.node */
    size_t bytes;      /* of this block */
    char texts[];
} sl_card;

typedef struct sl_card_watcher {
    sl_list node;  /* card->watchers */
    sl_card *card; /* NULL: it is drained, or gone: */
    uint32_t held; /* with so many messages */
    bool is_lost, was_handed_back;
} sl_card_watcher;

/* Its name is known from now on, and so is the tag of the name. */
void sl_card_learn(sl_card *card, sl_str name, sl_str user);

void sl_card_watch(sl_card *card, sl_card_watcher *watcher);
void sl_card_unwatch(sl_card_watcher *watcher);

static inline bool sl_card_has_tag(const sl_card *card, uint64_t tag)
{
    for (uint32_t i = 0; i < card->tag_count; i++)
        if (card->tags[i] == tag)
            return true;
    return tag == SL_TAG_EVERYONE;
}

#endif
