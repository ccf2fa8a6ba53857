package topsail.container;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import topsail.rpc.InputType;

class SettingsTest {
    private static final Map<String, String> LEAST =
            Map.of("TOPSAIL_SIDECAR", "127.0.0.1:4000", "TOPSAIL_MODEL", "iris", "TOPSAIL_VERSION", "2");

    /** The least environment with some variables changed. */
    static Settings with(String... changes) throws PermanentFailure {
        Map<String, String> environment = new HashMap<>(LEAST);
        for (int i = 0; i < changes.length; i += 2) {
            environment.put("TOPSAIL_" + changes[i], changes[i + 1]);
        }
        return Settings.read(environment);
    }

    @Test
    void theEnvironmentSaysAll() throws Exception {
        Settings s = with("SIDECAR", "[::1]:65535", "INPUT_TYPE", "integers", "INPUT_LENGTH", "4", "TOKEN", "secret", "REPLICA", "iris/0");
        assertEquals("::1", s.host());
        assertEquals(65535, s.port());
        assertEquals(InputType.INTS, s.inputType());
        assertEquals(4, s.inputLength());
        assertEquals("secret", s.currentToken());
        assertEquals("iris/0", s.replica());
        assertFalse(s.toString().contains("secret"));
    }

    @Test
    void theLeastIsEnough() throws Exception {
        Settings s = with("SIDECAR", ":80", "INPUT_TYPE", "", "INPUT_LENGTH", "");
        assertEquals("127.0.0.1", s.host());
        assertEquals(InputType.ANY, s.inputType());
        assertEquals(0, s.inputLength());
        assertEquals("", s.currentToken());
    }

    @Test
    void whatMakesNoSenseIsNamed() {
        refused("there is no sidecar to connect to", "SIDECAR", "");
        refused("TOPSAIL_SIDECAR=localhost is not host:port", "SIDECAR", "localhost");
        refused("is not host:port", "SIDECAR", "localhost:65536");
        refused("is not host:port", "SIDECAR", "localhost:+1");
        refused("TOPSAIL_MODEL is not set", "MODEL", "");
        refused("TOPSAIL_VERSION is not set", "VERSION", "");
        refused("TOPSAIL_INPUT_TYPE=chat is unknown: use bytes,", "INPUT_TYPE", "chat");
        refused("TOPSAIL_INPUT_LENGTH=-1 is not a number of elements", "INPUT_LENGTH", "-1");
    }

    private static void refused(String message, String name, String value) {
        PermanentFailure e = assertThrows(PermanentFailure.class, () -> with(name, value));
        assertTrue(e.getMessage().contains(message), e.getMessage());
    }

    @Test
    void theTokenFileIsReadEachTime(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("token");
        Settings s = with("TOKEN_FILE", file.toString());
        assertThrows(IOException.class, s::currentToken);
        Files.writeString(file, " \n");
        assertTrue(assertThrows(IOException.class, s::currentToken).getMessage().endsWith("is empty"));
        Files.writeString(file, "one\n");
        assertEquals("one", s.currentToken());
        Files.writeString(file, "two");
        assertEquals("two", s.currentToken());
    }
}
