/* lib/wait.mjs — waiting for something that must happen, never for ever and never for a guess of time. */

/* What the promise gives, or a failure that names what was waited for. */
export async function within(promise, ms, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`waited ${ms} ms in vain for ${what}`)), ms);
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

const PAUSE_MS = 20;

/* Tries until the attempt succeeds: for what depends on a clock or on another process and reports nothing by
 * itself. The last error is the failure. */
export async function eventually(attempt, { ms = 20_000, what = "it to succeed" } = {}) {
    const giveUpAt = Date.now() + ms;
    for (;;) {
        try {
            return await within(attempt(), ms, what);
        } catch (error) {
            if (Date.now() >= giveUpAt) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
}

/* Runs the tasks with at most `width` of them at once, and gives their results in order. */
export async function inParallel(tasks, width) {
    const results = new Array(tasks.length);
    let next = 0;
    const lane = async () => {
        while (next < tasks.length) {
            const index = next++;
            results[index] = await tasks[index]();
        }
    };
    await Promise.all(Array.from({ length: Math.min(width, tasks.length) }, lane));
    return results;
}
