package topsail.pmml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static topsail.pmml.Documents.EXAMPLES;
import static topsail.pmml.Documents.category;
import static topsail.pmml.Documents.document;
import static topsail.pmml.Documents.equal;
import static topsail.pmml.Documents.line;
import static topsail.pmml.Documents.load;
import static topsail.pmml.Documents.number;
import static topsail.pmml.Documents.settings;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import topsail.container.Outcome;
import topsail.container.PermanentFailure;
import topsail.rpc.DType;
import topsail.rpc.Value;

@Timeout(60)
class PmmlModelTest {
    private static final String PLAIN = "<MiningField name='x'/>";

    @TempDir
    Path folder;

    @Test
    void aTreeNamesAClassWithItsProbabilities() throws Exception {
        PmmlModel iris = PmmlModel.load(EXAMPLES.resolve("iris.pmml"), settings("doubles", "4"));
        iris.warmUp();
        List<Outcome> outcomes = iris.predict(List.of(doubles(5.1, 3.5, 1.4, 0.2), doubles(6.3, 2.5, 4.9, 1.5), doubles(6, 2.2, 5, 1.5)));
        assertEquals("setosa 1.0 {setosa=1, versicolor=0, virginica=0}", shown(outcomes.get(0)));
        assertEquals("versicolor 0.9791666666666666 {setosa=0, versicolor=0.9791666666666666, virginica=0.020833333333333332}",
                shown(outcomes.get(1)));
        assertEquals("virginica 0.6666666666666666 {setosa=0, versicolor=0.3333333333333333, virginica=0.6666666666666666}",
                shown(outcomes.get(2)));
    }

    @Test
    void aRegressionGivesANumber() throws Exception {
        PmmlModel wine = PmmlModel.load(EXAMPLES.resolve("wine.pmml"), settings("strings"));
        wine.warmUp();
        Outcome.Output output = assertInstanceOf(Outcome.Output.class,
                one(wine, Value.text("", "{\"proline\": 1000, \"color_intensity\": 5, \"cultivar\": \"grignolino\"}")));
        assertEquals(DType.FLOAT64, output.values().get(0).dtype());
        assertEquals(11.870233868156198 + 1000 * 0.0001767568186848482 + 5 * 0.10259511797270937, output.values().get(0).number(0), 1e-12);
        assertNull(output.confidence());
        assertEquals(List.of(), output.qualifiers());
    }

    @Test
    void vectorsOfAnyTypeAreTheFieldsInTheirOrder() throws Exception {
        PmmlModel model = load(folder, document(number("a") + number("b") + number("y"), """
            <RegressionModel functionName="regression">
            <MiningSchema><MiningField name="b"/><MiningField name="y" usageType="target"/><MiningField name="a"/></MiningSchema>
            <RegressionTable intercept="0"><NumericPredictor name="a" coefficient="1"/><NumericPredictor name="b" coefficient="100"/>
            </RegressionTable></RegressionModel>"""));
        assertEquals("201", shown(one(model, doubles(2, 1))));
        assertEquals("201", shown(one(model, Value.text("", "{\"a\":1,\"b\":2}"))));
        ByteBuffer bytes = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
        assertEquals("201", shown(one(model, new Value("", DType.INT32, List.of(2), bytes.putInt(0, 2).putInt(4, 1)))));
        bytes = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
        assertEquals("201", shown(one(model, new Value("", DType.FLOAT32, List.of(2), bytes.putFloat(0, 2).putFloat(4, 1)))));
        assertEquals("BAD_INPUT: the model takes 2 numbers (b, a), and got 3", shown(one(model, doubles(1, 2, 3))));
        assertEquals("BAD_INPUT: the field 'c' is unknown: the model takes b, a", shown(one(model, Value.text("", "{\"c\":1}"))));
        assertEquals("BAD_INPUT: the input is not a JSON object with the model's fields: at character 0 there is no {",
                shown(one(model, Value.text("", "1,2"))));
        assertEquals("BAD_INPUT: the model takes numbers, or strings with a JSON object, and got opaque",
                shown(one(model, new Value("", DType.OPAQUE, List.of(), bytes))));
    }

    @Test
    void aFieldThatIsMissingIsNamed() throws Exception {
        PmmlModel model = load(folder, line(number("x"), PLAIN));
        String said = "BAD_INPUT: the model says nothing where these fields are missing: x";
        assertEquals(said, shown(one(model, doubles(Double.NaN))));
        assertEquals(said, shown(one(model, Value.text("", "{}"))));
        assertEquals(said, shown(one(model, Value.text("", "{\"x\":null}"))));

        model = load(folder, line(number("x"), "<MiningField name='x' missingValueReplacement='7'/>"));
        assertEquals("71", shown(one(model, Value.text("", "{}"))));

        model = load(folder, line(number("x"), "<MiningField name='x' missingValueTreatment='returnInvalid'/>"));
        assertEquals("BAD_INPUT: the field 'x' is missing, and the model does not do without", shown(one(model, doubles(Double.NaN))));

        model = load(folder, line("<DataField name='x' optype='continuous' dataType='double'><Value value='-999' property='missing'/></DataField>", PLAIN));
        assertEquals(said, shown(one(model, doubles(-999))));
    }

    @Test
    void aValueThatIsInvalidIsNamed() throws Exception {
        String field = "<DataField name='x' optype='continuous' dataType='double'><Interval closure='closedOpen' leftMargin='0' rightMargin='10'/></DataField>";
        PmmlModel model = load(folder, line(field, PLAIN));
        assertEquals("91", shown(one(model, doubles(9))));
        String said = shown(one(model, doubles(-1.5)));
        assertTrue(said.startsWith("BAD_INPUT: the field 'x' is -1.5, and the model takes ") && said.contains("10"), said);

        model = load(folder, line(field, "<MiningField name='x' invalidValueTreatment='asIs'/>"));
        assertEquals("-9", shown(one(model, doubles(-1))));

        model = load(folder, line(field, "<MiningField name='x' invalidValueTreatment='asMissing' missingValueReplacement='2'/>"));
        assertEquals("21", shown(one(model, doubles(-1))));

        model = load(folder, equal(category("x", "red", "white"), PLAIN, "red"));
        assertEquals("yes", output(one(model, Value.text("", "{\"x\":\"red\"}"))));
        assertEquals("no", output(one(model, Value.text("", "{\"x\":\"white\"}"))));
        assertEquals("BAD_INPUT: the field 'x' is 'blue', and the model takes red, white", shown(one(model, Value.text("", "{\"x\":\"blue\"}"))));
        assertEquals("BAD_INPUT: the field 'x' is 3, and the model takes red, white", shown(one(model, doubles(3))));
    }

    @Test
    void numbersAreWhatTheFieldsAre() throws Exception {
        PmmlModel whole = load(folder, line("<DataField name='x' optype='continuous' dataType='integer'/>", PLAIN));
        assertEquals("31", shown(one(whole, doubles(3))));
        assertEquals("BAD_INPUT: the field 'x' is 3.5, and the model takes a whole number", shown(one(whole, doubles(3.5))));
        assertEquals("BAD_INPUT: the field 'x' is 'three', and the model takes a whole number", shown(one(whole, Value.text("", "{\"x\":\"three\"}"))));
        assertEquals("BAD_INPUT: the field 'x' is true, and the model takes a whole number", shown(one(whole, Value.text("", "{\"x\":true}"))));
        assertEquals("BAD_INPUT: the field 'x' is Infinity, and the model takes a whole number", shown(one(whole, doubles(1 / 0.0))));

        PmmlModel cylinders = load(folder, equal(category("x", "4", "6"), PLAIN, "6"));
        assertEquals("yes", output(one(cylinders, doubles(6))), "a category that looks like a number");

        PmmlModel codes = load(folder, equal("<DataField name='x' optype='categorical' dataType='integer'><Value value='1'/><Value value='2'/></DataField>", PLAIN, "2"));
        assertEquals("yes", output(one(codes, doubles(2))));
        assertEquals("BAD_INPUT: the field 'x' is 5, and the model takes 1, 2", shown(one(codes, doubles(5))));

        PmmlModel flag = load(folder, equal("<DataField name='x' optype='categorical' dataType='boolean'/>", PLAIN, "true"));
        assertEquals("yes", output(one(flag, Value.text("", "{\"x\":true}"))));
        assertEquals("no", output(one(flag, doubles(0))));
        assertEquals("BAD_INPUT: the field 'x' is 2, and the model takes true or false, or 1 or 0", shown(one(flag, doubles(2))));
        assertEquals("BAD_INPUT: the field 'x' is 'yes', and the model takes true or false", shown(one(flag, Value.text("", "{\"x\":\"yes\"}"))));
    }

    @Test
    void aBadInputFailsAlone() throws Exception {
        PmmlModel model = load(folder, line(number("x"), PLAIN));
        List<Outcome> outcomes = model.predict(List.of(doubles(1), doubles(), doubles(2)));
        assertEquals("11", shown(outcomes.get(0)));
        assertInstanceOf(Outcome.Failure.class, outcomes.get(1));
        assertEquals("21", shown(outcomes.get(2)));
    }

    /** A logistic regression with an output section of its own, whose probabilities have other names. */
    @Test
    void whatTheFileAsksForGoesAlong() throws Exception {
        PmmlModel model = load(folder, document(number("x") + "<DataField name='y' optype='categorical' dataType='integer'><Value value='0'/><Value value='1'/></DataField>", """
            <RegressionModel functionName="classification" normalizationMethod="logit">
            <MiningSchema><MiningField name="x"/><MiningField name="y" usageType="target"/></MiningSchema>
            <Output>
              <OutputField name="p" feature="probability" value="1" optype="continuous" dataType="double"/>
              <OutputField name="twice" feature="transformedValue" optype="continuous" dataType="double">
                <Apply function="*"><FieldRef field="p"/><Constant>2</Constant></Apply></OutputField>
            </Output>
            <RegressionTable targetCategory="1" intercept="0"><NumericPredictor name="x" coefficient="1"/></RegressionTable>
            <RegressionTable targetCategory="0" intercept="0"/></RegressionModel>"""));
        Outcome.Output output = (Outcome.Output) one(model, doubles(Math.log(3)));
        assertEquals("1", output.values().get(0).text(), "a class is a text, also where it looks like a number");
        assertEquals(0.75, output.confidence(), 1e-9);
        assertEquals(List.of("0", "1", "twice"), output.qualifiers().stream().map(Value::name).sorted().toList());
        for (Value qualifier : output.qualifiers()) {
            double want = Map.of("1", 0.75, "0", 0.25, "twice", 1.5).get(qualifier.name());
            assertEquals(want, qualifier.number(0), 1e-9, qualifier.name());
        }
    }

    @Test
    void aNumberThatIsNotFiniteIsNoText() throws Exception {
        PmmlModel model = load(folder, line(number("x"), PLAIN).replace("<RegressionTable", """
            <Output>
              <OutputField name="y" feature="predictedValue"/>
              <OutputField name="minus" feature="transformedValue" optype="continuous" dataType="double">
                <Apply function="*"><FieldRef field="y"/><Constant>-1</Constant></Apply></OutputField>
            </Output><RegressionTable"""));
        assertEquals("21 {minus=-21}", shown(one(model, doubles(2))));
        Outcome.Output output = assertInstanceOf(Outcome.Output.class, one(model, doubles(1e308)));
        assertEquals(DType.FLOAT64, output.values().get(0).dtype());
        assertEquals(Double.POSITIVE_INFINITY, output.values().get(0).number(0));
        assertEquals(List.of(), output.qualifiers());
    }

    /** Two trees that vote. */
    @Test
    void anEnsembleIsEvaluated() throws Exception {
        String tree = """
            <Segment id="%d"><True/><TreeModel functionName="regression"><MiningSchema><MiningField name="x"/></MiningSchema>
            <Node score="0"><True/><Node score="%d"><SimplePredicate field="x" operator="greaterThan" value="%d"/></Node>
            <Node score="-1"><SimplePredicate field="x" operator="lessOrEqual" value="%d"/></Node></Node></TreeModel></Segment>""";
        PmmlModel model = load(folder, document(number("x") + number("y"), """
            <MiningModel functionName="regression"><MiningSchema><MiningField name="x"/><MiningField name="y" usageType="target"/></MiningSchema>
            <Segmentation multipleModelMethod="sum">%s%s</Segmentation></MiningModel>"""
                .formatted(tree.formatted(1, 10, 0, 0), tree.formatted(2, 200, 5, 5))));
        assertEquals("-2", shown(one(model, doubles(-3))));
        assertEquals("9", shown(one(model, doubles(3))));
        assertEquals("210", shown(one(model, doubles(6))));
    }

    @Test
    void aTreeAsDeepAsMayBeIsEvaluatedOnAnOrdinaryStack() throws Exception {
        int depth = PmmlFile.MOST_NESTED - 4; // below PMML, TreeModel and the first node, and with a predicate below
        StringBuilder nodes = new StringBuilder();
        for (int i = 0; i < depth; i++) {
            nodes.append("<Node score='%d'><SimplePredicate field='x' operator='greaterThan' value='%d'/>".formatted(i, i));
        }
        PmmlModel model = load(folder, document(number("x") + number("y"), """
            <TreeModel functionName="regression" noTrueChildStrategy="returnLastPrediction">
            <MiningSchema><MiningField name="x"/><MiningField name="y" usageType="target"/></MiningSchema>
            <Node score="-1"><True/>%s%s</Node></TreeModel>""".formatted(nodes, "</Node>".repeat(depth))));
        assertEquals(Integer.toString(depth - 1), output(one(model, doubles(100_000))));
        assertEquals("9", output(one(model, doubles(10))));
        assertEquals("-1", output(one(model, doubles(0))));
    }

    @Test
    void modelsThatCannotServeAreRefused() {
        refused("has no model that predicts", document(number("x"), ""));
        refused("cannot be evaluated", document(number("x"), "<Unheard/>"));
        refused("has no model that predicts", document(number("x"), "<TreeModel functionName='regression'/>"));
        refused("cannot be evaluated", document(number("x"), "<BayesianNetworkModel functionName='regression'/>"));
        refused("cannot be evaluated", "<PMML version='4.4'/>");
        refused("cannot be evaluated", line("", PLAIN));
        refused("is registered with input type bytes", line(number("x"), PLAIN), "bytes");
        refused("model.pmml takes 1 fields (x), and is registered with inputs of length 2", line(number("x"), PLAIN), "floats", "2");
        refused("has no model that predicts", line(number("x"), PLAIN).replace("<RegressionModel", "<RegressionModel isScorable='false'"));
    }

    private void refused(String why, String document, String... settings) {
        PermanentFailure e = assertThrows(PermanentFailure.class, () -> load(folder, document, settings), document);
        assertTrue(e.getMessage().startsWith("model.pmml ") || e.getMessage().contains(why), e.getMessage());
        assertTrue(e.getMessage().contains(why), e.getMessage());
    }

    private static Outcome one(PmmlModel model, Value input) {
        return model.predict(List.of(input)).get(0);
    }

    static Value doubles(double... numbers) {
        ByteBuffer data = ByteBuffer.allocate(8 * numbers.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < numbers.length; i++) {
            data.putDouble(8 * i, numbers[i]);
        }
        return new Value("", DType.FLOAT64, List.of(numbers.length), data);
    }

    private static String output(Outcome outcome) throws CharacterCodingException {
        return outcome instanceof Outcome.Output ? shown(outcome).split(" ")[0] : shown(outcome);
    }

    /** An output with its confidence and qualifiers, where there are any, or a failure. */
    private static String shown(Outcome outcome) throws CharacterCodingException {
        if (outcome instanceof Outcome.Failure failure) {
            return failure.status() + ": " + failure.message();
        }
        Outcome.Output output = (Outcome.Output) outcome;
        TreeMap<String, String> qualifiers = new TreeMap<>();
        for (Value qualifier : output.qualifiers()) {
            qualifiers.put(qualifier.name(), text(qualifier));
        }
        return text(output.values().get(0)) + (output.confidence() == null ? "" : " " + output.confidence()) + (qualifiers.isEmpty() ? "" : " " + qualifiers);
    }

    private static String text(Value value) throws CharacterCodingException {
        return value.dtype() == DType.STRING ? value.text() : Outputs.text(value.number(0));
    }
}
