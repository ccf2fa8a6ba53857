package topsail.container;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.concurrent.TimeUnit;
import topsail.rpc.Frame;
import topsail.rpc.Kind;
import topsail.rpc.Predict;
import topsail.rpc.ProtocolException;
import topsail.rpc.Reply;
import topsail.rpc.Status;

/** A session with the sidecar, over one connection. Batches go into the inbox; the rest is answered here, at once. */
final class Session {
    /** By which PREDICT names the model: a container announces one. */
    static final int MODEL_ID = 1;

    /** How long it is silent until a PING goes out, in nanoseconds. */
    static final long TICK = TimeUnit.SECONDS.toNanos(1);

    private static final int MOST_SILENT_TICKS = 5;

    private final Connection connection;
    private final Inbox inbox;
    private final long tick;

    Session(Connection connection, Inbox inbox, long tick) {
        this.connection = connection;
        this.inbox = inbox;
        this.tick = tick;
    }

    /**
     * Listens until the connection ends, and returns why. Silence is counted in ticks that really were waited for: a process
     * that was stopped for ten seconds must not take its sidecar for gone.
     */
    IOException listen() {
        try {
            int silent = 0;
            long due = System.nanoTime() + tick;
            while (true) {
                Frame frame = connection.receive(due);
                if (frame != null) {
                    handle(frame);
                }
                if (connection.heard()) {
                    silent = 0;
                    due = System.nanoTime() + tick;
                } else if (System.nanoTime() - due >= 0) {
                    silent++;
                    due = System.nanoTime() + tick;
                    ping(silent);
                }
            }
        } catch (IOException e) {
            return e;
        }
    }

    private void ping(int silent) throws IOException {
        if (silent == MOST_SILENT_TICKS) {
            throw new SocketTimeoutException("nothing was heard from the sidecar for " + TimeUnit.NANOSECONDS.toMillis(MOST_SILENT_TICKS * tick) + " ms");
        }
        connection.send(Frame.nonce(Kind.PING, silent));
    }

    private void handle(Frame frame) throws IOException {
        switch (frame.kind()) {
            case Kind.PREDICT -> take(Predict.decode(frame.body()));
            case Kind.PING -> connection.send(Frame.nonce(Kind.PONG, frame.nonce()));
            case Kind.BYE -> throw new IOException("the sidecar said BYE: " + frame.reason());
            case Kind.PONG, Kind.CANCEL, Kind.FEEDBACK -> {
                // A PONG has done its work by coming, a CANCEL is a hint, and this container does not learn.
            }
            default -> {
                if (frame.kind() < Kind.OPTIONAL) {
                    throw new ProtocolException("frame kind", 4, frame.kind() + " is not for a container");
                }
            }
        }
    }

    private void take(Predict predict) throws ProtocolException {
        if (predict.model() != MODEL_ID) {
            refuse(predict, Status.UNKNOWN_MODEL, "this container announced no model " + predict.model());
            return;
        }
        switch (inbox.put(new Batch(predict, System.nanoTime(), connection))) {
            case TAKEN -> {}
            case CLOSED -> refuse(predict, Status.DRAINING, "this container is stopping");
            case FULL -> throw new ProtocolException("predict batch", 0, "too many batches were sent at once");
        }
    }

    private void refuse(Predict predict, Status status, String message) {
        Reply reply = new Reply(predict.batch(), connection.maxFrame());
        for (int i = 0; i < predict.inputs().size(); i++) {
            reply.fail(i, status, message);
        }
        connection.send(reply.finish(0));
    }
}
