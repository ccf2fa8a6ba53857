package topsail.container;

import java.util.ArrayDeque;
import java.util.Queue;

/** Batches on their way from the link's thread to the main thread. */
final class Inbox {
    /** Batches that wait at most; the sidecar sends one at a time, and the next may cross a reply. */
    static final int MOST = 4;

    /** What became of a batch that was put. */
    enum Put {
        TAKEN,
        CLOSED,
        FULL
    }

    private final Queue<Batch> batches = new ArrayDeque<>();
    private boolean closed;

    synchronized Put put(Batch batch) {
        if (closed) {
            return Put.CLOSED;
        }
        if (batches.size() >= MOST) {
            return Put.FULL;
        }
        batches.add(batch);
        notifyAll();
        return Put.TAKEN;
    }

    /** The next batch. It waits for one until the inbox is closed; null when it is closed and nothing is left. */
    synchronized Batch take() throws InterruptedException {
        while (batches.isEmpty() && !closed) {
            wait();
        }
        return batches.poll();
    }

    /** Takes nothing more; what is inside is still to be answered. */
    synchronized void close() {
        closed = true;
        notifyAll();
    }
}
