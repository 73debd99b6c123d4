/* index.mjs — the same for `import`. */
import stop from "./index.js";

export const {
    resubscribe,
    subscribeToPersistentSubscriptionToAll,
    subscribeToPersistentSubscriptionToStream,
    withStop,
} = stop;
export default stop;
