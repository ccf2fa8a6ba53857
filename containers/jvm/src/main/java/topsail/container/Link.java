package topsail.container;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import topsail.rpc.Announcement;
import topsail.rpc.Frame;
import topsail.rpc.Hello;
import topsail.rpc.ProtocolException;

/** The link to the sidecar: a thread that keeps one connection, and listens on it while the model computes. */
final class Link {
    private static final String SOFTWARE = "topsail-java/1 Java/" + Runtime.version().feature();
    private static final long JOIN = 500; // milliseconds that the sidecar has to close after our BYE

    private final Settings settings;
    private final Inbox inbox;
    private final Consumer<String> log;
    private final Thread thread = new Thread(this::run, "topsail-link");
    private final CountDownLatch opened = new CountDownLatch(1); // by the first connection
    private final CountDownLatch drained = new CountDownLatch(1); // by drain: no connection is opened from now on
    private final Object lock = new Object(); // guards the following, and orders what is said of them
    private Announcement announced;
    private Connection connection;
    private volatile String failure;

    Link(Settings settings, Announcement announced, Inbox inbox, Consumer<String> log) {
        this.settings = settings;
        this.announced = announced;
        this.inbox = inbox;
        this.log = log;
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Why the sidecar is gone for good, or null. */
    String failure() {
        return failure;
    }

    /** Says now, and again after each reconnection, what is served. */
    void announce(Announcement.State state) {
        synchronized (lock) {
            announced = announced.with(state);
            if (connection != null) {
                connection.send(Announcement.encode(announced));
            }
        }
    }

    /** Takes no more batches, and tells the sidecar. */
    void drain() {
        synchronized (lock) {
            if (!draining() && connection != null) {
                connection.send(Frame.drain());
            }
            drained.countDown();
        }
        inbox.close();
    }

    /**
     * Drains if that was not done, says BYE, and waits a moment for the thread. A reason that the sidecar should hear is worth
     * some milliseconds of patience where there has been no connection yet.
     */
    void close(String reason, long patience) throws InterruptedException {
        opened.await(patience, TimeUnit.MILLISECONDS);
        drain();
        Connection current;
        synchronized (lock) {
            current = connection;
        }
        if (current != null) {
            current.sayBye(reason);
        }
        thread.join(JOIN);
    }

    private boolean draining() {
        return drained.getCount() == 0;
    }

    private void run() {
        try {
            keepConnected();
        } catch (Throwable e) { // without this thread the container would be silent for good
            fail("the link to the sidecar failed: " + e);
        }
    }

    private void fail(String why) {
        failure = why;
        inbox.close();
    }

    private void keepConnected() throws InterruptedException {
        Backoff backoff = new Backoff(new SplittableRandom());
        long lastSeen = System.nanoTime();
        while (!draining()) {
            long began = System.nanoTime();
            Ending ending = hold();
            long now = System.nanoTime();
            if (ending.opened) {
                lastSeen = now;
                backoff.lived(now - began);
            }
            if (draining()) {
                return;
            }
            log.accept("no connection to the sidecar at " + where() + ": " + ending.problem.getMessage());
            long left = lastSeen + settings.giveUp().toNanos() - now;
            if (left <= 0) {
                fail("no connection to the sidecar at %s for %d s (%s): is it still running?"
                        .formatted(where(), settings.giveUp().toSeconds(), ending.problem.getMessage()));
                return;
            }
            drained.await(Math.min(backoff.next(), left), TimeUnit.NANOSECONDS);
        }
    }

    /** Why a connection ended, or did not come to be. */
    private record Ending(IOException problem, boolean opened) {}

    /** Opens a connection, and keeps it as long as it lives. */
    private Ending hold() {
        Connection fresh;
        try {
            // A sidecar that listens has written its token file, so that is read once the connection stands.
            fresh = Connection.open(new InetSocketAddress(settings.host(), settings.port()),
                    () -> Hello.ofContainer(Connection.ACCEPTED, settings.replica(), settings.currentToken(), SOFTWARE));
        } catch (IOException e) {
            return new Ending(e, false);
        }
        IOException problem = new IOException("this container is stopping");
        try {
            if (begin(fresh)) {
                problem = new Session(fresh, inbox, Session.TICK).listen();
            }
        } finally {
            synchronized (lock) {
                connection = null;
            }
            fresh.close(problem instanceof ProtocolException ? problem.getMessage() : "");
        }
        return new Ending(problem, true);
    }

    private boolean begin(Connection fresh) {
        synchronized (lock) {
            if (draining()) {
                return false;
            }
            connection = fresh;
            fresh.send(Announcement.encode(announced));
        }
        opened.countDown();
        log.accept("connected to the sidecar at " + where());
        return true;
    }

    private String where() {
        return settings.host() + ":" + settings.port();
    }
}
