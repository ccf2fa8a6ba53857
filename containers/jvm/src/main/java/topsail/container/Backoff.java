package topsail.container;

import java.time.Duration;
import java.util.random.RandomGenerator;

/** Doubling waits with some chance in them, so that many containers do not dial in step. */
final class Backoff {
    static final Duration LEAST = Duration.ofMillis(100);
    static final Duration MOST = Duration.ofSeconds(5);

    private final RandomGenerator random;
    private long wait = LEAST.toNanos();

    Backoff(RandomGenerator random) {
        this.random = random;
    }

    /** How long to wait before the next try, in nanoseconds. */
    long next() {
        long now = (long) (wait * (0.7 + 0.3 * random.nextDouble()));
        wait = Math.min(2 * wait, MOST.toNanos());
        return Math.max(now, LEAST.toNanos());
    }

    /** After a connection that lasted, the next one is worth trying soon; one that was cut at once is not. */
    void lived(long nanos) {
        if (nanos >= MOST.toNanos()) {
            wait = LEAST.toNanos();
        }
    }
}
