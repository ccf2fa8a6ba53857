package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * HELLO, the first frame of both sides.
 *
 * @param maxFrame the largest body that its sender accepts, in bytes
 * @param token what the other side wants to see; it is secret, and stays out of toString
 */
public record Hello(int minor, int role, long features, int maxFrame, String name, String token, String software) {
    public static final int GATEWAY = 1;
    public static final int SIDECAR = 2;
    public static final int CONTAINER = 3;

    /** Of the features: signatures, and what only they have. */
    public static final long TENSORS = 8;

    private static final int MAGIC = 'T' | 'P' << 8 | 'S' << 16 | '2' << 24;
    private static final int NAME = 1;
    private static final int TOKEN = 2;
    private static final int SOFTWARE = 3;

    /** A container's. It takes no compressed frames, and knows no pipelines. */
    public static Hello ofContainer(int maxFrame, String name, String token, String software) {
        return new Hello(0, CONTAINER, TENSORS, maxFrame, name, token, software);
    }

    public ByteBuffer encode() {
        Encoder to = new Encoder().u32(MAGIC).u8(minor).u8(role).u16(0).u64(features).u32(maxFrame);
        text(to, NAME, name);
        text(to, TOKEN, token);
        text(to, SOFTWARE, software);
        return Frame.encode(Kind.HELLO, to.done());
    }

    private static void text(Encoder to, int tag, String text) {
        if (!text.isEmpty()) {
            to.field(tag, text.getBytes(StandardCharsets.UTF_8));
        }
    }

    public static Hello decode(ByteBuffer body) throws ProtocolException {
        Cursor from = new Cursor(body);
        if (from.u32("hello magic") != (MAGIC & 0xFFFFFFFFL)) {
            throw from.fail("hello magic", "it is not TPS2: the other side is no Topsail sidecar");
        }
        int minor = from.u8("hello minor");
        int role = from.u8("hello role");
        from.u16("hello");
        long features = from.u64("hello features");
        long maxFrame = from.u32("hello max frame");
        if (maxFrame < Frame.MIN_MAX) {
            throw from.fail("hello max frame", maxFrame + " is less than " + Frame.MIN_MAX);
        }
        Map<Integer, ByteBuffer> fields = from.fields("hello");
        return new Hello(minor, role, features, (int) Math.min(maxFrame, Integer.MAX_VALUE),
                text(fields, NAME), text(fields, TOKEN), text(fields, SOFTWARE));
    }

    private static String text(Map<Integer, ByteBuffer> fields, int tag) {
        ByteBuffer bytes = fields.get(tag);
        return bytes == null ? "" : StandardCharsets.UTF_8.decode(bytes).toString();
    }

    @Override
    public String toString() {
        return "HELLO of " + name + " with " + software;
    }
}
