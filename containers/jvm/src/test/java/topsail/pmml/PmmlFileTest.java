package topsail.pmml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.SocketTimeoutException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import topsail.container.PermanentFailure;

/** Hostile files, and files that are only odd. */
@Timeout(30)
class PmmlFileTest {
    private static final String LEAST = "<PMML version='4.4'/>";

    @TempDir
    Path folder;

    private String read(byte[] content) throws IOException, PermanentFailure {
        return PmmlFile.read(Files.write(folder.resolve("model.pmml"), content));
    }

    private void refused(String why, String content) {
        PermanentFailure e = assertThrows(PermanentFailure.class, () -> read(content.getBytes(StandardCharsets.UTF_8)), content);
        assertTrue(e.getMessage().startsWith("model.pmml ") && e.getMessage().contains(why), e.getMessage());
    }

    @Test
    void anExternalEntityIsNotFetched() throws Exception {
        Path secret = Files.writeString(folder.resolve("secret"), "the secret");
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String address = "http://127.0.0.1:" + server.getLocalPort() + "/x";
            for (String prolog : new String[] {
                "<!DOCTYPE PMML SYSTEM '" + address + "'>",
                "<!DOCTYPE PMML [<!ENTITY x SYSTEM '" + address + "'>]>",
                "<!DOCTYPE PMML [<!ENTITY x SYSTEM '" + secret.toUri() + "'>]>",
                "<!DOCTYPE PMML [<!ENTITY % x SYSTEM '" + address + "'> %x;]>",
            }) {
                refused("has a document type or an entity", prolog + "<PMML version='4.4'>&x;</PMML>");
            }
            server.setSoTimeout(1);
            assertThrows(SocketTimeoutException.class, server::accept, "a connection came");
        }
    }

    @Test
    void entitiesThatGrowAreNotExpanded() {
        StringBuilder laughs = new StringBuilder("<!DOCTYPE PMML [<!ENTITY l0 'ha'>");
        for (int i = 1; i < 30; i++) {
            laughs.append("<!ENTITY l%d '&l%d;&l%d;'>".formatted(i, i - 1, i - 1));
        }
        refused("has a document type or an entity", laughs + "]><PMML version='4.4'>&l29;</PMML>");
    }

    @Test
    void anEntityThatNobodyDeclaredIsRefused() {
        refused("", "<PMML version='4.4'>&x;</PMML>");
    }

    @Test
    void aFileIsNotReadWithoutBound() throws Exception {
        Path large = folder.resolve("model.pmml");
        try (RandomAccessFile file = new RandomAccessFile(large.toFile(), "rw")) {
            file.setLength(PmmlFile.MOST_BYTES + 1L);
        }
        assertEquals("model.pmml has more than 128 MiB, which is more than this container reads",
                assertThrows(PermanentFailure.class, () -> PmmlFile.read(large)).getMessage());
    }

    @Test
    void elementsAreNotNestedWithoutBound() throws Exception {
        int inside = PmmlFile.MOST_NESTED - 1;
        read(("<PMML>" + "<a>".repeat(inside) + "</a>".repeat(inside) + "</PMML>").getBytes(StandardCharsets.UTF_8));
        refused("nested more than 512 deep", "<PMML>" + "<a>".repeat(1_000_000));
    }

    @Test
    void whatIsNoPmmlIsNamed() {
        refused("is not XML that can be read", "");
        refused("is not XML that can be read", "model");
        refused("is not XML that can be read", "<PMML>");
        refused("is not XML that can be read", "<PMML a='1' a='2'/>");
        refused("is not XML that can be read", LEAST + LEAST);
        refused("its first element is html", "<html/>");
        refused("is not XML that can be read", "<?xml version='1.0' encoding='klingon'?>" + LEAST);
        refused("is not text in US-ASCII, its encoding", "<?xml version='1.0' encoding='US-ASCII'?><PMML>ü</PMML>");
        assertTrue(assertThrows(PermanentFailure.class, () -> PmmlFile.read(folder.resolve("none"))).getMessage().startsWith("there is no file "));
        assertTrue(assertThrows(PermanentFailure.class, () -> PmmlFile.read(folder)).getMessage().endsWith("Is a directory"));
    }

    @Test
    void bytesThatAreNoTextAreRefused() {
        byte[] content = "<PMML>x</PMML>".getBytes(StandardCharsets.UTF_8);
        content[6] = (byte) 0xFF;
        assertThrows(PermanentFailure.class, () -> read(content));
    }

    @Test
    void theFileSaysItsEncoding() throws Exception {
        for (String name : new String[] {"ISO-8859-1", "UTF-8", "windows-1252"}) {
            String text = "<?xml version='1.0' encoding='" + name + "'?><PMML a='größer'/>";
            assertEquals(text, read(text.getBytes(Charset.forName(name))));
        }
        String marked = "\uFEFF<PMML a='größer'/>";
        for (Charset charset : new Charset[] {StandardCharsets.UTF_8, StandardCharsets.UTF_16BE, StandardCharsets.UTF_16LE}) {
            assertEquals(marked.substring(1), read(marked.getBytes(charset)), charset.name());
        }
    }

    @Test
    void aReferenceToACharacterIsNoEntity() throws Exception {
        assertFalse(read("<PMML a='&lt;&#65;'>&amp;</PMML>".getBytes(StandardCharsets.UTF_8)).isEmpty());
    }
}
