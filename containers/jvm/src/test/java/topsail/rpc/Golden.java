package topsail.rpc;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** A frame of rpc/testdata/golden.txt, which all implementations of the protocol test against. */
record Golden(String name, byte[] bytes) {
    private static final Path FILE = Path.of("../../rpc/testdata/golden.txt");

    static List<Golden> all() {
        List<Golden> all = new ArrayList<>();
        try {
            for (String line : Files.readAllLines(FILE)) {
                String text = line.replaceFirst("#.*", "").strip();
                if (text.startsWith("[")) {
                    all.add(new Golden(text.substring(1, text.length() - 1), new byte[0]));
                } else if (!text.isEmpty()) {
                    Golden last = all.remove(all.size() - 1);
                    byte[] more = HexFormat.of().parseHex(text.replaceAll("\\s", ""));
                    all.add(new Golden(last.name, ByteBuffer.allocate(last.bytes.length + more.length).put(last.bytes).put(more).array()));
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException("the tests run in containers/jvm of the repository", e);
        }
        return all;
    }

    static Golden of(String name) {
        return all().stream().filter(g -> g.name.equals(name)).findFirst().orElseThrow();
    }

    /** The frame as it would come off a connection. */
    Frame frame() throws ProtocolException {
        Assembler assembler = new Assembler();
        assembler.room().put(bytes);
        return assembler.next();
    }
}
