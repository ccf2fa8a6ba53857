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

    private final Queue<Job> jobs = new ArrayDeque<>();
    private boolean closed;

    synchronized Put put(Job job) {
        if (closed) {
            return Put.CLOSED;
        }
        if (jobs.size() >= MOST) {
            return Put.FULL;
        }
        jobs.add(job);
        notifyAll();
        return Put.TAKEN;
    }

    /** The next batch. It waits for one until the inbox is closed; null when it is closed and nothing is left. */
    synchronized Job take() throws InterruptedException {
        while (jobs.isEmpty() && !closed) {
            wait();
        }
        return jobs.poll();
    }

    /** Takes nothing more; what is inside is still to be answered. */
    synchronized void close() {
        closed = true;
        notifyAll();
    }
}
