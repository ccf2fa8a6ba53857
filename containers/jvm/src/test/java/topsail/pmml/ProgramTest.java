package topsail.pmml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import topsail.container.Peer;
import topsail.rpc.Kind;
import topsail.rpc.Value;

/** The program as Topsail starts it: a process of its own. */
@Timeout(60)
class ProgramTest {
    @TempDir
    Path folder;

    private Process process;

    @AfterEach
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    private void start(Map<String, String> environment, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m",
                "-cp", System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")), "topsail.pmml.Main"));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(folder.resolve("log").toFile());
        builder.environment().keySet().removeIf(name -> name.startsWith("TOPSAIL_"));
        builder.environment().putAll(environment);
        process = builder.start();
    }

    private static Map<String, String> sidecar(String address) {
        return Map.of("TOPSAIL_SIDECAR", address, "TOPSAIL_MODEL", "iris", "TOPSAIL_VERSION", "1", "TOPSAIL_INPUT_TYPE", "doubles");
    }

    /** The exit status, and what was said. */
    private String ended() throws Exception {
        assertTrue(process.waitFor(20, TimeUnit.SECONDS), "it goes on");
        return process.exitValue() + " " + Files.readString(folder.resolve("log"), StandardCharsets.UTF_8).strip();
    }

    @Test
    void aSignalEndsItInOrder() throws Exception {
        try (Peer.Listener listener = new Peer.Listener()) {
            start(sidecar(listener.address()), Documents.EXAMPLES.resolve("iris.pmml").toString());
            try (Peer peer = listener.accept().ready()) {
                peer.ask(1, PmmlModelTest.doubles(5.1, 3.5, 1.4, 0.2));
                assertEquals("setosa", peer.answers(1).get(0).values().get(0).text());
                process.destroy(); // SIGTERM
                peer.next(Kind.DRAIN);
                assertEquals("stopped", peer.next(Kind.BYE).reason());
            }
            assertEquals("0", ended().substring(0, 1));
        }
    }

    @Test
    void aModelThatIsRefusedEndsItForGood() throws Exception {
        try (Peer.Listener listener = new Peer.Listener()) {
            start(sidecar(listener.address()), "none.pmml");
            try (Peer peer = listener.accept()) {
                peer.greet();
                assertEquals(1, peer.state());
                peer.next(Kind.DRAIN);
                assertEquals("PermanentFailure: there is no file none.pmml", peer.next(Kind.BYE).reason());
            }
            String end = ended();
            assertTrue(end.startsWith("78 ") && end.endsWith("topsail: there is no file none.pmml"), end);
        }
    }

    @Test
    void aModelThatNeedsMoreMemoryIsTold() throws Exception {
        try (Peer.Listener listener = new Peer.Listener()) {
            Path large = folder.resolve("large.pmml");
            Files.writeString(large, "<PMML version='4.4'>" + " ".repeat(60 << 20) + "</PMML>");
            start(sidecar(listener.address()), large.toString());
            try (Peer peer = listener.accept()) {
                peer.greet();
                assertEquals(1, peer.state());
            }
            String end = ended();
            assertTrue(end.startsWith("1 ") && end.contains("needs more memory than Java may take here"), end);
        }
    }

    @Test
    void framesAreNoLargerThanItsMemoryAllows() throws Exception {
        try (Peer.Listener listener = new Peer.Listener()) {
            start(sidecar(listener.address()), Documents.EXAMPLES.resolve("iris.pmml").toString());
            try (Peer peer = listener.accept()) {
                int most = peer.greet().maxFrame();
                assertTrue(most > 1 << 20 && most <= 4 << 20, most + " bytes of 64 MiB");
                while (peer.state() != 2) {
                    // loading
                }
                Value large = PmmlModelTest.doubles(new double[most / 8 - 6]); // all but the frame's other bytes
                for (int batch = 0; batch < 4; batch++) {
                    peer.ask(batch, large);
                }
                for (int batch = 0; batch < 4; batch++) {
                    assertEquals("the model takes 4 numbers", peer.answers(batch).get(0).message().substring(0, 25));
                }
                peer.send(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putInt(most + 1).put((byte) Kind.PREDICT).rewind());
                String refused = "frame size at byte 0: %d bytes are more than the %d allowed".formatted(most + 1, most);
                assertEquals(refused, peer.next(Kind.BYE).reason());
            }
        }
    }

    @Test
    void withoutASidecarItSaysWhatItIs() throws Exception {
        start(Map.of(), "model.pmml");
        String end = ended();
        assertTrue(end.startsWith("78 topsail: TOPSAIL_SIDECAR is not set"), end);
    }

    @Test
    void withoutAModelItSaysHowItIsCalled() throws Exception {
        start(Map.of());
        assertTrue(ended().startsWith("64 usage: java -jar topsail-pmml.jar MODEL.pmml"));
    }
}
