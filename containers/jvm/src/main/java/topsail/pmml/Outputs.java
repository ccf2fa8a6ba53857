package topsail.pmml;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.pmml4s.data.DataVal;
import org.pmml4s.data.Series;
import org.pmml4s.metadata.OutputField;
import org.pmml4s.metadata.ResultFeature;
import org.pmml4s.model.Model;
import topsail.container.Json;
import topsail.container.Outcome;
import topsail.container.PermanentFailure;
import topsail.container.Tensor;
import topsail.rpc.Value;

/** Which of a model's output fields says what. */
final class Outputs {
    /** An output field that becomes a qualifier. */
    private record Named(int index, String name) {}

    private final boolean classifies;
    private final int predicted;
    private int probability = -1; // of what was predicted
    private final List<Named> probabilities = new ArrayList<>(); // of classes
    private final List<Named> others = new ArrayList<>(); // that the file asks for
    private final Map<String, Integer> places = new LinkedHashMap<>(); // in a result, by the names that outputs of a signature have
    private List<Tensor> tensors = List.of(); // the outputs of the signature, if it has some

    Outputs(Model model) {
        List<String> asked = model.output().isDefined() ? List.of(model.outputNames()) : List.of();
        OutputField[] fields = model.setSupplementOutput(true).outputFields();
        classifies = model.isClassification();
        predicted = predicted(fields);
        if (model.hasTarget() && any()) {
            places.put(model.targetName(), predicted);
        }
        for (int i = 0; i < fields.length; i++) {
            OutputField field = fields[i];
            if (asked.contains(field.name())) {
                places.put(field.name(), i);
            }
            if (i == predicted) {
                continue;
            }
            if (field.feature() != ResultFeature.probability()) {
                if (asked.contains(field.name())) {
                    others.add(new Named(i, field.name()));
                }
            } else if (field.value().isDefined()) {
                probabilities.add(new Named(i, text(field.value().get().toVal())));
            } else {
                probability = i;
            }
        }
    }

    /** Where the prediction is: where the file has none, the first output field stands for it. */
    private static int predicted(OutputField[] fields) {
        for (int i = 0; i < fields.length; i++) {
            if (fields[i].feature() == ResultFeature.predictedValue()) {
                return i;
            }
        }
        return fields.length > 0 ? 0 : -1;
    }

    /** Whether there is anything to answer with. */
    boolean any() {
        return predicted >= 0;
    }

    /** Answers by the outputs of a signature, which are the target and the fields of the file's Output section. */
    void name(List<Tensor> wanted) throws PermanentFailure {
        for (Tensor tensor : wanted) {
            if (!places.containsKey(tensor.name())) {
                throw new PermanentFailure("the signature has the output %s, and the model has %s".formatted(Json.quoted(tensor.name()),
                        places.isEmpty() ? "none with a name" : String.join(", ", places.keySet())));
            }
        }
        tensors = wanted;
    }

    /** What the model says, or null if it says nothing. */
    Outcome of(Series result) {
        DataVal prediction = result.get(predicted);
        if (missing(prediction)) {
            return null;
        }
        List<Value> qualifiers = new ArrayList<>(probabilities.size() + others.size());
        String predictedClass = text(prediction.toVal());
        Double confidence = probability < 0 ? null : number(result.get(probability));
        for (Named p : probabilities) {
            Double of = number(result.get(p.index));
            if (of != null) {
                qualifiers.add(Value.number(p.name, of));
            }
            if (confidence == null && p.name.equals(predictedClass)) {
                confidence = of;
            }
        }
        for (Named other : others) {
            DataVal value = result.get(other.index);
            if (!missing(value) && !(value.toVal() instanceof Number && number(value) == null)) {
                qualifiers.add(value(other.name, value));
            }
        }
        return new Outcome.Output(values(result, prediction), confidence, qualifiers);
    }

    private List<Value> values(Series result, DataVal prediction) {
        if (tensors.isEmpty()) {
            return List.of(classifies ? Value.text("", text(prediction.toVal())) : value("", prediction));
        }
        List<Value> values = new ArrayList<>(tensors.size());
        for (Tensor tensor : tensors) {
            DataVal value = result.get(places.get(tensor.name()));
            values.add(Scalar.write(tensor, missing(value) ? null : value.toVal()));
        }
        return values;
    }

    /** A number goes as one also where it is not finite: then the gateway refuses it, and a text it would pass on. */
    private static Value value(String name, DataVal value) {
        return value.toVal() instanceof Number ? Value.number(name, value.toDouble()) : Value.text(name, text(value.toVal()));
    }

    private static boolean missing(DataVal value) {
        return value == null || value.isMissing();
    }

    /** A finite number, or null. */
    private static Double number(DataVal value) {
        return missing(value) || !Double.isFinite(value.toDouble()) ? null : Double.valueOf(value.toDouble());
    }

    /** A value as people write it: whole numbers without a point. */
    static String text(Object value) {
        if (value instanceof Double number && number == Math.rint(number) && Math.abs(number) < 1e15) {
            return Long.toString(number.longValue());
        }
        return String.valueOf(value);
    }
}
