/* lib/old_server.mjs — a server of the time before Stop, as far as a persistent subscription needs one: it knows none of
 * the extensions, pushes while there is room, and writes down in which order things reach it.
 *
 * For the rule that a consumer can leave well without any help (S1.20), and for what goes over the wire exactly. */
import grpc from "@grpc/grpc-js";

import { SERVICES, identifier } from "./raw.mjs";
import { within } from "./wait.mjs";

const WAIT_MS_MAX = 20_000;
const READ = {
    service_name: "event_store.client.persistent_subscriptions.persistentsubscriptions",
    method_name: "read",
};

const SETTLES = ["ack", "nack", "release"];

/* The event with this number, as it is delivered; ours have a token. */
export function eventOf(n, leaseMs = 0) {
    const id = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
    const metadata = { type: "numbered", "content-type": "application/json", created: "16000000000000000" };
    const data = Buffer.from(JSON.stringify({ n }));
    const common = { stream_identifier: identifier("old"), stream_revision: n, metadata, data };
    const recorded = { id: { string: id }, prepare_position: n, commit_position: n, ...common };
    const lease = leaseMs > 0 ? { lease_token: n + 1, lease_ms: leaseMs } : {};
    return { event: { event: recorded, commit_position: n, retry_count: 0, ...lease } };
}

export class OldServer {
    #server = new grpc.Server();
    #next = 0;
    #room = 0;
    #waiting = new Set();
    requests = []; /* contents of the requests, in order; "left" for the end of a call */
    features = ["stream", "all"];
    leaseMs = 0; /* of events, when it is a server of today */

    constructor(eventCount) {
        this.eventCount = eventCount;
        this.#server.addService(SERVICES.features.service, {
            GetSupportedMethods: (_, answer) => this.#tellFeatures(answer),
        });
        this.#server.addService(SERVICES.persistent.service, { Read: (call) => this.#serve(call) });
    }

    async start() {
        const bind = (resolve, reject) =>
            this.#server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) =>
                error ? reject(error) : resolve(port),
            );
        this.address = `127.0.0.1:${await new Promise(bind)}`;
        return this;
    }

    #tellFeatures(answer) {
        this.#note("features");
        answer(null, {
            event_store_server_version: "24.10.0",
            methods: [{ ...READ, features: this.features }],
        });
    }

    #serve(call) {
        this.call = call;
        call.on("data", (request) => this.#take(call, request));
        call.on("cancelled", () => this.#note("left"));
        call.on("error", () => {});
    }

    #take(call, request) {
        const body = request[request.content];
        if (request.content === "options") {
            this.#room = body.buffer_size;
            call.write({ subscription_confirmation: { subscription_id: "old::group" } });
        } else if (SETTLES.includes(request.content)) this.#room += body.ids.length;
        this.#note(request);
        this.#push(call);
    }

    #push(call) {
        for (; this.#room > 0 && this.#next < this.eventCount; this.#room--)
            call.write(eventOf(this.#next++, this.leaseMs));
    }

    /* Something that a server of today says, to a client that is to understand it. */
    say(response) {
        this.call.write(response);
    }

    /* Room for more, as after leases that have run out. */
    grow(count) {
        this.#room += count;
        this.#push(this.call);
    }

    /* Ends the call as a server does that loses its group. */
    fail() {
        this.call.emit("error", { code: grpc.status.NOT_FOUND, details: "the group is gone" });
    }

    /* Ends it as one does that shuts down in order. */
    shutDown() {
        this.call.emit("error", { code: grpc.status.UNAVAILABLE, details: "The server is shutting down." });
    }

    #note(request) {
        this.requests.push(request);
        for (const look of this.#waiting) look();
    }

    /* The kinds of what came, in order. */
    get kinds() {
        return this.requests.map((request) => request.content ?? request);
    }

    async until(condition, what) {
        let look;
        const met = new Promise((resolve) => {
            look = () => condition() && resolve();
            this.#waiting.add(look);
            look();
        });
        await within(met, WAIT_MS_MAX, `${what}; so far ${this.kinds}`);
        this.#waiting.delete(look);
    }

    close() {
        this.#server.forceShutdown();
    }
}
