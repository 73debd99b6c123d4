/** What makes persistent subscriptions in both official clients. */
export interface SubscribingClient {
    subscribeToPersistentSubscriptionToStream(...words: any[]): any;
    subscribeToPersistentSubscriptionToAll(...words: any[]): any;
}

/** An event as a persistent subscription gives it. */
export interface HeldEvent {
    event?: { id: string };
    link?: { id: string };
}

export interface StopOptions {
    /** What was never started goes back to the group at once, in its order and not counted as a try. Default: false. */
    handBackUnstarted?: boolean;
    /** Ends the call when it is drained. Default: true. */
    leave?: boolean;
}

export type AskedBy = "consumer" | "operator" | "server" | "unknown";

/** Nothing new comes any more. Told when everything that came before has been handed to the program. */
export interface Stopped<E = HeldEvent> {
    supported: boolean;
    /** How much this consumer still holds, and which. */
    inFlight: number;
    outstanding: string[];
    alreadyStopped: boolean;
    askedBy: AskedBy;
    /** Events that went back to the group with this stop, whether the program was given them or not. */
    handedBack: E[];
}

/** Nothing is held any more, and that is durable. The counts are those since the stop. */
export interface Drained {
    /** False: the server has no Stop, and the client did what it could alone. */
    supported: boolean;
    settled: number;
    released: number;
    lost: number;
}

export interface StopRequested {
    reason: string;
    /** Not there: none. */
    deadlineMs?: number;
    /** What was not begun is to go back, and has been released already; `stopped` names it. */
    handBackUnstarted: boolean;
}

export interface Settled {
    ids: string[];
}

/** These belong to somebody else by now, or to nobody. */
export interface Lost<E = HeldEvent> {
    ids: string[];
    /** Those of them that the program was given. */
    events: E[];
}

export interface ConsumerOptions {
    /** Leases belong to this name and not to the connection. */
    consumerName?: string;
    /** For operators, who can stop everything with version=42, say. */
    labels?: Record<string, string>;
    /** How long started work is kept for a consumer that lost its connection. */
    reconnectMs?: number;
    /** Ids of events that this process still holds from a call before. */
    resume?: string[];
    /**
     * When an event counts as started: "handed" to the program (default), or when the program has "said" so with
     * started().
     */
    starting?: "handed" | "said";
}

export interface Stoppable<E extends HeldEvent = HeldEvent> {
    /** Whether the server knows Stop. */
    readonly supported: Promise<boolean>;
    /** Gets nothing new any more, and resolves when everything that is held is settled and that is durable. */
    stop(options?: StopOptions): Promise<Drained>;
    /** Hands back, not counted as a try. False: not possible, and nothing was sent. */
    release(...events: E[]): Promise<boolean>;
    /** Holds for so many milliseconds from now; 0 for as long as the group says. */
    extend(leaseMs: number, ...events: E[]): Promise<boolean>;
    /** Work has begun. False: one of them is not held any more and must not be begun, or nobody was told. */
    started(...events: E[]): Promise<boolean>;
    /** What the program was given and has not settled. */
    held(): E[];
    /** The fencing token of an event that is held, and for how long it was leased. */
    lease(event: E): { token: bigint; leaseMs: number } | undefined;

    on(name: "stopped", listener: (info: Stopped<E>) => void): this;
    on(name: "drained", listener: (info: Drained) => void): this;
    on(name: "stopRequested", listener: (info: StopRequested) => void): this;
    on(name: "settled", listener: (info: Settled) => void): this;
    on(name: "lost", listener: (info: Lost<E>) => void): this;
    once(name: "stopped", listener: (info: Stopped<E>) => void): this;
    once(name: "drained", listener: (info: Drained) => void): this;
    once(name: "stopRequested", listener: (info: StopRequested) => void): this;
    once(name: "settled", listener: (info: Settled) => void): this;
    once(name: "lost", listener: (info: Lost<E>) => void): this;
}

type Subscription<C extends SubscribingClient, M extends keyof SubscribingClient> = ReturnType<C[M]> &
    Stoppable;

export function subscribeToPersistentSubscriptionToStream<C extends SubscribingClient>(
    client: C,
    streamName: string,
    groupName: string,
    options?: ConsumerOptions & Record<string, unknown>,
    duplexOptions?: object,
): Subscription<C, "subscribeToPersistentSubscriptionToStream">;

export function subscribeToPersistentSubscriptionToAll<C extends SubscribingClient>(
    client: C,
    groupName: string,
    options?: ConsumerOptions & Record<string, unknown>,
    duplexOptions?: object,
): Subscription<C, "subscribeToPersistentSubscriptionToAll">;

/**
 * The same subscription on a new call, with what the program still holds. A new object: listeners are not taken along.
 * Needs a consumerName.
 */
export function resubscribe<S extends Stoppable>(subscription: S, changes?: ConsumerOptions): S;

/** The client, with subscriptions that can be stopped. */
export function withStop<C extends SubscribingClient>(
    client: C,
): Omit<C, keyof SubscribingClient> & {
    subscribeToPersistentSubscriptionToStream(
        streamName: string,
        groupName: string,
        options?: ConsumerOptions & Record<string, unknown>,
        duplexOptions?: object,
    ): Subscription<C, "subscribeToPersistentSubscriptionToStream">;
    subscribeToPersistentSubscriptionToAll(
        groupName: string,
        options?: ConsumerOptions & Record<string, unknown>,
        duplexOptions?: object,
    ): Subscription<C, "subscribeToPersistentSubscriptionToAll">;
};
