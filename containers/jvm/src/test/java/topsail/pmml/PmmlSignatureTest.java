package topsail.pmml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static topsail.pmml.Documents.EXAMPLES;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import topsail.container.Outcome;
import topsail.container.PermanentFailure;
import topsail.container.Settings;
import topsail.rpc.DType;
import topsail.rpc.Value;

/** Models by signature. The signatures are those that topsail.deploy.pmml_signature reads from the same files: see its tests. */
@Timeout(60)
class PmmlSignatureTest {
    private static final Path SIGNATURES = Path.of("src/test/resources/signatures");

    private static PmmlModel load(String name) throws IOException, PermanentFailure {
        return load(name, Files.readString(SIGNATURES.resolve(name + ".json")));
    }

    private static PmmlModel load(String name, String signature) throws PermanentFailure {
        Path model = SIGNATURES.resolve(name + ".pmml");
        Settings settings = Settings.read(Map.of("TOPSAIL_SIDECAR", ":1", "TOPSAIL_MODEL", "m", "TOPSAIL_VERSION", "1",
                "TOPSAIL_INPUT_TYPE", "tensors", "TOPSAIL_SIGNATURE", signature));
        PmmlModel loaded = PmmlModel.load(Files.exists(model) ? model : EXAMPLES.resolve(name + ".pmml"), settings);
        loaded.warmUp();
        return loaded;
    }

    /** Outputs by their names, or what is wrong. */
    private static String answer(PmmlModel model, Value... inputs) {
        Map<String, Value> query = new LinkedHashMap<>();
        for (Value input : inputs) {
            query.put(input.name(), input);
        }
        Outcome outcome = model.predictTensors(List.of(query)).get(0);
        if (outcome instanceof Outcome.Failure failure) {
            return failure.message();
        }
        return assertInstanceOf(Outcome.Output.class, outcome).values().stream().map(PmmlSignatureTest::shown).collect(Collectors.joining(" "));
    }

    private static String shown(Value value) {
        try {
            return value.name() + "=" + value.described() + ":" + Scalar.read(value);
        } catch (BadInput e) {
            throw new AssertionError(e);
        }
    }

    private static Value x(double x) {
        return Value.number("x", x);
    }

    @Test
    void everySignatureIsServed() throws Exception {
        try (var files = Files.list(SIGNATURES)) {
            for (Path file : files.filter(f -> f.toString().endsWith(".json")).toList()) {
                load(file.getFileName().toString().replace(".json", ""));
            }
        }
    }

    @Test
    void theExamplesAnswerByTheNamesOfTheirTargets() throws Exception {
        assertEquals("species=string:versicolor", answer(load("iris"), Value.number("petal_width", 1.5), Value.number("petal_length", 4.9),
                Value.number("sepal_width", 2.5), Value.number("sepal_length", 6.3)));
        PmmlModel wine = load("wine");
        Value[] white = {Value.number("proline", 0), Value.number("color_intensity", 0), Value.text("cultivar", "barbera")};
        assertEquals("alcohol=float64:12.283592477228899", answer(wine, white));
        white[2] = Value.text("cultivar", "merlot");
        assertEquals("the field 'cultivar' is 'merlot', and the model takes barolo, grignolino, barbera", answer(wine, white));
    }

    @Test
    void outputsAreTheTargetAndTheFieldsOfTheOutputSection() throws Exception {
        PmmlModel model = load("fields");
        Value[] query = {x(Math.log(3)), Value.integers("count", DType.INT64, List.of(), (1L << 53) + 1), Value.numbers("ratio", DType.FLOAT32, List.of(), 0.25),
            Value.integers("flag", DType.BOOL, List.of(), 1), Value.number("on", 20783)};
        String said = answer(model, query).replaceAll("(0\\.75|1\\.5)0*[0-9]?\\b", "$1");
        assertEquals("class=int64:1 predicted=int64:1 probability(1)=float64:0.75 twice=float64:1.5 likely=bool:true", said);
        query[4] = Value.text("on", "2026-11-26");
        assertEquals("the field 'on' is '2026-11-26', and the model takes a number", answer(model, query));
    }

    @Test
    void aModelWithoutATargetHasTheFieldsOfItsOutputSection() throws Exception {
        assertEquals("cluster=string:far distance=float64:1.0", answer(load("clusters"), x(9)));
    }

    @Test
    void aSignatureMayHaveOtherTypesAndLessOfTheFields() throws Exception {
        PmmlModel model = load("wine", """
            {"inputs": [{"name": "proline", "type": "uint16"}, {"name": "cultivar", "type": "string"}, {"name": "color_intensity", "type": "float16"}],
             "outputs": [{"name": "alcohol", "type": "float32"}]}""");
        assertEquals("alcohol=float32:" + (double) (float) (12.283592477228899 + 1000 * 0.0001767568186848482), answer(model,
                Value.integers("proline", DType.UINT16, List.of(), 1000), Value.numbers("color_intensity", DType.FLOAT16, List.of(), 0), Value.text("cultivar", "barbera")));
        model = load("wine", "{\"inputs\": [{\"name\": \"proline\", \"type\": \"float64\"}], \"outputs\": []}");
        assertEquals("the model says nothing where these fields are missing: color_intensity, cultivar", answer(model, Value.number("proline", 1)));
        model = load("clusters", "{\"inputs\": [{\"name\": \"x\", \"type\": \"float64\"}], \"outputs\": [{\"name\": \"cluster\", \"type\": \"int8\"}]}");
        assertEquals("IllegalArgumentException: output 'cluster' is far, and the signature has int8", answer(model, x(9)));
    }

    @Test
    void aSignatureThatTheModelDoesNotHaveIsRefused() {
        refused("the signature has the input 'colour', and the model takes proline, color_intensity, cultivar", "colour", "float64", "alcohol");
        refused("the signature has the output 'taste', and the model has alcohol", "proline", "float64", "taste");
        refused("a PMML model has numbers, bools and strings without a shape, and the signature has 'proline' as bytes", "proline", "bytes", "alcohol");
        refused("a PMML model has numbers, bools and strings without a shape, and the signature has 'proline' as float32[3]",
                "proline", "float32\", \"shape\": [3], \"help\": \"", "alcohol");
    }

    private static void refused(String why, String input, String type, String output) {
        String signature = "{\"inputs\": [{\"name\": \"%s\", \"type\": \"%s\"}], \"outputs\": [{\"name\": \"%s\", \"type\": \"float64\"}]}"
                .formatted(input, type, output);
        assertEquals(why, assertThrows(PermanentFailure.class, () -> load("wine", signature)).getMessage());
    }
}
