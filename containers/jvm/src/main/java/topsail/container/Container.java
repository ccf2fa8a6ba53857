package topsail.container;

import java.util.function.Consumer;
import topsail.rpc.Announcement;

/** Serves one model. It is loaded and run on the thread that calls run. */
public final class Container {
    private static final long PATIENCE = 1000; // milliseconds to connect, only to say why the model cannot be loaded

    private final Settings settings;
    private final ModelSource source;
    private final Consumer<String> log;
    private final Inbox inbox = new Inbox();
    private final Link link;
    private volatile boolean loading = true;

    /** The log takes lines for people. */
    public Container(Settings settings, ModelSource source, Consumer<String> log) {
        this.settings = settings;
        this.source = source;
        this.log = log;
        Announcement announced = new Announcement(Session.MODEL_ID, Announcement.State.LOADING, settings.inputType(),
                settings.inputLength(), settings.model(), settings.version(), "");
        this.link = new Link(settings, announced, inbox, log);
    }

    /** Serves until it is stopped. It throws SidecarGone, or what loading has thrown. */
    public void run() throws Exception {
        link.start();
        try {
            Runner runner = load();
            Batch batch;
            while ((batch = inbox.take()) != null) { // after stop what is left
                answer(runner, batch);
            }
        } catch (Throwable e) {
            link.close(e.getClass().getSimpleName() + ": " + e.getMessage(), PATIENCE);
            throw e;
        }
        link.close("stopped", 0);
        if (link.failure() != null) {
            throw new SidecarGone(link.failure());
        }
    }

    /**
     * Takes no more batches; run returns when those in flight are answered. Any thread may call it. It returns false while the
     * model is still being loaded, which nothing can cut short: then all is said to the sidecar, and the process may end.
     */
    public boolean stop() throws InterruptedException {
        if (loading) {
            link.close("stopped", 0);
            return false;
        }
        link.drain();
        return true;
    }

    private Runner load() throws Exception {
        long began = System.nanoTime();
        Model model = source.load(settings);
        Runner runner = new Runner(model, settings);
        model.warmUp();
        loading = false;
        log.accept("%s:%s is ready after %.1f s".formatted(settings.model(), settings.version(), (System.nanoTime() - began) / 1e9));
        link.announce(Announcement.State.READY);
        return runner;
    }

    private static void answer(Runner runner, Batch batch) {
        if (!batch.connection().broken()) {
            batch.connection().send(runner.run(batch.predict(), batch.received(), batch.connection().maxFrame()));
        }
    }
}
