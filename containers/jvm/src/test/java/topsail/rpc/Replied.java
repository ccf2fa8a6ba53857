package topsail.rpc;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** An entry of a REPLY, as a sidecar reads it. */
public record Replied(int index, int status, String message, List<Value> values, Double confidence, List<Value> qualifiers) {
    public static List<Replied> decode(Frame frame) throws ProtocolException {
        Cursor from = new Cursor(frame.body());
        from.take(20, "reply head");
        int count = from.count("reply count", 12);
        List<Replied> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(entry(from.part("reply entry")));
        }
        from.end("reply");
        return all;
    }

    private static Replied entry(Cursor from) throws ProtocolException {
        int index = (int) from.u32("index");
        int status = from.u8("status");
        if (from.u8("flags") != 1 || from.u16("reserved") != 0) {
            throw from.fail("reply entry", "it is not the last of its input");
        }
        if (status != 0) {
            return new Replied(index, status, from.str16("message"), List.of(), null, List.of());
        }
        List<Value> values = Payload.decode(from);
        Map<Integer, ByteBuffer> fields = from.fields("reply");
        Double confidence = fields.containsKey(1) ? Double.valueOf(new Cursor(fields.get(1)).f64("confidence")) : null;
        List<Value> qualifiers = fields.containsKey(2) ? Payload.decode(new Cursor(fields.get(2))) : List.of();
        return new Replied(index, 0, "", values, confidence, qualifiers);
    }
}
