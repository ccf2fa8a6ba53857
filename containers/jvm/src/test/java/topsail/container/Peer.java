package topsail.container;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import topsail.rpc.Assembler;
import topsail.rpc.Cursor;
import topsail.rpc.Encoder;
import topsail.rpc.Frame;
import topsail.rpc.Hello;
import topsail.rpc.Kind;
import topsail.rpc.Payload;
import topsail.rpc.Predict;
import topsail.rpc.Replied;
import topsail.rpc.Value;

/** The sidecar's end of a connection. Whatever it waits for has to come within 10 s. */
public final class Peer implements AutoCloseable {
    private static final int PATIENCE = 10_000; // milliseconds

    /** Where containers dial. */
    public static final class Listener implements AutoCloseable {
        private final ServerSocket socket;

        public Listener() throws IOException {
            socket = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
            socket.setSoTimeout(PATIENCE);
        }

        public String address() {
            return "127.0.0.1:" + socket.getLocalPort();
        }

        public Peer accept() throws IOException {
            return new Peer(socket.accept());
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    private final Socket socket;
    private final Assembler assembler = new Assembler();

    private Peer(Socket socket) throws IOException {
        this.socket = socket;
        socket.setSoTimeout(PATIENCE);
    }

    /** The next frame, or null when the container has closed. */
    public Frame next() throws IOException {
        Frame frame;
        while ((frame = assembler.next()) == null) {
            ByteBuffer room = assembler.room();
            int read = socket.getInputStream().read(room.array(), room.position(), room.remaining());
            if (read < 0) {
                return null;
            }
            room.position(room.position() + read);
        }
        return frame;
    }

    /** The next frame, which must be of this kind. A PING, as it comes when a model takes long to load, is answered. */
    public Frame next(int kind) throws IOException {
        Frame frame = next();
        while (frame != null && frame.kind() == Kind.PING && kind != Kind.PING) {
            send(Frame.nonce(Kind.PONG, frame.nonce()));
            frame = next();
        }
        assertNotNull(frame, "the container closed the connection");
        assertEquals(kind, frame.kind(), frame.kind() == Kind.BYE ? frame.reason() : "");
        return frame;
    }

    public void send(ByteBuffer frames) throws IOException {
        socket.getOutputStream().write(frames.array(), frames.position(), frames.remaining());
    }

    public Hello greet() throws IOException {
        Hello theirs = Hello.decode(next(Kind.HELLO).body());
        send(new Hello(0, Hello.SIDECAR, 3, Frame.MAX, "sidecar", "", "").encode());
        return theirs;
    }

    /** The state of the model in the next frame, an ANNOUNCE. */
    public int state() throws IOException {
        Cursor from = new Cursor(next(Kind.ANNOUNCE).body());
        assertEquals(1, from.u32("count"));
        Cursor entry = from.part("entry");
        assertEquals(Session.MODEL_ID, entry.u32("id"));
        return entry.u8("state");
    }

    /** Greets, and waits for the model to be ready. */
    public Peer ready() throws IOException {
        greet();
        while (state() != 2) {
            // loading
        }
        return this;
    }

    public void ask(long batch, long left, Value... inputs) throws IOException {
        ask(batch, Session.MODEL_ID, left, inputs);
    }

    public void ask(long batch, int model, long left, Value... inputs) throws IOException {
        ask(batch, model, left, Arrays.stream(inputs).map(List::of).toList());
    }

    /** Inputs of any number of values each. */
    public void ask(long batch, List<List<Value>> inputs) throws IOException {
        ask(batch, Session.MODEL_ID, Predict.NO_DEADLINE, inputs);
    }

    private void ask(long batch, int model, long left, List<List<Value>> inputs) throws IOException {
        Encoder to = new Encoder().u64(batch).u32(model).u32(inputs.size());
        for (List<Value> input : inputs) {
            int mark = to.begin();
            Payload.encode(to.u32(left), input);
            to.end(mark);
        }
        send(Frame.encode(Kind.PREDICT, to.done()));
    }

    public void ask(long batch, Value... inputs) throws IOException {
        ask(batch, Predict.NO_DEADLINE, inputs);
    }

    /** The answers in the next frame, a REPLY to this batch. */
    public List<Replied> answers(long batch) throws IOException {
        Frame frame = next(Kind.REPLY);
        assertEquals(batch, new Cursor(frame.body()).u64("batch"));
        return Replied.decode(frame);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
