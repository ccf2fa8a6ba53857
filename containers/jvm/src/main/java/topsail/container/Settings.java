package topsail.container;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import topsail.rpc.InputType;

/**
 * What a container has to know: where its sidecar is, and what it serves.
 *
 * @param inputLength in elements; 0 for any
 * @param signature the named inputs and outputs of the version; an empty one if it has none
 * @param token what the sidecar wants to see; it is secret, and stays out of toString
 * @param tokenFile holds the token, where that is empty
 * @param giveUp without a connection for so long the container ends with an error
 */
public record Settings(
        String host,
        int port,
        String model,
        String version,
        InputType inputType,
        int inputLength,
        Signature signature,
        String token,
        String tokenFile,
        String replica,
        Duration giveUp) {

    private static final Duration GIVE_UP = Duration.ofMinutes(1);

    private static final String NOT_STARTED =
            """
            TOPSAIL_SIDECAR is not set, so there is no sidecar to connect to.
            This program is a model container, and Topsail starts it: name it as the `command` of a [[model]] in topsail.toml.""";

    /** Reads the environment that Topsail gives a container. It throws PermanentFailure for what makes no sense. */
    public static Settings read(Map<String, String> environment) throws PermanentFailure {
        String sidecar = text(environment, "SIDECAR");
        if (sidecar.isEmpty()) {
            throw new PermanentFailure(NOT_STARTED);
        }
        int colon = sidecar.lastIndexOf(':');
        int port = colon < 0 ? 0 : number(sidecar.substring(colon + 1));
        if (port <= 0 || port > 65535) {
            throw new PermanentFailure("TOPSAIL_SIDECAR=" + sidecar + " is not host:port");
        }
        return new Settings(host(sidecar.substring(0, colon)), port, needed(environment, "MODEL"), needed(environment, "VERSION"),
                inputType(text(environment, "INPUT_TYPE")), inputLength(text(environment, "INPUT_LENGTH")),
                signature(text(environment, "SIGNATURE")), text(environment, "TOKEN"), text(environment, "TOKEN_FILE"), text(environment, "REPLICA"), GIVE_UP);
    }

    /** The token to show now; the file may come later than the container, and may change. */
    String currentToken() throws IOException {
        if (!token.isEmpty() || tokenFile.isEmpty()) {
            return token;
        }
        String read = Files.readString(Path.of(tokenFile), StandardCharsets.UTF_8).strip();
        if (read.isEmpty()) {
            throw new IOException("the token file " + tokenFile + " is empty");
        }
        return read;
    }

    private static String text(Map<String, String> environment, String name) {
        return environment.getOrDefault("TOPSAIL_" + name, "");
    }

    private static String needed(Map<String, String> environment, String name) throws PermanentFailure {
        String text = text(environment, name);
        if (text.isEmpty()) {
            throw new PermanentFailure("TOPSAIL_" + name + " is not set: Topsail sets it for containers that it starts");
        }
        return text;
    }

    private static String host(String text) {
        String bare = text.startsWith("[") && text.endsWith("]") ? text.substring(1, text.length() - 1) : text;
        return bare.isEmpty() ? "127.0.0.1" : bare;
    }

    private static InputType inputType(String name) throws PermanentFailure {
        if (name.isEmpty()) {
            return InputType.ANY;
        }
        InputType type = InputType.of(name);
        if (type == null) {
            throw new PermanentFailure("TOPSAIL_INPUT_TYPE=" + name + " is unknown: use bytes, ints, floats, doubles, strings or tensors");
        }
        return type;
    }

    private static Signature signature(String text) throws PermanentFailure {
        try {
            return text.isEmpty() ? Signature.NONE : Signature.parse(text);
        } catch (IllegalArgumentException e) {
            throw new PermanentFailure("TOPSAIL_SIGNATURE cannot be read: " + e.getMessage());
        }
    }

    private static int inputLength(String text) throws PermanentFailure {
        int length = text.isEmpty() ? 0 : number(text);
        if (length < 0) {
            throw new PermanentFailure("TOPSAIL_INPUT_LENGTH=" + text + " is not a number of elements");
        }
        return length;
    }

    /** What the digits say, or -1. */
    private static int number(String text) {
        return text.matches("[0-9]{1,9}") ? Integer.parseInt(text) : -1;
    }

    @Override
    public String toString() {
        return model + ":" + version + " at " + host + ":" + port;
    }
}
