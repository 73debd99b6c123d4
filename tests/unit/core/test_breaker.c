/* tests/unit/core/test_breaker.c — when a destination is left alone, and what a drain changes about it (B18). */
#include "core/breaker.h"
#include "test.h"

#define SECOND_NS UINT64_C(1000000000)

static const sl_breaker_rules rules = {
    .failures_max = 3, .bypasses_max = 2, .cool_down_ns = 100, .cool_down_max_ns = 1000, .probe_max_ns = 50
};

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void fail_at(sl_breaker *breaker, uint64_t ticket, uint64_t now_ns)
{
    sl_breaker_failed(breaker, ticket, (sl_breaker_failure){ .now_ns = now_ns });
}

static uint64_t expect_pass(sl_breaker *breaker, uint64_t now_ns, sl_breaker_verdict_kind kind)
{
    const sl_breaker_verdict verdict = sl_breaker_ask(breaker, now_ns);

    EXPECT_EQ(verdict.kind, kind);
    EXPECT(verdict.ticket != 0);
    return verdict.ticket;
}

static void expect_wait(sl_breaker *breaker, uint64_t now_ns, uint64_t until_ns)
{
    const sl_breaker_verdict verdict = sl_breaker_ask(breaker, now_ns);

    EXPECT_EQ(verdict.kind, SL_BREAKER_WAIT);
    EXPECT_EQ(verdict.until_ns, until_ns);
}

static sl_breaker opened_at(uint64_t now_ns)
{
    sl_breaker breaker;

    sl_breaker_init(&breaker, &rules);
    for (uint32_t i = 0; i < rules.failures_max; i++)
        fail_at(&breaker, expect_pass(&breaker, now_ns, SL_BREAKER_SEND), now_ns);
    EXPECT_EQ(sl_breaker_state_at(&breaker, now_ns), SL_BREAKER_OPEN);
    return breaker;
}

/* A3.1: the numbers of the system that S3.19 must leave unchanged. */
TEST(breaker_default_is_five_failures_sixty_seconds_one_probe)
{
    const sl_breaker_rules usual = sl_breaker_rules_default();

    EXPECT_OK(sl_breaker_rules_validate(&usual));
    EXPECT_EQ(usual.failures_max, 5);
    EXPECT_EQ(usual.cool_down_ns, 60 * SECOND_NS);
    EXPECT_EQ(usual.bypasses_max, 3);
}

TEST(breaker_rules_with_a_zero_or_a_maximum_below_the_cool_down_are_refused)
{
    sl_breaker_rules bad[5];

    for (size_t i = 0; i < 5; i++)
        bad[i] = rules;
    bad[0].failures_max = 0;
    bad[1].bypasses_max = 0;
    bad[2].cool_down_ns = 0;
    bad[3].probe_max_ns = 0;
    bad[4].cool_down_max_ns = rules.cool_down_ns - 1;
    EXPECT_OK(sl_breaker_rules_validate(&rules));
    bad[4].cool_down_max_ns++; /* no room for Retry-After is a choice, not an error */
    EXPECT_OK(sl_breaker_rules_validate(&bad[4]));
    bad[4].cool_down_max_ns--;
    for (size_t i = 0; i < 5; i++)
        EXPECT_ERR(sl_breaker_rules_validate(&bad[i]), SL_ERR_INVALID);
}

TEST(breaker_opens_only_after_consecutive_failures)
{
    sl_breaker breaker;

    sl_breaker_init(&breaker, &rules);
    fail_at(&breaker, expect_pass(&breaker, 1, SL_BREAKER_SEND), 1);
    fail_at(&breaker, expect_pass(&breaker, 2, SL_BREAKER_SEND), 2);
    sl_breaker_succeeded(&breaker, expect_pass(&breaker, 3, SL_BREAKER_SEND));
    fail_at(&breaker, expect_pass(&breaker, 4, SL_BREAKER_SEND), 4);
    fail_at(&breaker, expect_pass(&breaker, 5, SL_BREAKER_SEND), 5);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 5), SL_BREAKER_CLOSED);
    fail_at(&breaker, expect_pass(&breaker, 6, SL_BREAKER_SEND), 6);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 6), SL_BREAKER_OPEN);
    expect_wait(&breaker, 6, 106);
}

TEST(S3_19_breaker_half_open_gives_one_probe_and_the_others_wait)
{
    sl_breaker breaker = opened_at(10);

    expect_wait(&breaker, 109, 110);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 110), SL_BREAKER_HALF_OPEN);
    expect_pass(&breaker, 110, SL_BREAKER_PROBE);
    expect_wait(&breaker, 110, 160);
    expect_wait(&breaker, 159, 160);
}

TEST(S3_19_breaker_closes_with_the_probe_and_opens_again_without_it)
{
    sl_breaker breaker = opened_at(10);

    fail_at(&breaker, expect_pass(&breaker, 110, SL_BREAKER_PROBE), 120);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 120), SL_BREAKER_OPEN);
    expect_wait(&breaker, 120, 220);
    sl_breaker_succeeded(&breaker, expect_pass(&breaker, 220, SL_BREAKER_PROBE));
    EXPECT_EQ(sl_breaker_state_at(&breaker, 220), SL_BREAKER_CLOSED);
    expect_pass(&breaker, 220, SL_BREAKER_SEND);
}

TEST(breaker_probe_that_never_reports_is_followed_by_another)
{
    sl_breaker breaker = opened_at(10);
    const uint64_t lost = expect_pass(&breaker, 110, SL_BREAKER_PROBE);
    const uint64_t second = expect_pass(&breaker, 160, SL_BREAKER_PROBE);

    EXPECT(lost != second);
    sl_breaker_succeeded(&breaker, lost); /* too late: another probe decides now */
    EXPECT_EQ(sl_breaker_state_at(&breaker, 170), SL_BREAKER_HALF_OPEN);
    expect_wait(&breaker, 170, 210);
    sl_breaker_succeeded(&breaker, second);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 171), SL_BREAKER_CLOSED);
}

TEST(breaker_probe_out_of_time_still_counts_until_another_is_given)
{
    sl_breaker breaker = opened_at(10);
    const uint64_t late = expect_pass(&breaker, 110, SL_BREAKER_PROBE);

    sl_breaker_succeeded(&breaker, late);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 500), SL_BREAKER_CLOSED);
}

TEST(breaker_probe_that_was_withdrawn_makes_room_for_the_next_at_once)
{
    sl_breaker breaker = opened_at(10);

    sl_breaker_withdrawn(&breaker, expect_pass(&breaker, 110, SL_BREAKER_PROBE));
    expect_pass(&breaker, 111, SL_BREAKER_PROBE);
    sl_breaker_init(&breaker, &rules);
    fail_at(&breaker, expect_pass(&breaker, 1, SL_BREAKER_SEND), 1);
    sl_breaker_withdrawn(&breaker, expect_pass(&breaker, 1, SL_BREAKER_SEND)); /* says nothing when closed */
    EXPECT_EQ(breaker.failures, 1);
}

TEST(breaker_results_from_before_the_last_change_are_old_news)
{
    sl_breaker breaker;

    sl_breaker_init(&breaker, &rules);
    const uint64_t old = expect_pass(&breaker, 1, SL_BREAKER_SEND);
    for (uint32_t i = 0; i < rules.failures_max; i++)
        fail_at(&breaker, old, 1); /* several sends share the ticket of their stretch */
    sl_breaker_succeeded(&breaker, old);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 2), SL_BREAKER_OPEN);
    const uint64_t probe = expect_pass(&breaker, 101, SL_BREAKER_PROBE);
    fail_at(&breaker, old, 102);
    sl_breaker_withdrawn(&breaker, old);
    expect_wait(&breaker, 103, 151); /* the probe is still out */
    sl_breaker_succeeded(&breaker, probe);
    fail_at(&breaker, old, 104);
    EXPECT_EQ(breaker.failures, 0);
}

TEST(breaker_retry_after_lengthens_the_cool_down_within_its_maximum)
{
    static const struct {
        uint64_t retry_after_ns, until_ns;
    } rows[] = {
        { 0, 110 }, { 99, 110 }, { 101, 111 }, { 1000, 1010 }, { 1001, 1010 }, { UINT64_MAX, 1010 }
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_breaker breaker;

        sl_breaker_init(&breaker, &rules);
        for (uint32_t k = 1; k < rules.failures_max; k++)
            fail_at(&breaker, breaker.ticket, 10);
        sl_breaker_failed(&breaker, breaker.ticket, (sl_breaker_failure){ 10, rows[i].retry_after_ns });
        expect_wait(&breaker, 10, rows[i].until_ns);
    }
}

TEST(breaker_heeds_retry_after_of_a_late_failure_only_while_it_rests)
{
    sl_breaker breaker;

    sl_breaker_init(&breaker, &rules);
    const uint64_t old = expect_pass(&breaker, 10, SL_BREAKER_SEND);
    for (uint32_t i = 0; i < rules.failures_max; i++)
        fail_at(&breaker, old, 10);
    sl_breaker_failed(&breaker, old, (sl_breaker_failure){ .now_ns = 20, .retry_after_ns = 300 });
    expect_wait(&breaker, 20, 320);
    sl_breaker_failed(&breaker, old, (sl_breaker_failure){ .now_ns = 30, .retry_after_ns = 1 });
    fail_at(&breaker, old, 300);
    expect_wait(&breaker, 300, 320); /* never shorter, and no wish is no wish */
    expect_pass(&breaker, 320, SL_BREAKER_PROBE);
    sl_breaker_failed(&breaker, old, (sl_breaker_failure){ .now_ns = 330, .retry_after_ns = 300 });
    EXPECT_EQ(sl_breaker_state_at(&breaker, 330), SL_BREAKER_HALF_OPEN);
}

TEST(S3_18_breaker_lets_accepted_work_pass_in_a_drain_although_it_is_open)
{
    sl_breaker breaker = opened_at(10);

    expect_wait(&breaker, 20, 110);
    sl_breaker_drain(&breaker, 500);
    sl_breaker_succeeded(&breaker, expect_pass(&breaker, 20, SL_BREAKER_SEND));
    EXPECT_EQ(sl_breaker_state_at(&breaker, 20), SL_BREAKER_CLOSED);
    for (unsigned i = 0; i < 10; i++)
        expect_pass(&breaker, 21, SL_BREAKER_SEND);
}

TEST(S3_18_breaker_that_opens_in_the_drain_lets_accepted_work_pass)
{
    sl_breaker breaker;

    sl_breaker_init(&breaker, &rules);
    sl_breaker_drain(&breaker, 500);
    for (uint32_t i = 0; i < rules.failures_max; i++)
        fail_at(&breaker, expect_pass(&breaker, 10, SL_BREAKER_SEND), 10);
    EXPECT_EQ(sl_breaker_state_at(&breaker, 10), SL_BREAKER_OPEN);
    expect_pass(&breaker, 11, SL_BREAKER_SEND);
}

TEST(S3_39_breaker_keeps_the_rest_stored_after_a_few_failed_bypasses)
{
    sl_breaker breaker = opened_at(10);

    sl_breaker_drain(&breaker, 500);
    for (uint32_t i = 0; i < rules.bypasses_max; i++)
        fail_at(&breaker, expect_pass(&breaker, 20, SL_BREAKER_SEND), 20);
    EXPECT_EQ(sl_breaker_ask(&breaker, 21).kind, SL_BREAKER_KEEP);
    EXPECT_EQ(sl_breaker_ask(&breaker, 499).kind, SL_BREAKER_KEEP); /* also when the cool-down is over */
}

TEST(S3_39_breaker_bypasses_without_an_answer_make_the_others_wait_not_try)
{
    sl_breaker breaker = opened_at(10);

    sl_breaker_drain(&breaker, 500);
    const uint64_t first = expect_pass(&breaker, 20, SL_BREAKER_SEND);
    const uint64_t second = expect_pass(&breaker, 20, SL_BREAKER_SEND);
    expect_wait(&breaker, 20, 500);
    fail_at(&breaker, first, 30);
    expect_wait(&breaker, 30, 500);
    sl_breaker_withdrawn(&breaker, second);
    const uint64_t third = expect_pass(&breaker, 40, SL_BREAKER_SEND);
    fail_at(&breaker, third, 41);
    EXPECT_EQ(sl_breaker_ask(&breaker, 42).kind, SL_BREAKER_KEEP);
}

TEST(S3_39_breaker_sends_nothing_when_the_drain_has_no_time_left)
{
    sl_breaker breaker;

    sl_breaker_init(&breaker, &rules);
    sl_breaker_drain(&breaker, 500);
    expect_pass(&breaker, 499, SL_BREAKER_SEND);
    EXPECT_EQ(sl_breaker_ask(&breaker, 500).kind, SL_BREAKER_KEEP);
    sl_breaker_drain(&breaker, 600); /* the time may be moved */
    expect_pass(&breaker, 500, SL_BREAKER_SEND);
}

TEST(breaker_probe_that_is_out_when_the_drain_begins_is_its_first_bypass)
{
    sl_breaker breaker = opened_at(10);
    const uint64_t probe = expect_pass(&breaker, 110, SL_BREAKER_PROBE);

    sl_breaker_drain(&breaker, 500);
    expect_pass(&breaker, 111, SL_BREAKER_SEND);
    expect_wait(&breaker, 111, 500);
    sl_breaker_succeeded(&breaker, probe);
    expect_pass(&breaker, 112, SL_BREAKER_SEND);
}

TEST(S4_20_breaker_is_as_before_when_the_drain_has_ended)
{
    sl_breaker breaker = opened_at(10);

    sl_breaker_drain_end(&breaker); /* harmless without a drain */
    expect_wait(&breaker, 20, 110);
    sl_breaker_drain(&breaker, 500);
    const uint64_t bypass = expect_pass(&breaker, 20, SL_BREAKER_SEND);
    sl_breaker_drain_end(&breaker);
    fail_at(&breaker, bypass, 30);
    expect_wait(&breaker, 30, 110);
    expect_pass(&breaker, 110, SL_BREAKER_PROBE);
    sl_breaker_init(&breaker, &rules);
    sl_breaker_drain(&breaker, 500);
    const uint64_t sent = expect_pass(&breaker, 20, SL_BREAKER_SEND);
    sl_breaker_drain_end(&breaker);
    fail_at(&breaker, sent, 30); /* of a closed breaker: still news */
    EXPECT_EQ(breaker.failures, 1);
    expect_pass(&breaker, 600, SL_BREAKER_SEND);
}

TEST(breaker_failures_at_the_end_of_time_and_beyond_counting_are_harmless)
{
    sl_breaker breaker = opened_at(UINT64_MAX - 5);

    expect_wait(&breaker, UINT64_MAX - 1, UINT64_MAX);
    breaker.failures = UINT32_MAX;
    fail_at(&breaker, expect_pass(&breaker, UINT64_MAX, SL_BREAKER_PROBE), UINT64_MAX);
    EXPECT_EQ(breaker.failures, UINT32_MAX);
}

TEST(breaker_states_have_names)
{
    EXPECT_STR(sl_breaker_state_name(SL_BREAKER_CLOSED), "closed");
    EXPECT_STR(sl_breaker_state_name(SL_BREAKER_OPEN), "open");
    EXPECT_STR(sl_breaker_state_name(SL_BREAKER_HALF_OPEN), "half-open");
}

/* The judge of the random walk. It sees what goes in and what comes out, never the fields, and knows these
 * rules:
 *   - never two probes at once that still have time;
 *   - outside of a drain an open breaker lets nothing pass but a probe, and that only after the cool-down
 * (S3.19);
 *   - in a drain at most bypasses_max sends against an open breaker are unanswered or failed (S3.39), and
 *     nothing is kept before so many have failed or the time is over (S3.18).
 * A stretch is the time between two changes; results count only within the stretch of their sending. */
enum {
    SENT_MAX = 64
};

typedef struct walk {
    sl_breaker breaker;
    sl_breaker_rules rules;
    uint64_t seed, now_ns, drain_until_ns;
    struct sent {
        uint64_t ticket, stretch, probe_until_ns;
        bool bypass;
    } sent[SENT_MAX];
    size_t sent_count;
    uint64_t stretch, bypasses_failed;
    uint64_t probes_given, bypasses_given, kept;
} walk;

static uint64_t pick(walk *w, uint64_t below)
{
    return next_random(&w->seed) % below;
}

static bool is_open(const walk *w)
{
    return sl_breaker_state_at(&w->breaker, w->now_ns) != SL_BREAKER_CLOSED;
}

static void begin_stretch(walk *w)
{
    w->stretch++;
    w->bypasses_failed = 0;
}

static size_t live_probes(const walk *w, uint64_t at_ns)
{
    size_t count = 0;

    for (size_t i = 0; i < w->sent_count; i++)
        count += w->sent[i].probe_until_ns > at_ns && w->sent[i].stretch == w->stretch;
    return count;
}

static size_t bypasses_out(const walk *w)
{
    size_t count = 0;

    for (size_t i = 0; i < w->sent_count; i++)
        count += w->sent[i].bypass && w->sent[i].stretch == w->stretch;
    return count;
}

static void judge_probe(walk *w, struct sent *sent)
{
    EXPECT(w->drain_until_ns == 0);
    EXPECT_EQ(sl_breaker_state_at(&w->breaker, w->now_ns), SL_BREAKER_HALF_OPEN);
    EXPECT_EQ(live_probes(w, w->now_ns), 0);
    begin_stretch(w);
    sent->probe_until_ns = w->now_ns + w->rules.probe_max_ns;
    w->probes_given++;
}

static void judge_pass(walk *w, sl_breaker_verdict verdict)
{
    struct sent sent = { .ticket = verdict.ticket, .bypass = w->drain_until_ns != 0 && is_open(w) };

    EXPECT(verdict.ticket != 0);
    EXPECT(w->drain_until_ns == 0 || w->now_ns < w->drain_until_ns);
    EXPECT(!is_open(w) || sent.bypass || verdict.kind == SL_BREAKER_PROBE);
    if (verdict.kind == SL_BREAKER_PROBE)
        judge_probe(w, &sent);
    sent.stretch = w->stretch;
    w->sent[w->sent_count++] = sent;
    w->bypasses_given += sent.bypass;
    EXPECT(bypasses_out(w) + w->bypasses_failed <= w->rules.bypasses_max);
}

static void judge_wait(walk *w, uint64_t until_ns)
{
    EXPECT(is_open(w));
    EXPECT(until_ns > w->now_ns);
    if (w->drain_until_ns != 0) {
        EXPECT_EQ(until_ns, w->drain_until_ns);
        EXPECT_EQ(bypasses_out(w) + w->bypasses_failed, w->rules.bypasses_max);
    } else if (sl_breaker_state_at(&w->breaker, w->now_ns) == SL_BREAKER_OPEN) {
        EXPECT_EQ(sl_breaker_state_at(&w->breaker, until_ns - 1), SL_BREAKER_OPEN);
        EXPECT_EQ(sl_breaker_state_at(&w->breaker, until_ns), SL_BREAKER_HALF_OPEN);
    } else {
        EXPECT_EQ(live_probes(w, until_ns - 1), 1);
        EXPECT_EQ(live_probes(w, until_ns), 0);
    }
}

static void walk_ask(walk *w)
{
    const sl_breaker_verdict verdict = sl_breaker_ask(&w->breaker, w->now_ns);

    if (verdict.kind == SL_BREAKER_SEND || verdict.kind == SL_BREAKER_PROBE)
        judge_pass(w, verdict);
    if (verdict.kind == SL_BREAKER_WAIT)
        judge_wait(w, verdict.until_ns);
    if (verdict.kind == SL_BREAKER_KEEP) {
        EXPECT(w->drain_until_ns != 0);
        EXPECT(w->now_ns >= w->drain_until_ns || w->bypasses_failed == w->rules.bypasses_max);
        w->kept++;
    }
}

static void report(walk *w, const struct sent *sent, uint64_t result)
{
    const sl_breaker_failure failure = { .now_ns = w->now_ns, .retry_after_ns = pick(w, 3) * pick(w, 500) };

    if (result == 0)
        sl_breaker_succeeded(&w->breaker, sent->ticket);
    else if (result == 1)
        sl_breaker_withdrawn(&w->breaker, sent->ticket);
    else
        sl_breaker_failed(&w->breaker, sent->ticket, failure);
}

static void walk_report(walk *w)
{
    const size_t i = (size_t)pick(w, w->sent_count);
    const struct sent sent = w->sent[i];
    const bool current = sent.stretch == w->stretch, was_open = is_open(w);
    const uint64_t result = pick(w, 4);

    w->sent[i] = w->sent[--w->sent_count];
    report(w, &sent, result);
    if (!current)
        EXPECT_EQ(is_open(w), was_open);
    if (current && result == 0)
        EXPECT(!is_open(w));
    if (current && sent.bypass && result >= 2)
        w->bypasses_failed++;
    if (is_open(w) != was_open || (current && sent.probe_until_ns != 0))
        begin_stretch(w);
}

/* A probe that is out when a drain begins is one of its bypasses from then on. */
static void walk_drain(walk *w)
{
    w->drain_until_ns = w->now_ns + 1 + pick(w, 400);
    sl_breaker_drain(&w->breaker, w->drain_until_ns);
    for (size_t i = 0; i < w->sent_count; i++) {
        w->sent[i].bypass |= w->sent[i].probe_until_ns != 0;
        w->sent[i].probe_until_ns = 0;
    }
}

static void walk_drain_end(walk *w)
{
    if (w->drain_until_ns != 0 && is_open(w))
        begin_stretch(w);
    w->drain_until_ns = 0;
    sl_breaker_drain_end(&w->breaker);
}

static void walk_step(walk *w)
{
    const uint64_t what = pick(w, 100);

    w->now_ns += pick(w, 30);
    if (what < 55 && w->sent_count < SENT_MAX)
        walk_ask(w);
    else if (what < 96 && w->sent_count > 0)
        walk_report(w);
    else if (what < 98)
        walk_drain(w);
    else
        walk_drain_end(w);
}

/* Once everything has been answered or has run out of time, the breaker lets something pass. */
static void expect_not_stuck(walk *w)
{
    sl_breaker_drain_end(&w->breaker);
    for (unsigned turn = 0; turn < 4; turn++) {
        const sl_breaker_verdict verdict = sl_breaker_ask(&w->breaker, w->now_ns);

        if (verdict.kind != SL_BREAKER_WAIT)
            return;
        w->now_ns = verdict.until_ns;
    }
    fail_msg("the breaker never lets anything pass");
}

TEST(breaker_random_walks_never_have_two_probes_and_never_get_stuck)
{
    uint64_t probes = 0, bypasses = 0, kept = 0;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        walk w = { .seed = seed, .now_ns = 1 };

        w.rules = (sl_breaker_rules){
            .failures_max = 1 + (uint32_t)pick(&w, 5),
            .bypasses_max = 1 + (uint32_t)pick(&w, 4),
            .cool_down_ns = 1 + pick(&w, 200),
            .cool_down_max_ns = 200 + pick(&w, 500),
            .probe_max_ns = 1 + pick(&w, 200),
        };
        sl_breaker_init(&w.breaker, &w.rules);
        for (unsigned i = 0; i < 400; i++)
            walk_step(&w);
        expect_not_stuck(&w);
        probes += w.probes_given;
        bypasses += w.bypasses_given;
        kept += w.kept;
    }
    EXPECT(probes > 1000 && bypasses > 1000 && kept > 1000); /* the walks went where the rules are */
}
