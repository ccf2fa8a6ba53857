package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A frame; its body is in memory of its own. */
public record Frame(int kind, int flags, ByteBuffer body) {
    /** Bytes of a frame's header. */
    public static final int HEADER = 8;

    /** Bytes of a body that a side accepts which has memory enough. */
    public static final int MAX = 64 << 20;

    /** The least that a side may accept. */
    static final int MIN_MAX = 65536;

    static final int COMPRESSED = 1;
    static final int END = 2;

    private static final int REASON = 1024; // bytes
    private static final int SHARE = 16; // of the heap: several frames wait at once, each is copied, and the model is there too

    /** Bytes of a body that a side accepts with so many bytes of heap. */
    public static int accepted(long heap) {
        return (int) Math.max(MIN_MAX, Math.min(MAX, heap / SHARE));
    }

    /** The bytes of a frame with this body. */
    public static ByteBuffer encode(int kind, ByteBuffer body) {
        return new Encoder().u32(body.remaining()).u8(kind).u8(0).u16(0).bytes(body).done();
    }

    /** PING or PONG. */
    public static ByteBuffer nonce(int kind, long nonce) {
        return encode(kind, new Encoder().u64(nonce).done());
    }

    public static ByteBuffer drain() {
        return encode(Kind.DRAIN, ByteBuffer.allocate(0));
    }

    public static ByteBuffer bye(String reason) {
        return encode(Kind.BYE, new Encoder().str16(reason, REASON).done());
    }

    /** The nonce of a PING or PONG. */
    public long nonce() throws ProtocolException {
        Cursor cursor = new Cursor(body);
        long nonce = cursor.u64("nonce");
        cursor.end("nonce");
        return nonce;
    }

    /** The reason of a BYE. */
    public String reason() throws ProtocolException {
        Cursor cursor = new Cursor(body);
        int size = cursor.u16("bye reason");
        return StandardCharsets.UTF_8.decode(cursor.take(size, "bye reason")).toString(); // for people: bad bytes may be replaced
    }
}
