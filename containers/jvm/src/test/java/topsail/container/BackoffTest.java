package topsail.container;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class BackoffTest {
    @Test
    void waitsDoubleUpToABound() {
        Backoff backoff = new Backoff(new SplittableRandom(1));
        long nominal = Backoff.LEAST.toNanos();
        for (int i = 0; i < 20; i++) {
            long wait = backoff.next();
            assertTrue(wait >= Math.max(0.7 * nominal, Backoff.LEAST.toNanos()) && wait <= nominal, i + ": " + Duration.ofNanos(wait));
            nominal = Math.min(2 * nominal, Backoff.MOST.toNanos());
        }
    }

    @Test
    void aConnectionThatLastedBeginsAnew() {
        Backoff backoff = new Backoff(new SplittableRandom(1));
        for (int i = 0; i < 10; i++) {
            backoff.next();
        }
        backoff.lived(Duration.ofSeconds(1).toNanos());
        assertTrue(backoff.next() >= Duration.ofMillis(3500).toNanos());
        backoff.lived(Duration.ofSeconds(5).toNanos());
        assertTrue(backoff.next() <= Backoff.LEAST.toNanos());
    }
}
