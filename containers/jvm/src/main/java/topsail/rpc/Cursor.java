package topsail.rpc;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/** Walks over the body of a frame and checks every length before it uses it. What it hands out are views, not copies. */
public final class Cursor {
    private final ByteBuffer data;
    private final int start; // of data, within the body

    public Cursor(ByteBuffer body) {
        this(body, 0);
    }

    private Cursor(ByteBuffer data, int start) {
        this.data = data.slice().order(ByteOrder.LITTLE_ENDIAN);
        this.start = start;
    }

    /** Bytes that are still to be read. */
    public int left() {
        return data.remaining();
    }

    /** What to throw when the field that was read last, and ends here, is wrong. */
    public ProtocolException fail(String field, String problem) {
        return new ProtocolException(field, start + data.position(), problem);
    }

    public int u8(String field) throws ProtocolException {
        need(1, field);
        return data.get() & 0xFF;
    }

    public int u16(String field) throws ProtocolException {
        need(2, field);
        return data.getShort() & 0xFFFF;
    }

    public long u32(String field) throws ProtocolException {
        need(4, field);
        return data.getInt() & 0xFFFFFFFFL;
    }

    /** All 64 bits; those above 2^63 come out negative. */
    public long u64(String field) throws ProtocolException {
        need(8, field);
        return data.getLong();
    }

    public double f64(String field) throws ProtocolException {
        need(8, field);
        return data.getDouble();
    }

    public ByteBuffer take(long size, String field) throws ProtocolException {
        if (size > left()) {
            throw fail(field, size + " bytes are promised and " + left() + " are left");
        }
        ByteBuffer view = data.slice(data.position(), (int) size).order(ByteOrder.LITTLE_ENDIAN);
        data.position(data.position() + (int) size);
        return view;
    }

    /** A text of so many bytes. */
    public String text(int size, String field) throws ProtocolException {
        ByteBuffer bytes = take(size, field);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(bytes).toString();
        } catch (CharacterCodingException e) {
            throw fail(field, "is not UTF-8");
        }
    }

    /** A text with a u16 before it. */
    public String str16(String field) throws ProtocolException {
        return text(u16(field), field);
    }

    /** An entry that begins with the u32 size of its rest, as a cursor over that rest. */
    public Cursor part(String field) throws ProtocolException {
        long size = u32(field);
        int at = start + data.position();
        return new Cursor(take(size, field), at);
    }

    /** The u32 count of things that take at least {@code each} bytes, so that a lie costs no memory. */
    public int count(String field, int each) throws ProtocolException {
        long count = u32(field);
        if (count * each > left()) {
            throw fail(field, count + " entries are promised and " + left() + " bytes are left");
        }
        return (int) count;
    }

    /** The fields up to the end, by their tags. Unknown tags are skipped. */
    public Map<Integer, ByteBuffer> fields(String where) throws ProtocolException {
        Map<Integer, ByteBuffer> found = new TreeMap<>();
        while (left() > 0) {
            int tag = u8(where + " field");
            found.put(tag, take(u32(where + " field"), where + " field " + tag));
        }
        return found;
    }

    /** Refuses bytes behind the end. */
    public void end(String field) throws ProtocolException {
        if (left() > 0) {
            throw fail(field, left() + " bytes follow the end");
        }
    }

    private void need(int size, String field) throws ProtocolException {
        if (size > left()) {
            throw fail(field, size + " bytes are needed and " + left() + " are left");
        }
    }
}
