package topsail.container;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import topsail.rpc.Assembler;
import topsail.rpc.Frame;
import topsail.rpc.Hello;
import topsail.rpc.Kind;
import topsail.rpc.ProtocolException;

/**
 * One connection to a sidecar, from HELLO to BYE. One thread receives; any thread may send. The channel does not block, so that
 * every wait has a deadline.
 */
final class Connection implements AutoCloseable {
    private static final long TIMEOUT = TimeUnit.SECONDS.toNanos(5); // for dialling, for the HELLO, for a send
    private static final long LINGER = TimeUnit.MILLISECONDS.toNanos(200); // for the sidecar to read a BYE

    /** Bytes of a body that containers accept here, which the HELLO has to say. */
    static final int ACCEPTED = Frame.accepted(Runtime.getRuntime().maxMemory());

    private final SocketChannel channel;
    private final Selector readable;
    private final Selector writable; // used with the lock
    private final Assembler assembler = new Assembler(ACCEPTED);
    private final ReentrantLock sending = new ReentrantLock(); // held for whole frames
    private volatile boolean broken;
    private int maxFrame; // what the sidecar accepts
    private boolean heard; // something has arrived by the last receive

    private Connection() throws IOException {
        channel = SocketChannel.open();
        channel.configureBlocking(false);
        readable = Selector.open();
        writable = Selector.open();
    }

    /** Makes the HELLO when the connection stands. */
    interface Greeting {
        Hello hello() throws IOException;
    }

    /** Dials and shakes hands. */
    static Connection open(InetSocketAddress address, Greeting mine) throws IOException {
        if (address.isUnresolved()) {
            throw new IOException("the host " + address.getHostString() + " is not known");
        }
        Connection connection = new Connection();
        try {
            connection.dial(address);
            connection.shakeHands(mine.hello());
            return connection;
        } catch (IOException | RuntimeException e) {
            connection.close(e instanceof ProtocolException ? e.getMessage() : "");
            throw e;
        }
    }

    private void dial(InetSocketAddress address) throws IOException {
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        SelectionKey key = channel.register(writable, 0);
        if (!channel.connect(address)) {
            key.interestOps(SelectionKey.OP_CONNECT);
            long until = System.nanoTime() + TIMEOUT;
            do {
                select(writable, until, "no connection within 5 s");
            } while (!channel.finishConnect());
        }
        key.interestOps(SelectionKey.OP_WRITE);
        channel.register(readable, SelectionKey.OP_READ);
    }

    private void shakeHands(Hello mine) throws IOException {
        if (!send(mine.encode())) {
            throw new EOFException("the sidecar closed the connection");
        }
        long until = System.nanoTime() + TIMEOUT;
        Frame first;
        while ((first = receive(until)) == null) {
            if (System.nanoTime() - until >= 0) {
                throw new SocketTimeoutException("the sidecar did not say HELLO");
            }
        }
        if (first.kind() == Kind.BYE) {
            throw new IOException("the sidecar refused this container: " + first.reason());
        }
        if (first.kind() != Kind.HELLO) {
            throw new ProtocolException("frame kind", 4, first.kind() + " came before HELLO");
        }
        Hello theirs = Hello.decode(first.body());
        if (theirs.role() != Hello.SIDECAR) {
            throw new ProtocolException("hello role", 5, theirs.role() + " is not that of a sidecar");
        }
        maxFrame = theirs.maxFrame();
    }

    int maxFrame() {
        return maxFrame;
    }

    boolean broken() {
        return broken;
    }

    /** Whether something has arrived by the last receive. */
    boolean heard() {
        return heard;
    }

    /** The next frame, or null if none is complete when something has arrived or the time (System.nanoTime) has come. */
    Frame receive(long until) throws IOException {
        Frame frame = assembler.next();
        heard = frame != null;
        if (heard) {
            return frame;
        }
        if (broken) {
            throw new EOFException("the connection is broken");
        }
        readable.select(millis(until));
        readable.selectedKeys().clear();
        int read = channel.read(assembler.room());
        if (read < 0) {
            throw new EOFException("the sidecar closed the connection");
        }
        heard = read > 0;
        return assembler.next();
    }

    /** Sends whole frames, or breaks the connection and returns false. */
    boolean send(ByteBuffer frames) {
        sending.lock(); // its holder has a deadline
        try {
            long until = System.nanoTime() + TIMEOUT;
            while (!broken && frames.hasRemaining()) {
                if (channel.write(frames) > 0) {
                    until = System.nanoTime() + TIMEOUT; // a large reply may take its time as long as it moves
                } else {
                    select(writable, until, "the sidecar does not read");
                }
            }
        } catch (IOException e) {
            breakOff();
        } finally {
            sending.unlock();
        }
        return !broken;
    }

    /** Says BYE and that nothing follows. Reading goes on until the sidecar closes. */
    void sayBye(String reason) {
        send(Frame.bye(reason));
        try {
            channel.shutdownOutput();
        } catch (IOException e) {
            breakOff();
        }
    }

    /** Ends the connection for both directions, and wakes those who wait for it. */
    private synchronized void breakOff() {
        if (!broken) {
            broken = true;
            readable.wakeup();
            writable.wakeup();
        }
    }

    /** For the receiving thread. With a reason it says BYE first, and gives the sidecar a moment to read it. */
    void close(String reason) {
        if (!reason.isEmpty() && channel.isConnected() && !broken) {
            sayBye(reason);
            readOut();
        }
        close();
    }

    @Override
    public void close() {
        breakOff();
        sending.lock(); // a send in another thread ends first
        try {
            channel.close();
            readable.close();
            writable.close();
        } catch (IOException e) {
            return; // it is over either way
        } finally {
            sending.unlock();
        }
    }

    /** Closing with unread bytes would reset the connection, and lose the BYE. */
    private void readOut() {
        long until = System.nanoTime() + LINGER;
        ByteBuffer sink = ByteBuffer.allocate(4096);
        try {
            while (until - System.nanoTime() > 0 && channel.read(sink.clear()) >= 0) {
                readable.select(millis(until));
                readable.selectedKeys().clear();
            }
        } catch (IOException e) {
            return; // the sidecar was faster
        }
    }

    private static void select(Selector selector, long until, String problem) throws IOException {
        if (until - System.nanoTime() <= 0) {
            throw new SocketTimeoutException(problem);
        }
        selector.select(millis(until));
        selector.selectedKeys().clear();
    }

    /** Milliseconds until then, at least 1: Selector.select takes 0 for ever. */
    private static long millis(long until) {
        return Math.max(1, TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime()));
    }
}
