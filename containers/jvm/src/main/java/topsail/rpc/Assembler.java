package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Cuts a stream of bytes into frames. It holds what has arrived, and never memory for what was only promised. */
public final class Assembler {
    private static final int USUAL = 64 << 10; // bytes

    private final int maxFrame;
    private ByteBuffer data = empty(); // ready to be written to

    public Assembler() {
        this(Frame.MAX);
    }

    /** For a side that said in its HELLO that it accepts bodies of so many bytes. */
    public Assembler(int maxFrame) {
        this.maxFrame = maxFrame;
    }

    /** Where the bytes that arrive next are to be put. There is room for at least one. */
    public ByteBuffer room() {
        if (!data.hasRemaining()) { // full of what has arrived, so it may double
            int most = Frame.HEADER + maxFrame;
            ByteBuffer larger = ByteBuffer.allocate(Math.min(2 * data.capacity(), most)).order(ByteOrder.LITTLE_ENDIAN);
            data = larger.put(data.flip());
        }
        return data;
    }

    /** The next frame if all of it has arrived, else null. It is called until it returns null. */
    public Frame next() throws ProtocolException {
        int arrived = data.position();
        if (arrived < Frame.HEADER) {
            return null;
        }
        long size = data.getInt(0) & 0xFFFFFFFFL;
        if (size > maxFrame) {
            throw new ProtocolException("frame size", 0, size + " bytes are more than the " + maxFrame + " allowed");
        }
        int end = Frame.HEADER + (int) size;
        if (arrived < end) {
            return null;
        }
        Frame frame = new Frame(data.get(4) & 0xFF, data.get(5) & 0xFF, copy(Frame.HEADER, (int) size));
        if ((frame.flags() & Frame.COMPRESSED) != 0) {
            throw new ProtocolException("frame flags", 5, "the body is compressed, which was not agreed on");
        }
        drop(end);
        return frame;
    }

    private ByteBuffer copy(int from, int size) {
        byte[] bytes = new byte[size];
        data.get(from, bytes);
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Forgets the first bytes. The memory of a large frame is not kept for the small ones that follow. */
    private void drop(int end) {
        data.flip().position(end);
        if (data.capacity() > USUAL && data.remaining() < USUAL) {
            data = empty().put(data);
        } else {
            data.compact();
        }
    }

    private static ByteBuffer empty() {
        return ByteBuffer.allocate(USUAL).order(ByteOrder.LITTLE_ENDIAN);
    }
}
