/* The judge of kill.mjs is judged: it must find each kind of damage, and nothing where there is none. No server
 * is needed. */
import assert from "node:assert/strict";
import test from "node:test";

import { Ledger } from "./lib/ledger.mjs";

/* Two authors, two streams: a1 to a4 are confirmed, b1 and b2 were never answered, c1 was shown to a
 * subscriber. */
function history() {
    const ledger = new Ledger();
    const confirmed = (author, parts, revisions) => ledger.confirm(ledger.begin(author, parts), revisions);
    confirmed("anna", [{ stream: "own", ids: ["a1", "a2"] }], [1n]);
    confirmed(
        "anna",
        [
            { stream: "own", ids: ["a3"] },
            { stream: "shared", ids: ["a4", "a5"] },
        ],
        [2n, 1n],
    );
    ledger.begin("bert", [{ stream: "shared", ids: ["b1", "b2"] }]);
    ledger.begin("bert", [{ stream: "shared", ids: ["c1"] }]);
    ledger.show("shared", "c1");
    return ledger;
}

function judge(own, shared) {
    return history().judge(
        new Map([
            ["own", own.split(" ")],
            ["shared", shared.split(" ")],
        ]),
    );
}

const OWN = "a1 a2 a3";

test("what may be there after a kill is accepted", () => {
    assert.deepEqual(judge(OWN, "a4 a5 c1"), []);
    assert.deepEqual(judge(OWN, "a4 a5 b1 b2 c1"), []);
});

const DAMAGES = [
    ["a confirmed event is missing", "a1 a2", "a4 a5 c1", /attempt 1 of anna/],
    ["the end of a confirmed append is missing", "a1", "c1", /attempt 0 of anna is there in part/],
    ["one stream of an append is missing", OWN, "c1", /attempt 1 of anna is there in part/],
    ["an append that nobody confirmed is torn", OWN, "a4 a5 b1 c1", /attempt 2 of bert is there in part/],
    ["the events of an append are not together", OWN, "a4 a5 b1 c1 b2", /attempt 2 of bert is there in part/],
    ["a confirmed event is at another revision", OWN, "b1 b2 a4 a5 c1", /confirmed at revision 1 and is at 3/],
    ["an author's appends changed places", OWN, "a4 a5 c1 b1 b2", /bert is out of order/],
    ["an event is there twice", OWN, "a4 a5 c1 c1", /twice/],
    ["an event is there that nobody wrote", OWN, "a4 a5 c1 x9", /x9, which nobody wrote/],
    ["an event that was shown is gone", OWN, "a4 a5", /c1 of shared was shown/],
];

for (const [what, own, shared, finding] of DAMAGES) {
    test(`it is found when ${what}`, () => {
        const findings = judge(own, shared);
        assert.ok(
            findings.some((text) => finding.test(text)),
            findings.join("\n"),
        );
    });
}
