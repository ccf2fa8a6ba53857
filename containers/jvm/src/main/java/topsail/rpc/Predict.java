package topsail.rpc;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** PREDICT: a batch of inputs for one model. */
public record Predict(long batch, long model, List<Input> inputs) {
    /** The time left of an input that has no deadline. */
    public static final long NO_DEADLINE = 0xFFFFFFFFL;

    private static final int MAX_INPUTS = 65536;
    private static final int LEAST = 10; // bytes of an entry

    /**
     * An input.
     *
     * @param left until its deadline when it was sent, in microseconds, or NO_DEADLINE
     * @param values one; one for each input of a signature; or several where a pipeline asks
     */
    public record Input(long left, List<Value> values) {}

    /** Reads a batch. Fields behind a payload are for the sides before the container, and stay unread. */
    public static Predict decode(ByteBuffer body) throws ProtocolException {
        Cursor from = new Cursor(body);
        long batch = from.u64("predict batch");
        long model = from.u32("predict model");
        int count = from.count("predict count", LEAST);
        if (count < 1 || count > MAX_INPUTS) {
            throw from.fail("predict count", count + " is not from 1 to " + MAX_INPUTS);
        }
        List<Input> inputs = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            Cursor entry = from.part("predict entry");
            inputs.add(new Input(entry.u32("predict time left"), Payload.decode(entry)));
        }
        from.end("predict");
        return new Predict(batch, model, inputs);
    }
}
