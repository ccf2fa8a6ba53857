package topsail.pmml;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import javax.xml.XMLConstants;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;
import topsail.container.PermanentFailure;

/**
 * The text of a PMML file. The evaluator reads XML with all that XML can do; so what it gets has been looked over, by the same
 * parser and from the same text: it is well-formed, has no document type, thus no entities, and is not nested without bound.
 */
final class PmmlFile {
    static final int MOST_BYTES = 128 << 20;
    static final int MOST_NESTED = 512; // elements; the evaluator descends by recursion

    private PmmlFile() {}

    /** Reads a file. It throws PermanentFailure, with the reason, for what is not PMML. */
    static String read(Path path) throws PermanentFailure {
        String name = path.getFileName().toString();
        try {
            String text = decode(bytes(path));
            scan(text);
            return text;
        } catch (NoSuchFileException e) {
            throw new PermanentFailure("there is no file " + path);
        } catch (IOException e) {
            throw new PermanentFailure("the model " + path + " cannot be read: " + e.getMessage());
        } catch (XMLStreamException e) {
            throw new PermanentFailure(name + " is not XML that can be read: " + oneLine(e.getMessage()));
        } catch (NotPmml e) {
            throw new PermanentFailure(name + " " + e.getMessage());
        }
    }

    /** What keeps a file from being a model, as what follows its name in a sentence. */
    private static final class NotPmml extends Exception {
        private static final long serialVersionUID = 1;

        NotPmml(String why) {
            super(why);
        }
    }

    /** All of a file. What its size says is checked first, and what comes then is bounded all the same. */
    private static byte[] bytes(Path path) throws IOException, NotPmml {
        try (InputStream in = Files.newInputStream(path)) {
            byte[] bytes = Files.size(path) > MOST_BYTES ? null : in.readNBytes(MOST_BYTES + 1);
            if (bytes == null || bytes.length > MOST_BYTES) {
                throw new NotPmml("has more than " + (MOST_BYTES >> 20) + " MiB, which is more than this container reads");
            }
            return bytes;
        }
    }

    /** The characters, by the encoding that the file itself names. */
    private static String decode(byte[] bytes) throws XMLStreamException, NotPmml {
        XMLStreamReader reader = factory().createXMLStreamReader(new ByteArrayInputStream(bytes));
        String encoding = reader.getEncoding();
        reader.close();
        Charset charset = encoding == null ? StandardCharsets.UTF_8 : Charset.forName(encoding);
        try {
            String text = charset.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
            return text.startsWith("\uFEFF") ? text.substring(1) : text; // a mark of the encoding
        } catch (CharacterCodingException e) {
            throw new NotPmml("is not text in " + charset + ", its encoding");
        }
    }

    private static void scan(String text) throws XMLStreamException, NotPmml {
        XMLStreamReader reader = factory().createXMLStreamReader(new StringReader(text));
        int depth = 0;
        while (reader.hasNext()) {
            switch (reader.next()) {
                case XMLStreamConstants.DTD, XMLStreamConstants.ENTITY_REFERENCE ->
                    throw new NotPmml("has a document type or an entity, which could fetch files and grow without bound: take it out");
                case XMLStreamConstants.START_ELEMENT -> {
                    depth++;
                    if (depth == 1 && !reader.getLocalName().equals("PMML")) {
                        throw new NotPmml("is not PMML: its first element is " + reader.getLocalName());
                    }
                    if (depth > MOST_NESTED) {
                        throw new NotPmml("has elements nested more than " + MOST_NESTED + " deep");
                    }
                }
                case XMLStreamConstants.END_ELEMENT -> depth--;
                default -> {}
            }
        }
        reader.close();
    }

    private static XMLInputFactory factory() {
        XMLInputFactory factory = XMLInputFactory.newDefaultFactory();
        factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        factory.setProperty(XMLConstants.ACCESS_EXTERNAL_DTD, "");
        return factory;
    }

    private static String oneLine(String text) {
        return text.replaceAll("\\s+", " ");
    }
}
