package topsail.container;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The one call that turns a Java program into a model container. */
public final class Serve {
    private static final int STOPPED = 0;
    private static final int FAILED = 1;
    private static final int REFUSED = 78; // configuration error; starting the same again will not help
    private static final long DRAIN = 30; // seconds for the batch in flight after SIGTERM

    private final Container container;
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile int status = STOPPED;

    private Serve(Container container) {
        this.container = container;
    }

    /**
     * Serves the model until Topsail stops the process by SIGTERM, and ends the process: with status 0 when it was stopped, 78
     * when the model was refused, 1 when something failed. Everything is logged to standard error.
     */
    public static void serve(ModelSource source) {
        try {
            Serve serve = new Serve(new Container(Settings.read(System.getenv()), source, Serve::say));
            Runtime.getRuntime().addShutdownHook(new Thread(serve::end, "topsail-stop"));
            serve.status = serve.run();
            serve.over.countDown();
            System.exit(serve.status);
        } catch (PermanentFailure e) {
            say(e.getMessage());
            System.exit(REFUSED);
        }
    }

    private int run() {
        try {
            container.run();
            return STOPPED;
        } catch (PermanentFailure e) {
            say(e.getMessage());
            return REFUSED;
        } catch (SidecarGone e) {
            say(e.getMessage());
        } catch (OutOfMemoryError e) {
            say("the model needs more memory than Java may take here (" + e.getMessage() + "): allow more, as by -Xmx1g");
        } catch (Throwable e) { // the model's own: the trace is for its author, the sentence for everyone
            e.printStackTrace();
            say("the model failed: " + e);
        }
        return FAILED;
    }

    /** Ends the process, after a signal or when run has returned. */
    private void end() {
        try {
            if (over.getCount() > 0 && container.stop()) {
                over.await(DRAIN, TimeUnit.SECONDS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(status); // in place of 143, which is that of a process that was killed
    }

    private static synchronized void say(String line) {
        System.err.println("topsail: " + line);
    }
}
