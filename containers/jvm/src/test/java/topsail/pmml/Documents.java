package topsail.pmml;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import topsail.container.PermanentFailure;
import topsail.container.Settings;

/** PMML documents of the tests. */
final class Documents {
    static final Path EXAMPLES = Path.of("../../examples/pmml");

    private Documents() {}

    /** A model with these fields in its dictionary. */
    static String document(String dictionary, String model) {
        return """
            <PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>
            <DataDictionary>%s</DataDictionary>%s</PMML>""".formatted(dictionary, model);
    }

    /** y = 1 + 10 times the field x, which is declared so. */
    static String line(String field, String mining) {
        return document(field + "<DataField name='y' optype='continuous' dataType='double'/>", """
            <RegressionModel functionName="regression"><MiningSchema>%s<MiningField name="y" usageType="target"/></MiningSchema>
            <RegressionTable intercept="1"><NumericPredictor name="x" coefficient="10"/></RegressionTable></RegressionModel>"""
                .formatted(mining));
    }

    /** A tree that says "yes" where the field x is the value, else "no". */
    static String equal(String field, String mining, String value) {
        return document(field + category("y", "yes", "no"), """
            <TreeModel functionName="classification" noTrueChildStrategy="returnLastPrediction" missingValueStrategy="nullPrediction">
            <MiningSchema>%s<MiningField name="y" usageType="target"/></MiningSchema>
            <Node score="no"><True/><Node score="yes"><SimplePredicate field="x" operator="equal" value="%s"/></Node></Node>
            </TreeModel>""".formatted(mining, value));
    }

    static String category(String name, String... values) {
        StringBuilder field = new StringBuilder("<DataField name='" + name + "' optype='categorical' dataType='string'>");
        for (String value : values) {
            field.append("<Value value='").append(value).append("'/>");
        }
        return field.append("</DataField>").toString();
    }

    static String number(String name) {
        return "<DataField name='" + name + "' optype='continuous' dataType='double'/>";
    }

    static PmmlModel load(Path folder, String document, String... settings) throws IOException, PermanentFailure {
        return PmmlModel.load(Files.writeString(folder.resolve("model.pmml"), document), settings(settings));
    }

    /** Settings with an input type and a length, if they are given. */
    static Settings settings(String... typeAndLength) throws PermanentFailure {
        return Settings.read(java.util.Map.of("TOPSAIL_SIDECAR", ":1", "TOPSAIL_MODEL", "m", "TOPSAIL_VERSION", "1",
                "TOPSAIL_INPUT_TYPE", typeAndLength.length > 0 ? typeAndLength[0] : "",
                "TOPSAIL_INPUT_LENGTH", typeAndLength.length > 1 ? typeAndLength[1] : ""));
    }
}
