package topsail.rpc;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * REPLY: collects the answers to a batch, ready to be sent as one piece. They go to several frames where one would be larger
 * than the other side accepts.
 */
public final class Reply {
    private static final int HEAD = 24; // bytes of a body before its entries
    private static final int CONFIDENCE = 1;
    private static final int QUALIFIERS = 2;
    private static final int LAST = 1;
    private static final int MESSAGE = 4096; // bytes; more is of no use at the gateway

    private final long batch;
    private final int maxFrame;
    private final Encoder frames = new Encoder();
    private int frame; // where the last frame begins
    private int count; // of its entries

    /** For a side that accepts bodies of so many bytes. */
    public Reply(long batch, int maxFrame) {
        this.batch = batch;
        this.maxFrame = maxFrame;
        begin();
    }

    /** Answers an input, which has one answer. The confidence may be null. */
    public void add(int index, List<Value> outputs, Double confidence, List<Value> qualifiers) {
        Encoder entry = entry(index, Status.OK);
        Payload.encode(entry, outputs);
        if (confidence != null) {
            entry.u8(CONFIDENCE).u32(8).f64(confidence);
        }
        if (!qualifiers.isEmpty()) {
            int mark = entry.u8(QUALIFIERS).begin();
            Payload.encode(entry, qualifiers);
            entry.end(mark);
        }
        if (entry.size() + 4 > maxFrame - HEAD) {
            fail(index, Status.MODEL_ERROR, "OverflowError: an output of " + entry.size() + " bytes cannot be sent");
        } else {
            add(entry);
        }
    }

    /** Says why an input has no output. */
    public void fail(int index, Status status, String message) {
        add(entry(index, status).str16(message, MESSAGE));
    }

    /** The frames, the last one with END. The model took so many microseconds, or 0 where it was not asked. */
    public ByteBuffer finish(long service) {
        close(Frame.END, service);
        return frames.done();
    }

    private static Encoder entry(int index, Status status) {
        return new Encoder().u32(index).u8(status.code).u8(LAST).u16(0);
    }

    private void add(Encoder entry) {
        int size = 4 + entry.size();
        if (frames.size() - frame - Frame.HEADER + size > maxFrame) {
            close(0, 0);
            begin();
        }
        frames.u32(entry.size()).bytes(entry.done());
        count++;
    }

    private void begin() {
        frame = frames.size();
        count = 0;
        frames.u32(0).u8(Kind.REPLY).u8(0).u16(0); // the size and the flags come at the end
        // Nothing waits in a container: the sidecar has the queue, and sends one batch at a time.
        frames.u64(batch).u32(0).u32(0).u32(0).u32(0);
    }

    private void close(int flags, long service) {
        frames.u32At(frame, frames.size() - frame - Frame.HEADER).u8At(frame + 5, flags);
        frames.u32At(frame + Frame.HEADER + 16, Math.min(service, 0xFFFFFFFFL)).u32At(frame + Frame.HEADER + 20, count);
    }
}
