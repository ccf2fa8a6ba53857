package topsail.rpc;

import java.nio.ByteBuffer;

/**
 * What ANNOUNCE says of one model.
 *
 * @param id by which PREDICT names the model on this connection
 * @param inputLength in elements; 0 for any
 * @param stage empty unless the version is a pipeline
 */
public record Announcement(
        int id, State state, InputType inputType, int inputLength, String model, String version, String stage) {

    /** By the protocol's numbers. */
    public enum State {
        GONE,
        LOADING,
        READY,
        DRAINING
    }

    /** The same with another state. */
    public Announcement with(State other) {
        return new Announcement(id, other, inputType, inputLength, model, version, stage);
    }

    public static ByteBuffer encode(Announcement... entries) {
        Encoder to = new Encoder().u32(entries.length);
        for (Announcement e : entries) {
            int mark = to.begin();
            to.u32(e.id).u8(e.state.ordinal()).u8(e.inputType.code).u16(0).u32(e.inputLength);
            to.str8(e.model).str8(e.version).str8(e.stage).end(mark);
        }
        return Frame.encode(Kind.ANNOUNCE, to.done());
    }
}
