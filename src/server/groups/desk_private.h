/* server/groups/desk_private.h — one group at work, as its files share it.
 *
 *      desk.c          its life: made, loaded, opened, updated, failed; every call of the core goes through it
 *      desk_sink.c     what the core wants done: records to be written, answers to be kept back until they are
 *      desk_hand_in.c  records on their way through the door, and what is released when they are done
 *      desk_full.c     what happens while the disk is full
 *      desk_park.c     parked messages as links in a stream, and how far that stream is truncated
 *      desk_failures.c what went wrong with messages that are tried again
 *      desk_entry.c    the events of messages that the core knows, ready to be sent
 *      desk_fetch.c    those that have to be sent again, from the store
 *      desk_room.c     memory for events and answers
 *      desk_seat.c     consumers: joining, speaking, leaving, and their answers on the way out
 *      desk_card.c     who the consumers are, also while they are away, and what became of their stops
 *      desk_stop.c     what operators do to them
 *      desk_marks.c    what is told to operators when the log is durable
 *      desk_info.c     for people
 *      reader.c        what is read and offered, of both lanes
 *
 * Numbers of records. Each record of a group has a number, counted from 1 in the life of the desk:
 *
 *      durable <= written <= submitted <= emitted
 *
 * An answer says up to which record it needs the log to be written, and up to which to be durable. So there is no list of who waits
 * for which batch: when a batch is done, two numbers move, and answers leave from the front of two queues. */
#ifndef SL_SERVER_GROUPS_DESK_PRIVATE_H
#define SL_SERVER_GROUPS_DESK_PRIVATE_H

#include "server/door.h"
#include "server/groups/desk.h"
#include "server/streams/resolve.h"
#include "server/tail.h"
#include "wire/persistent_codec.h"

enum {
    DESK_PAGE_EVENTS = 64,           /* views of one page of a reader */
    DESK_RUN_EVENTS = 1024,          /* what one run of a reader may look at before others have their turn */
    DESK_RUN_BYTES = 512 * 1024,     /* and what it may encode */
    DESK_MERGED_IDS_MAX = 1024,      /* of one Settled */
    DESK_UNSENT_IDS_MAX = 16 * 1024, /* of Settled that wait for a client: beyond, it is not listened to */
    DESK_UNSENT_IDS_FEW = 256,       /* the same while those of all clients together are */
    DESK_UNSENT_IDS_SUM = 1024 * 1024,
    DESK_REASON_BYTES = 4 * 1024, /* why a message was parked; longer ones are cut */
    DESK_REASONS_BYTES_MAX =
        1024 * 1024,       /* of a group, for links that cannot be made yet; beyond, they say less */
    DESK_FAILURES_MAX = 5, /* of a message: its history */
    DESK_FAILURE_REASON_BYTES = 256,       /* in it; longer ones are cut */
    DESK_FAILURES_BYTES_MAX = 1024 * 1024, /* of a group: some thousand failures; beyond, the oldest go */
    DESK_NAME_BYTES = SL_STREAM_NAME_BYTES_MAX + 64,
    DESK_LATENCIES = 1000, /* of a connection, with extra statistics: as many as KurrentDB keeps */
};

#define DESK_SECOND_NS UINT64_C(1000000000)

typedef enum desk_state {
    DESK_LOADING,
    DESK_OPENING, /* its epoch is on its way to the disk */
    DESK_OPEN,
    DESK_FAILED, /* nothing of it is written any more; loading it again gives what the records say */
} desk_state;

/* A message that the core knows and that was read, with its event until that has left. */
typedef struct desk_entry {
    sl_map_node by_place;
    uint64_t position, log_position; /* in its lane, and in the store */
    struct desk_answer *unsent;      /* the delivery that has not left yet; NULL: none */
    uint64_t consumer, leased_ns;    /* the last lease */
    uint8_t *body;                   /* NULL: it was sent, and is read again if it has to be sent again */
    uint32_t body_bytes;
    uint32_t holds;  /* 1 for the core, 1 for each answer */
    uint8_t id_form; /* sl_wire_id_form of the body */
    uint8_t lane;
    bool can_fetch; /* its place says where in the store it is */
} desk_entry;

/* Where memory for events and answers comes from. */
typedef struct desk_chunk desk_chunk;

/* Reading events again. */
typedef struct desk_fetch {
    sl_reader_node node;
    sl_identity identity;
    sl_resolver *resolver; /* NULL: nothing was read again yet */
    sl_cursor *cursor;     /* for what its stream does not show any more; NULL: none is open */
    uint64_t cursor_from;
    bool is_waiting; /* for the disk; wakes all seats that wait */
} desk_fetch;

/* Something for a consumer, kept back until the log is far enough and then until there is room. */
typedef struct desk_answer {
    sl_list queue;   /* desk->written_answers, desk->durable_answers, or seat->out */
    sl_list of_seat; /* seat->answers: all that are not sent */
    sl_seat *seat;
    uint64_t needs_written, needs_durable;
    sl_effect effect;  /* DELIVER, STOP_REQUESTED, STOPPED, SETTLED (of many), DRAINED */
    desk_entry *entry; /* DELIVER */
    bool unfilled;     /* STOPPED: what is outstanding is not known yet */
    sl_uuid *ids; /* STOPPED: outstanding; SETTLED: settled ones from the front, lost ones from the back */
    uint32_t id_count, lost_count, id_capacity;
} desk_answer;

/* An event that the group writes itself, with the record that says why. */
typedef struct desk_append {
    sl_str stream, type, data, metadata;
    sl_uuid id;
    bool is_json;
    uint64_t created_ns;
    size_t bytes; /* of this block */
} desk_append;

/* What a nack said, kept for the links that cannot be made yet: one for all messages of the nack. */
typedef struct desk_reason {
    uint32_t holds; /* 1 for the nack while it is on, 1 for each record */
    uint32_t bytes;
    char text[];
} desk_reason;

/* A delivery of a message that did not end well. */
typedef struct desk_failure {
    sl_map_node by_place; /* desk->failures; those of one message come newest first */
    sl_list by_age;       /* desk->failures_by_age */
    sl_place place;
    uint64_t at_ns;    /* wall time */
    uint32_t attempt;  /* which one it was, from 1 */
    uint32_t delivery; /* the same, of deliveries */
    uint32_t bytes;    /* of the text */
    char text[];       /* the reason of a nack, or what happened */
} desk_failure;

/* One step of the log. */
typedef struct desk_record {
    bool is_record;      /* false: only the append */
    bool waits_for_link; /* PARK of a message that was not read again yet: what to link to is not known */
    sl_effect effect;
    desk_append *append; /* NULL: none */
    desk_reason
        *reason; /* waits_for_link: why it was parked; NULL: nothing was said, or there was no room for it */
    void (*done)(void *ctx, sl_err err);
    void *done_ctx;
} desk_record;

/* A batch that is inside of the door. */
typedef struct desk_packet {
    sl_list node;  /* desk->packets */
    sl_desk *desk; /* NULL: it was freed meanwhile */
    const sl_alloc *alloc;
    uint64_t last; /* number of its last record */
    bool sync;
    desk_record *records; /* kept only when there are appends, to be tried again; else NULL */
    uint32_t record_count;
} desk_packet;

typedef struct desk_reader {
    sl_desk *desk;
    sl_lane lane;
    sl_reader_node node;
    bool is_on;
    sl_wire_id_form id_form; /* what most consumers want */
    bool waits_for_room;
    bool is_holding;      /* of a page while it waits for room: counted */
    sl_identity identity; /* who resolves links */
    sl_cursor *cursor;    /* NULL: none is open */
    sl_event *page;       /* DESK_PAGE_EVENTS of them; NULL while nothing is read */
    uint32_t page_at, page_count;
    sl_resolver *resolver;
    uint64_t end;        /* reads nothing at or above this position */
    uint64_t known_end;  /* records told of messages below this position */
    uint32_t considered; /* events that concern nobody, since the last one that did */
    uint64_t passed;     /* the last of them */
    uint32_t looked_at;  /* since it began, or gave up its place */
    size_t bytes_left;
} desk_reader;

/* How many in the last whole second, without a timer. */
typedef struct desk_rate {
    uint64_t total, second, in_second, in_last_second;
} desk_rate;

struct sl_seat {
    sl_desk *desk;
    sl_list node;  /* desk->seats */
    sl_list ready; /* desk->ready_seats: something was released for it */
    sl_map_node by_consumer;
    uint64_t consumer; /* 0 until the core has said it */
    sl_wire_id_form id_form;
    const sl_seat_handler *handler;
    void *ctx;
    bool extensions;
    bool is_full;         /* the client has no room */
    bool waits_for_event; /* the next one is read again */
    bool was_held;        /* go_on() is owed */
    bool busy, gone;      /* inside of a handler; and left from there */
    uint32_t window;
    uint32_t unsent_ids;
    sl_list answers, out;
    sl_list later; /* nacks that wait for room on the disk */
    desk_rate rate;
    char *user, *connection_name; /* with a closing zero */
    size_t user_bytes, connection_name_bytes;
    uint32_t *latencies_ms; /* DESK_LATENCIES of them; NULL: not wanted */
    uint64_t latency_count;
};

struct sl_desk {
    sl_host *host;
    uint64_t number;
    sl_arena arena; /* the texts of the definition */
    sl_group_definition definition;
    sl_filter *filter;
    char key[SL_GROUP_KEY_BYTES_MAX + 1];
    char parked[DESK_NAME_BYTES];      /* name of the stream of parked messages, */
    char parked_meta[DESK_NAME_BYTES]; /* and of its metadata */
    bool can_park;                     /* these names are not too long */
    uint64_t clock_offset_ns;          /* of the group's time to monotonic time */

    sl_group *group;
    void *group_memory;
    size_t group_bytes;
    desk_state state;
    sl_err problem; /* FAILED: why */

    sl_map entries;
    size_t entries_length;
    uint64_t payload_bytes;
    desk_chunk *event_room, *answer_room; /* the open ones; NULL: none */
    desk_fetch fetch;
    bool lets_go;     /* of events that have left */
    bool passes_over; /* a message whose event is gone is settled: nobody has claimed that */

    desk_record *records; /* that were not submitted yet, in order */
    uint32_t record_count, record_capacity;
    uint32_t links_wanted;                         /* records that wait for a link */
    uint64_t emitted, submitted, written, durable; /* numbers of records */
    uint64_t wants_sync;                           /* the last record that must be synced */
    uint64_t opens_at;                             /* OPENING: the record that must be durable */
    sl_list packets;
    bool append_inside;   /* a packet with appends: nothing else is submitted until it is done */
    desk_packet *refused; /* it had no space on disk, and is tried again */
    uint64_t stuck_at;    /* the first record that had no space; 0: none, or it is written meanwhile */
    sl_room room;         /* of the store, when it was asked last */
    size_t later_bytes;   /* of nacks that wait for room */
    bool at_door;
    sl_door_waiter door_waiter;
    sl_list written_answers, durable_answers;
    bool stopped_unfilled;

    sl_turn_end turn_end;
    sl_alarm tick, retry, room_look;
    sl_list waiters;

    sl_list seats, ready_seats;
    uint32_t seat_count, held_count;
    sl_map by_consumer;
    size_t by_consumer_length;
    sl_seat *joining;
    sl_card *joining_card;
    sl_str nack_reason;     /* during a nack */
    const sl_claim *nacked; /* the same: what it is for */
    uint32_t nacked_count, nacked_at;
    desk_reason *nack_kept; /* the same, if a record needs it for longer; NULL: none does */
    size_t reasons_bytes;   /* of all that are kept */
    sl_map failures; /* of messages that are tried again, by their place; no table while there are none */
    size_t failures_length, failures_bytes;
    sl_list failures_by_age; /* the oldest first */
    sl_str stop_reason;      /* during an operator's stop */
    sl_list cards;           /* of consumers, also of those that are away */
    sl_map cards_by_consumer;
    size_t cards_length;
    sl_list *next_card;     /* of a walk over the cards: moves on when that one goes; NULL: nobody walks */
    sl_list marks;          /* sl_desk_mark.node, by the record that they need */
    uint32_t watcher_count; /* at all cards together */
    uint32_t unnamed_count; /* cards without a name, since a restart */
    bool in_core;           /* a call of the core is on */
    uint64_t ending;        /* the consumer whose call ends just now; 0: none */
    bool reader_may_go;     /* something happened that makes room */

    desk_reader readers[SL_LANE_COUNT_];
    uint64_t truncated; /* $tb of the parked stream, as it was asked for last */
    bool truncating;
    uint64_t skipped;    /* that were to be parked, and could not be */
    uint64_t last_known; /* the last position that was read */
    bool knows_last, knows_checkpoint;
    bool
        has_begun; /* of its stream something was given out, settled or checkpointed: its start means nothing any more */
    uint64_t checkpoint;
    desk_rate rate;
};

bool desk_record_is_of_stream(const sl_effect *record);

/* Also for what was never taken. */
static inline void desk_give(const sl_alloc *alloc, void *memory, size_t bytes)
{
    if (memory != NULL)
        sl_alloc_give(alloc, memory, bytes);
}

/* --- desk.c --- */

uint64_t desk_now_ns(const sl_desk *desk);

/* Around every call of the core that may emit. */
void desk_enter(sl_desk *desk);
void desk_leave(sl_desk *desk);

/* SL_OK, or SL_ERR_AGAIN: not yet open, or SL_ERR_STORE_FAILED. */
sl_err desk_may_act(const sl_desk *desk);

/* The desk cannot go on: seats are dropped and readers stopped at the end of the turn. Until then nothing is freed, so it may be called
 * from anywhere; whoever works in a loop looks at the state. */
void desk_fail(sl_desk *desk, sl_err err, const char *what);

/* --- desk_sink.c --- */

void desk_emit(void *ctx, const sl_effect *effect);
/* SL_OK, or SL_ERR_NOMEM: the desk has failed, the append is freed, and `done` will not be called. */
sl_err desk_record_add(sl_desk *desk, const desk_record *record);
void desk_answer_free(desk_answer *answer);
void desk_answers_fill(sl_desk *desk); /* after a call of the core: what stopped consumers still hold */

/* --- desk_hand_in.c --- */

void desk_hand_in_init(sl_desk *desk);
void desk_hand_in(sl_desk *desk);
void desk_packets_orphan(sl_desk *desk);
void desk_records_give_up(sl_desk *desk); /* those that no packet inside of the door has */
void desk_record_done(sl_desk *desk, desk_record *record, sl_err err);

/* --- desk_full.c --- */

/* What would be given out could not leave, or would use up what is left for settling. */
static inline bool desk_is_stuck(const sl_desk *desk)
{
    return desk->room == SL_ROOM_LAST || desk->stuck_at > 0 || desk->refused != NULL;
}

/* Events are refused, so nothing can be parked; giving out and settling go on. */
static inline bool desk_is_full(const sl_desk *desk)
{
    return desk->room != SL_ROOM_ENOUGH;
}

static inline sl_hold desk_hold(const sl_desk *desk)
{
    if (desk_is_stuck(desk))
        return SL_HOLD_ALL;
    return desk_is_full(desk) ? SL_HOLD_PARKS : SL_HOLD_NOTHING;
}
void desk_full_look(sl_desk *desk);
/* True: it will be said when there is room. */
bool desk_nack_later(sl_seat *seat, const sl_claim *claims, uint32_t count, const sl_nack *nack,
                     sl_str reason);
void desk_nacks_go_on(sl_desk *desk);
void desk_nacks_forget(sl_seat *seat);

/* --- desk_park.c --- */

/* Around a nack: what it says is the reason of what comes back or is parked by it. */
void desk_nack_begin(sl_desk *desk, const sl_claim *claims, uint32_t count, sl_str reason);
void desk_nack_end(sl_desk *desk);
void desk_reason_release(sl_desk *desk, desk_reason *reason); /* or NULL */
/* What belongs beside a PARK: fills record->append, or says that it has to wait. */
void desk_park_link(sl_desk *desk, desk_record *record, const desk_entry *entry);
/* The reader has met, or passed, what a PARK waits for. */
void desk_park_read(sl_desk *desk, sl_place place, const desk_entry *entry);
static inline bool desk_parks_wait(const sl_desk *desk)
{
    return desk->links_wanted > 0;
}
void desk_move_truncation(sl_desk *desk);
void desk_append_free(const sl_desk *desk, desk_append *append);

/* --- desk_failures.c --- */

void desk_failure_back(sl_desk *desk, const sl_effect *back); /* any BACK: is it a failure? */
void desk_failure_park(sl_desk *desk, const sl_effect *park, sl_back_cause last);
void desk_failures_forget(sl_desk *desk, sl_place place);
void desk_failures_free(sl_desk *desk);
/* Of the delivery that led to the PARK: which attempt it was, and its reason, empty when that is not known any more. */
uint32_t desk_failure_last_attempt(const sl_desk *desk, const sl_effect *park);
sl_str desk_failure_reason(const sl_desk *desk, const sl_effect *park);
/* The failures of a message that are known, the oldest first. NULL: out of memory. */
struct cJSON *desk_failures_history(const sl_desk *desk, sl_place place);

/* --- desk_entry.c --- */

uint64_t desk_place_hash(const sl_desk *desk, sl_place place);

/* NULL: out of memory. The core holds it. */
desk_entry *desk_entry_new(sl_desk *desk, sl_place place, const sl_wire_read_event *event);
desk_entry *desk_entry_find(const sl_desk *desk, sl_place place);
void desk_entry_forget(sl_desk *desk, desk_entry *entry); /* the core does not know it any more */
void desk_entry_release(sl_desk *desk, desk_entry *entry);
void desk_entries_free(sl_desk *desk);
sl_err desk_entry_fill(sl_desk *desk, desk_entry *entry, const sl_wire_read_event *event); /* or NOMEM */
void desk_entry_empty(sl_desk *desk, desk_entry *entry); /* its event has left; to be read again if needed */
static inline sl_str desk_entry_body(const desk_entry *entry)
{
    return (sl_str){ (const char *)entry->body, entry->body_bytes };
}

/* --- desk_fetch.c --- */

/* Is this event where its place says? */
bool desk_fetch_can(const sl_desk *desk, sl_place place, const sl_wire_read_event *event);
/* Does the stream keep what is in it? */
bool desk_fetch_is_sure(const sl_desk *desk);
/* SL_OK: the entry has its event again. SL_ERR_AGAIN: it will be there when the seats that wait are woken. SL_ERR_NOT_FOUND: it is
 * gone for good. */
sl_err desk_fetch_event(sl_desk *desk, desk_entry *entry, sl_wire_id_form id_form);
void desk_fetch_rest(sl_desk *desk); /* nothing more is wanted for now */
void desk_fetch_stop(sl_desk *desk);

/* --- desk_room.c --- */

/* Aligned for pointers and numbers; NULL: out of memory. */
void *desk_room_take(sl_desk *desk, desk_chunk **open, size_t bytes);
void desk_room_give(sl_desk *desk, desk_chunk **open, void *memory, size_t bytes); /* bytes as taken */
void desk_room_close(sl_desk *desk, desk_chunk **open); /* what is still in use goes when it is given */

/* --- desk_seat.c --- */

sl_seat *desk_seat_find(const sl_desk *desk, uint64_t consumer);
void desk_seat_known(sl_desk *desk, uint64_t consumer); /* the core has given a number to who joins */
void desk_seat_push(sl_seat *seat);                     /* what may leave, leaves */
void desk_seats_drop(sl_desk *desk);
void desk_seats_hand_back(sl_desk *desk);
void desk_seats_go_on(sl_desk *desk);
void desk_seat_latency(sl_seat *seat, uint64_t ns);

/* --- desk_card.c --- */

/* Not yet in the desk; NULL: out of memory, or too many wait for the disk. desk_card_known() puts it there, under its number. */
sl_card *desk_card_new(sl_desk *desk, const sl_seat_setup *setup);
void desk_card_known(sl_desk *desk, sl_card *card, uint64_t consumer);
void desk_card_joined(sl_card *card); /* after the call of the core */
void desk_card_free(sl_card *card);
void desk_card_forget_reason(sl_card *card);
sl_card *desk_card_find(const sl_desk *desk, uint64_t consumer);
void desk_card_note(sl_desk *desk, const sl_effect *effect);         /* any effect */
void desk_card_ends(sl_desk *desk, uint64_t consumer, bool is_away); /* before the core is told */
sl_err desk_cards_of_earlier_life(sl_desk *desk);         /* after the core was opened; SL_ERR_NOMEM */
void desk_card_dropped(sl_desk *desk, uint64_t consumer); /* the group goes on without its call */
void desk_cards_look(sl_desk *desk);                      /* after the core was replaced */
void desk_cards_end(sl_desk *desk);                       /* the desk failed: they are gone */
void desk_cards_free(sl_desk *desk);

/* --- desk_marks.c --- */

/* Told when what must be synced of all that was emitted until now is durable. */
void desk_mark_add(sl_desk *desk, sl_desk_mark *mark);
void desk_marks_release(sl_desk *desk);
void desk_marks_drop(sl_desk *desk); /* nobody will know */

/* --- reader.c --- */

sl_err desk_readers_init(sl_desk *desk);
void desk_readers_start(sl_desk *desk);
void desk_readers_stop(sl_desk *desk);
void desk_readers_wake(sl_desk *desk);
void desk_readers_done(sl_desk *desk);
void desk_reader_start(desk_reader *reader);
void desk_recorded_fill(sl_wire_recorded *recorded, const sl_event *event, sl_wire_id_form id_form,
                        uint64_t position);

static inline void desk_rate_count(desk_rate *rate, uint64_t now_ns)
{
    const uint64_t second = now_ns / DESK_SECOND_NS;

    if (second != rate->second) {
        rate->in_last_second = second == rate->second + 1 ? rate->in_second : 0;
        rate->in_second = 0;
        rate->second = second;
    }
    rate->in_second++;
    rate->total++;
}

#endif
