package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes what a {@link Cursor} reads into memory that grows. */
public final class Encoder {
    private static final int LEAST = 256; // bytes

    private ByteBuffer data = ByteBuffer.allocate(LEAST).order(ByteOrder.LITTLE_ENDIAN);

    /** Bytes so far. */
    public int size() {
        return data.position();
    }

    public Encoder u8(int value) {
        room(1).put((byte) value);
        return this;
    }

    public Encoder u16(int value) {
        room(2).putShort((short) value);
        return this;
    }

    public Encoder u32(long value) {
        room(4).putInt((int) value);
        return this;
    }

    public Encoder u64(long value) {
        room(8).putLong(value);
        return this;
    }

    public Encoder f64(double value) {
        room(8).putDouble(value);
        return this;
    }

    public Encoder bytes(ByteBuffer value) {
        room(value.remaining()).put(value.duplicate());
        return this;
    }

    public Encoder bytes(byte[] value) {
        room(value.length).put(value);
        return this;
    }

    /** A text of at most 255 bytes with a u8 before it; what is longer is cut. */
    public Encoder str8(String text) {
        byte[] cut = cut(text, 0xFF);
        return u8(cut.length).bytes(cut);
    }

    /** A text of at most so many bytes with a u16 before it; what is longer is cut. */
    public Encoder str16(String text, int most) {
        byte[] cut = cut(text, Math.min(most, 0xFFFF));
        return u16(cut.length).bytes(cut);
    }

    public Encoder field(int tag, byte[] value) {
        return u8(tag).u32(value.length).bytes(value);
    }

    /** Leaves room for a u32 size, and returns the mark for {@link #end}. */
    public int begin() {
        u32(0);
        return size();
    }

    /** Fills in the size of all that was written since begin. */
    public Encoder end(int mark) {
        data.putInt(mark - 4, size() - mark);
        return this;
    }

    /** Writes over a u32 at this place. */
    Encoder u32At(int at, long value) {
        data.putInt(at, (int) value);
        return this;
    }

    /** Writes over a u8 at this place. */
    Encoder u8At(int at, int value) {
        data.put(at, (byte) value);
        return this;
    }

    /** A view of all that was written. */
    public ByteBuffer done() {
        return data.duplicate().order(ByteOrder.LITTLE_ENDIAN).flip();
    }

    private ByteBuffer room(int size) {
        if (size > data.remaining()) {
            int wanted = Math.addExact(size(), size);
            byte[] larger = Arrays.copyOf(data.array(), Math.max(wanted, Math.min(2 * data.capacity(), Integer.MAX_VALUE - 8)));
            data = ByteBuffer.wrap(larger).order(ByteOrder.LITTLE_ENDIAN).position(size());
        }
        return data;
    }

    /** At most {@code most} bytes of UTF-8 that end between two characters. What UTF-8 cannot say becomes "?". */
    static byte[] cut(String text, int most) {
        byte[] all = text.getBytes(StandardCharsets.UTF_8);
        if (all.length <= most) {
            return all;
        }
        int end = most;
        while ((all[end] & 0xC0) == 0x80) {
            end--;
        }
        return Arrays.copyOf(all, end);
    }
}
