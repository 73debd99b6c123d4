/* The one rule (S4.1, S4.2, S4.11, S4.12). */
#include "../test.h"
#include "core/lease.h"

TEST(S4_2_available_means_unset_or_ended_and_not_paused)
{
    static const sl_lease unset = { 0 }, held = { .token = 1, .holder = 7, .until_ns = 100 };
    static const struct {
        const sl_lease *lease;
        uint64_t not_before_ns, now_ns;
        bool available;
    } rows[] = {
        { &unset, 0, 0, true },     { &unset, 50, 49, false }, { &unset, 50, 50, true },
        { &held, 0, 99, false },    { &held, 0, 100, true },   { &held, 0, 101, true },
        { &held, 150, 149, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT_EQ(sl_lease_available(rows[i].lease, rows[i].not_before_ns, rows[i].now_ns),
                  rows[i].available);
}

TEST(S4_11_a_claim_must_name_holder_and_token)
{
    const sl_lease lease = { .token = 5, .holder = 7, .until_ns = 100 }, unset = { 0 };

    EXPECT(sl_lease_is(&lease, 7, 5));
    EXPECT(sl_lease_is(&lease, 7, 0)); /* the holder need not know the token */
    EXPECT(!sl_lease_is(&lease, 7, 4));
    EXPECT(!sl_lease_is(&lease, 8, 5));
    EXPECT(!sl_lease_is(&unset, 0, 0));
}

TEST(a_fresh_and_an_ended_lease_are_taken_alike)
{
    sl_lease lease = { 0 };

    sl_lease_take(&lease, (sl_lease){ 1, 7, 100 }, 0);
    EXPECT(sl_lease_live(&lease, 99));
    sl_lease_take(&lease, (sl_lease){ 2, 8, 200 }, 100);
    EXPECT(sl_lease_is(&lease, 8, 2));
    sl_lease_end(&lease);
    EXPECT(!sl_lease_live(&lease, 0));
    EXPECT(sl_lease_is(&lease, 8, 2));
    sl_lease_drop(&lease);
    EXPECT(!sl_lease_is(&lease, 8, 2));
    sl_lease_check(&lease);
}
