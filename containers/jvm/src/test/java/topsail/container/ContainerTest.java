package topsail.container;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import topsail.rpc.DType;
import topsail.rpc.Encoder;
import topsail.rpc.Frame;
import topsail.rpc.Hello;
import topsail.rpc.Kind;
import topsail.rpc.Replied;
import topsail.rpc.Value;

/** The life of a container, with the sidecar played by the test. */
@Timeout(30)
class ContainerTest {
    private static final Value ONE = Value.number("", 1);

    private Peer.Listener listener;
    private final List<Container> containers = new ArrayList<>();

    @BeforeEach
    void listen() throws IOException {
        listener = new Peer.Listener();
    }

    @AfterEach
    void stop() throws Exception {
        listener.close();
        for (Container container : containers) {
            container.stop();
        }
    }

    /** Answers each number with the number and one more. */
    private static List<Outcome> increment(List<Value> inputs) {
        List<Outcome> outcomes = new ArrayList<>();
        for (Value input : inputs) {
            outcomes.add(new Outcome.Output(Value.number("", input.number(0) + 1), 0.5, List.of(Value.number("was", input.number(0)))));
        }
        return outcomes;
    }

    private Running run(ModelSource source, String... settings) throws PermanentFailure {
        List<String> all = new ArrayList<>(List.of("SIDECAR", listener.address(), "REPLICA", "m/0"));
        all.addAll(List.of(settings));
        return run(source, SettingsTest.with(all.toArray(String[]::new)));
    }

    private Running run(ModelSource source, Settings settings) {
        Container container = new Container(settings, source, line -> {});
        containers.add(container);
        CompletableFuture<Void> end = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                container.run();
                end.complete(null);
            } catch (Throwable e) {
                end.completeExceptionally(e);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return new Running(container, end);
    }

    private record Running(Container container, CompletableFuture<Void> end) {
        /** What run has thrown, or null when it returned. */
        Throwable ended() throws Exception {
            try {
                end.get(10, TimeUnit.SECONDS);
                return null;
            } catch (ExecutionException e) {
                return e.getCause();
            }
        }
    }

    @Test
    void itLoadsServesAndStops() throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        Running running = run(settings -> {
            seen.await();
            return ContainerTest::increment;
        }, "TOKEN", "secret");
        try (Peer peer = listener.accept()) {
            Hello hello = peer.greet();
            assertEquals("m/0", hello.name());
            assertEquals("secret", hello.token());
            assertEquals(Hello.CONTAINER, hello.role());
            assertEquals(Hello.TENSORS, hello.features());
            assertEquals(1, peer.state(), "loading");
            seen.countDown();
            assertEquals(2, peer.state(), "ready");

            peer.ask(7, ONE, Value.number("", 41));
            List<Replied> answers = peer.answers(7);
            assertEquals(2.0, answers.get(0).values().get(0).number(0));
            assertEquals(42.0, answers.get(1).values().get(0).number(0));
            assertEquals(0.5, answers.get(1).confidence());
            assertEquals("was", answers.get(1).qualifiers().get(0).name());

            assertTrue(running.container.stop());
            peer.next(Kind.DRAIN);
            assertEquals("stopped", peer.next(Kind.BYE).reason());
            assertNull(peer.next());
        }
        assertNull(running.ended());
    }

    @Test
    void pingsAreAnsweredWhileTheModelComputes() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        run(settings -> inputs -> {
            go.await();
            return increment(inputs);
        });
        try (Peer peer = listener.accept().ready()) {
            peer.ask(1, ONE);
            peer.send(Frame.nonce(Kind.PING, 99));
            assertEquals(99, peer.next(Kind.PONG).nonce());
            go.countDown();
            assertEquals(2.0, peer.answers(1).get(0).values().get(0).number(0));
        }
    }

    @Test
    void whatTheModelCannotTakeFailsAlone() throws Exception {
        run(settings -> ContainerTest::increment, "INPUT_TYPE", "doubles", "INPUT_LENGTH", "1");
        try (Peer peer = listener.accept().ready()) {
            Value two = new Value("", DType.FLOAT64, List.of(2), ByteBuffer.allocate(16));
            peer.ask(1, ONE, two, Value.text("", "x"), ONE);
            List<Replied> answers = peer.answers(1);
            assertEquals(List.of(2, 2, 0, 0), statuses(answers), "failures come first");
            assertEquals("the model takes inputs of length 1, and got one of length 2", answers.get(0).message());
            assertEquals("the model takes doubles, and got a value of type string", answers.get(1).message());
            assertEquals(List.of(1, 2, 0, 3), answers.stream().map(Replied::index).toList());
        }
    }

    private static final String SIGNATURE = """
        {"inputs": [{"name": "a", "type": "float16", "shape": [-1]}, {"name": "b", "type": "int8"}],
         "outputs": [{"name": "sum", "type": "float32"}, {"name": "count", "type": "uint64"}]}""";

    @Test
    void aModelGetsAndGivesTensorsByName() throws Exception {
        TensorModel model = queries -> queries.stream().map(query -> {
            Value a = query.get("a");
            double sum = query.get("b").integer(0);
            for (int i = 0; i < a.size(); i++) {
                sum += a.number(i);
            }
            DType type = sum < 0 ? DType.FLOAT64 : DType.FLOAT32;
            return (Outcome) new Outcome.Output(List.of(Value.integers("count", DType.UINT64, List.of(), a.size()),
                    Value.numbers("sum", type, List.of(), sum)), 0.5, List.of());
        }).toList();
        run(settings -> model, "INPUT_TYPE", "tensors", "SIGNATURE", SIGNATURE);
        try (Peer peer = listener.accept().ready()) {
            Value a = Value.numbers("a", DType.FLOAT16, List.of(2), 0.5, 1);
            peer.ask(1, List.of(List.of(Value.integers("b", DType.INT8, List.of(), 3), a), List.of(a), List.of(Value.integers("b", DType.INT8, List.of(), -9), a)));
            List<Replied> answers = peer.answers(1);
            assertEquals("this model takes 'a', 'b', and got 'a'", answers.get(0).message());
            assertEquals(List.of("sum", "count"), answers.get(1).values().stream().map(Value::name).toList());
            assertEquals(4.5, answers.get(1).values().get(0).number(0));
            assertEquals(2, answers.get(1).values().get(1).integer(0));
            assertEquals(0.5, answers.get(1).confidence());
            assertEquals("IllegalArgumentException: output 'sum' must be float32, and is float64", answers.get(2).message());
            assertEquals(List.of(2, 0, 1), statuses(answers));
        }
    }

    @Test
    void aModelOfOneValueServesASignatureOfOne() throws Exception {
        run(settings -> ContainerTest::increment, "INPUT_TYPE", "tensors",
                "SIGNATURE", "{\"inputs\": [{\"name\": \"x\", \"type\": \"uint16\"}], \"outputs\": [{\"name\": \"y\", \"type\": \"float64\"}]}");
        try (Peer peer = listener.accept().ready()) {
            peer.ask(1, Value.integers("x", DType.UINT16, List.of(), 65535));
            Value y = peer.answers(1).get(0).values().get(0);
            assertEquals("y 65536.0", y.name() + " " + y.number(0));
        }
    }

    @Test
    void aModelOfOneValueIsNotReadyForMore() throws Exception {
        Throwable e = run(settings -> ContainerTest::increment, "SIGNATURE", SIGNATURE).ended();
        assertEquals("the signature has the inputs 'a', 'b', and the model takes one value: make it a TensorModel", e.getMessage());
    }

    @Test
    void inputsWhoseTimeIsUpAreNotRun() throws Exception {
        List<Integer> sizes = new ArrayList<>();
        run(settings -> inputs -> {
            sizes.add(inputs.size());
            return increment(inputs);
        });
        try (Peer peer = listener.accept().ready()) {
            peer.ask(1, 0, ONE, ONE);
            assertEquals(List.of(5, 5), statuses(peer.answers(1)));
            peer.ask(2, 10_000_000, ONE);
            assertEquals(List.of(0), statuses(peer.answers(2)));
            assertEquals(List.of(1), sizes);
        }
    }

    @Test
    void aModelThatFailsServesOn() throws Exception {
        List<Model> calls = new ArrayList<>(List.of(
                inputs -> {
                    throw new IllegalArgumentException("no idea");
                },
                inputs -> List.of(),
                inputs -> recurse(inputs),
                inputs -> java.util.Collections.singletonList(null),
                ContainerTest::increment));
        run(settings -> inputs -> calls.remove(0).predict(inputs));
        try (Peer peer = listener.accept().ready()) {
            String[] messages = {
                "IllegalArgumentException: no idea", "IllegalStateException: predict returned 0 outcomes for 1 inputs",
                "StackOverflowError", "IllegalStateException: the model gave no outcome", ""
            };
            for (int i = 0; i < messages.length; i++) {
                peer.ask(i, ONE);
                Replied answer = peer.answers(i).get(0);
                assertEquals(messages[i], answer.message());
                assertEquals(i < 4 ? 1 : 0, answer.status());
            }
        }
    }

    private static List<Outcome> recurse(List<Value> inputs) {
        return new ArrayList<>(recurse(inputs));
    }

    @Test
    void onlyItsOwnModelIsAsked() throws Exception {
        run(settings -> ContainerTest::increment);
        try (Peer peer = listener.accept().ready()) {
            peer.ask(1, 2, 1000, ONE);
            Replied answer = peer.answers(1).get(0);
            assertEquals(7, answer.status());
            assertEquals("this container announced no model 2", answer.message());
        }
    }

    @Test
    void framesThatAreNotForItAreSkipped() throws Exception {
        run(settings -> ContainerTest::increment);
        try (Peer peer = listener.accept().ready()) {
            for (int kind : new int[] {Kind.PONG, Kind.CANCEL, Kind.FEEDBACK, Kind.OPTIONAL, 255}) {
                peer.send(Frame.encode(kind, ByteBuffer.wrap(new byte[] {1, 2, 3})));
            }
            peer.ask(1, ONE);
            assertEquals(List.of(0), statuses(peer.answers(1)));
        }
    }

    @Test
    void aLostConnectionIsMadeAnew(@TempDir Path folder) throws Exception {
        Path token = folder.resolve("token");
        Files.writeString(token, "one");
        CountDownLatch go = new CountDownLatch(1);
        run(settings -> inputs -> {
            go.await();
            return increment(inputs);
        }, "TOKEN_FILE", token.toString());
        try (Peer peer = listener.accept().ready()) {
            peer.ask(1, ONE);
        }
        Files.writeString(token, "two");
        try (Peer peer = listener.accept()) {
            assertEquals("two", peer.greet().token());
            assertEquals(2, peer.state(), "ready at once");
            go.countDown();
            peer.ask(1, ONE);
            assertEquals(List.of(0), statuses(peer.answers(1)), "one reply: that of the lost connection is dropped");
            peer.send(Frame.bye("restarting"));
        }
        listener.accept().ready().close();
    }

    @Test
    void brokenBytesAreAnsweredByWhatIsWrong() throws Exception {
        run(settings -> ContainerTest::increment);
        try (Peer peer = listener.accept().ready()) {
            peer.send(Frame.encode(Kind.PREDICT, new Encoder().u64(1).u32(1).u32(5).done()));
            assertEquals("predict count at byte 16: 5 entries are promised and 0 bytes are left", peer.next(Kind.BYE).reason());
        }
        try (Peer peer = listener.accept().ready()) {
            peer.send(Frame.encode(Kind.REPLY, ByteBuffer.allocate(0)));
            assertEquals("frame kind at byte 4: 4 is not for a container", peer.next(Kind.BYE).reason());
        }
        try (Peer peer = listener.accept()) {
            peer.next(Kind.HELLO);
            peer.send(new Hello(0, Hello.GATEWAY, 0, Frame.MAX, "", "", "").encode());
            assertEquals("hello role at byte 5: 1 is not that of a sidecar", peer.next(Kind.BYE).reason());
        }
        listener.accept().ready().close();
    }

    @Test
    void tooManyBatchesAtOnceAreRefused() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        run(settings -> inputs -> {
            go.await();
            return increment(inputs);
        });
        try (Peer peer = listener.accept().ready()) {
            for (int i = 0; i < Inbox.MOST + 2; i++) {
                peer.ask(i, ONE);
            }
            assertEquals("predict batch at byte 0: too many batches were sent at once", peer.next(Kind.BYE).reason());
            go.countDown();
        }
    }

    @Test
    void whatWasTakenIsAnsweredBeforeTheEnd() throws Exception {
        CountDownLatch computing = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        Running running = run(settings -> inputs -> {
            computing.countDown();
            go.await();
            return increment(inputs);
        });
        try (Peer peer = listener.accept().ready()) {
            peer.ask(1, ONE);
            peer.ask(2, ONE);
            peer.send(Frame.nonce(Kind.PING, 1));
            peer.next(Kind.PONG); // so both are in
            computing.await();
            running.container.stop();
            peer.next(Kind.DRAIN);
            peer.ask(3, ONE);
            Replied late = peer.answers(3).get(0);
            assertEquals(6, late.status());
            assertEquals("this container is stopping", late.message());
            go.countDown();
            assertEquals(List.of(0), statuses(peer.answers(1)));
            assertEquals(List.of(0), statuses(peer.answers(2)));
            assertEquals("stopped", peer.next(Kind.BYE).reason());
        }
        assertNull(running.ended());
    }

    @Test
    void theSidecarHearsWhyAModelCannotBeLoaded() throws Exception {
        Running running = run(settings -> {
            throw new PermanentFailure("there is no file model.pmml");
        });
        try (Peer peer = listener.accept()) {
            peer.greet();
            assertEquals(1, peer.state());
            peer.next(Kind.DRAIN);
            assertEquals("PermanentFailure: there is no file model.pmml", peer.next(Kind.BYE).reason());
        }
        assertInstanceOf(PermanentFailure.class, running.ended());
    }

    @Test
    void aModelThatIsBeingLoadedCannotHoldTheEndUp() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        Running running = run(settings -> {
            go.await();
            return ContainerTest::increment;
        });
        try (Peer peer = listener.accept()) {
            peer.greet();
            assertEquals(1, peer.state());
            assertFalse(running.container.stop());
            peer.next(Kind.DRAIN);
            assertEquals("stopped", peer.next(Kind.BYE).reason());
        }
        go.countDown();
        assertNull(running.ended());
    }

    @Test
    void aSidecarThatStaysAwayEndsIt() throws Exception {
        int port;
        try (ServerSocket closed = new ServerSocket(0)) {
            port = closed.getLocalPort();
        }
        Settings s = SettingsTest.with("SIDECAR", "127.0.0.1:" + port);
        Settings hasty = new Settings(s.host(), s.port(), s.model(), s.version(), s.inputType(), 0, Signature.NONE, "", "", "", Duration.ZERO);
        Throwable e = run(settings -> ContainerTest::increment, hasty).ended();
        assertInstanceOf(SidecarGone.class, e);
        assertTrue(e.getMessage().matches("no connection to the sidecar at 127.0.0.1:[0-9]+ for 0 s \\(.*\\): is it still running\\?"), e.getMessage());
    }

    @Test
    void aRefusalIsWhyThereIsNoConnection() throws Exception {
        Settings s = SettingsTest.with("SIDECAR", listener.address());
        Settings hasty = new Settings(s.host(), s.port(), s.model(), s.version(), s.inputType(), 0, Signature.NONE, "", "", "", Duration.ZERO);
        Running running = run(settings -> ContainerTest::increment, hasty);
        try (Peer peer = listener.accept()) {
            peer.next(Kind.HELLO);
            peer.send(Frame.bye("wrong token"));
        }
        assertTrue(running.ended().getMessage().contains("(the sidecar refused this container: wrong token)"));
    }

    @Test
    void silenceIsBrokenByPingsAndEndsTheConnection() throws Exception {
        CompletableFuture<IOException> end = CompletableFuture.supplyAsync(() -> {
            String[] address = listener.address().split(":");
            try (Connection connection = Connection.open(new InetSocketAddress(address[0], Integer.parseInt(address[1])),
                    () -> Hello.ofContainer(Connection.ACCEPTED, "", "", ""))) {
                return new Session(connection, new Inbox(), TimeUnit.MILLISECONDS.toNanos(20)).listen();
            } catch (IOException e) {
                return e;
            }
        });
        try (Peer peer = listener.accept()) {
            peer.greet();
            for (int i = 1; i <= 4; i++) {
                assertEquals(i, peer.next(Kind.PING).nonce());
            }
            assertNull(peer.next());
        }
        assertEquals("nothing was heard from the sidecar for 100 ms", end.get().getMessage());
    }

    private static List<Integer> statuses(List<Replied> answers) {
        return answers.stream().map(Replied::status).toList();
    }
}
