package topsail.pmml;

import java.nio.charset.CharacterCodingException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.pmml4s.data.DataVal;
import org.pmml4s.data.Series;
import org.pmml4s.metadata.Field;
import scala.NotImplementedError;
import topsail.container.Json;
import topsail.container.Outcome;
import topsail.container.PermanentFailure;
import topsail.container.Settings;
import topsail.container.Signature;
import topsail.container.Tensor;
import topsail.container.TensorModel;
import topsail.rpc.DType;
import topsail.rpc.InputType;
import topsail.rpc.Value;

/**
 * A PMML model. An input is a vector of numbers, the values of the active fields in the order in which the model lists them, where
 * NaN is a missing one; or a text, a JSON object with values by the names of fields, where those are missing that are not there; or,
 * with a signature, a scalar for each field that the signature has.
 */
final class PmmlModel implements TensorModel {
    private static final long PARSER_STACK_BYTES = 64 << 20;
    private static final int WARM_UPS = 2000;
    private static final long WARM_UP = TimeUnit.MILLISECONDS.toNanos(300);

    private final org.pmml4s.model.Model model;
    private final List<ActiveField> fields = new ArrayList<>();
    private final Map<String, Integer> places = new HashMap<>(); // in fields, by name
    private final Outputs outputs;

    private PmmlModel(org.pmml4s.model.Model model) {
        this.model = model;
        this.outputs = new Outputs(model);
        model.usedSchema(); // which gives fields their indices
        for (Field field : model.inputFields()) {
            places.put(field.name(), fields.size());
            fields.add(new ActiveField(field, model.miningSchema().apply(field.name())));
        }
    }

    /** Loads a file. It throws PermanentFailure for what is no model, and for one that cannot take the inputs that it is to get. */
    static PmmlModel load(Path path, Settings settings) throws PermanentFailure {
        String name = path.getFileName().toString();
        PmmlModel model = parse(name, PmmlFile.read(path));
        model.take(settings.signature());
        int length = settings.inputLength();
        if (settings.inputType() == InputType.BYTES) {
            throw new PermanentFailure("a PMML model takes numbers, or strings with a JSON object: it is registered with input type bytes");
        }
        if (length > 0 && settings.inputType() != InputType.STRINGS && length != model.fields.size()) {
            throw new PermanentFailure("%s takes %d fields (%s), and is registered with inputs of length %d"
                    .formatted(name, model.fields.size(), model.names(), length));
        }
        return model;
    }

    private void take(Signature signature) throws PermanentFailure {
        for (Tensor input : signature.inputs()) {
            Scalar.check(input);
            if (!places.containsKey(input.name())) {
                throw new PermanentFailure("the signature has the input %s, and the model takes %s".formatted(Json.quoted(input.name()), names()));
            }
        }
        for (Tensor output : signature.outputs()) {
            Scalar.check(output);
        }
        outputs.name(signature.outputs());
    }

    /** Parses on a stack of its own: the parser descends by recursion, and before it is compiled an ordinary one is too small. */
    private static PmmlModel parse(String name, String text) throws PermanentFailure {
        FutureTask<PmmlModel> parsing = new FutureTask<>(() -> parsed(name, text));
        new Thread(null, parsing, "topsail-parse", PARSER_STACK_BYTES).start();
        try {
            return parsing.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof PermanentFailure failure) {
                throw failure;
            }
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private static PmmlModel parsed(String name, String text) throws PermanentFailure {
        try {
            org.pmml4s.model.Model model = org.pmml4s.model.Model.fromString(text);
            if (model.miningSchema() == null || !model.isScorable()) {
                throw new PermanentFailure(name + " has no model that predicts");
            }
            PmmlModel made = new PmmlModel(model);
            if (!made.outputs.any()) {
                throw new PermanentFailure(name + " has a model without an output: " + model.modelElement());
            }
            return made;
        } catch (PermanentFailure e) {
            throw e;
        } catch (Exception | StackOverflowError | NotImplementedError e) { // Scala does not declare what it throws
            throw new PermanentFailure(name + " has a model that cannot be evaluated: " + e);
        }
    }

    @Override
    public List<Outcome> predict(List<Value> inputs) {
        List<Outcome> outcomes = new ArrayList<>(inputs.size());
        for (Value input : inputs) {
            outcomes.add(answer(() -> record(input)));
        }
        return outcomes;
    }

    @Override
    public List<Outcome> predictTensors(List<Map<String, Value>> queries) {
        List<Outcome> outcomes = new ArrayList<>(queries.size());
        for (Map<String, Value> query : queries) {
            outcomes.add(answer(() -> ofTensors(query)));
        }
        return outcomes;
    }

    /** Reads an input. */
    private interface Input {
        DataVal[] record() throws BadInput;
    }

    private Outcome answer(Input input) {
        try {
            return score(input.record());
        } catch (BadInput e) {
            return Outcome.badInput(e.getMessage());
        } catch (Exception | StackOverflowError | NotImplementedError e) { // of the evaluator
            return Outcome.modelError(e);
        }
    }

    private Outcome score(DataVal[] record) throws BadInput {
        Outcome outcome = outputs.of(model.predict(Series.fromArray(record, model.usedSchema())));
        if (outcome != null) {
            return outcome;
        }
        List<String> missing = missing(record);
        if (missing.isEmpty()) {
            return Outcome.modelError(new IllegalStateException("the model says nothing about this input"));
        }
        throw new BadInput("the model says nothing where these fields are missing: " + String.join(", ", missing));
    }

    private DataVal[] record(Value input) throws BadInput {
        return input.dtype() == DType.STRING || input.dtype() == DType.JSON ? ofText(input) : ofNumbers(input);
    }

    private DataVal[] ofNumbers(Value input) throws BadInput {
        if (input.dtype().itemSize == 0) {
            throw new BadInput("the model takes numbers, or strings with a JSON object, and got " + input.dtype());
        }
        if (input.size() != fields.size()) {
            throw new BadInput("the model takes %d numbers (%s), and got %d".formatted(fields.size(), names(), input.size()));
        }
        DataVal[] record = empty();
        for (int i = 0; i < fields.size(); i++) {
            ActiveField field = fields.get(i);
            record[field.index()] = field.value(input.number(i));
        }
        return record;
    }

    private DataVal[] ofTensors(Map<String, Value> query) throws BadInput {
        DataVal[] record = empty();
        for (ActiveField field : fields) {
            Value given = query.get(field.name());
            record[field.index()] = field.value(given == null ? null : Scalar.read(given));
        }
        return record;
    }

    private DataVal[] ofText(Value input) throws BadInput {
        Map<String, Object> given;
        try {
            given = JsonRecord.parse(input.text());
        } catch (CharacterCodingException e) {
            throw new BadInput("the input is not UTF-8");
        }
        for (String name : given.keySet()) {
            if (!places.containsKey(name)) {
                throw new BadInput("the field " + Json.quoted(name) + " is unknown: the model takes " + names());
            }
        }
        DataVal[] record = empty();
        for (ActiveField field : fields) {
            record[field.index()] = field.value(given.get(field.name()));
        }
        return record;
    }

    private DataVal[] empty() {
        return new DataVal[model.usedSchema().length()];
    }

    private List<String> missing(DataVal[] record) {
        return fields.stream().filter(f -> f.isMissing(record[f.index()])).map(ActiveField::name).limit(20).toList();
    }

    /** The fields, shortened for a sentence. */
    private String names() {
        int most = 20;
        Stream<String> first = fields.stream().limit(most).map(ActiveField::name);
        return first.collect(Collectors.joining(", ")) + (fields.size() > most ? ", …" : "");
    }

    /** Evaluates some input again and again, until Java has compiled what that takes. What comes out does not count. */
    @Override
    public void warmUp() {
        DataVal[] record = empty();
        for (ActiveField field : fields) {
            record[field.index()] = field.sample();
        }
        long until = System.nanoTime() + WARM_UP;
        for (int i = 0; i < WARM_UPS && System.nanoTime() - until < 0; i++) {
            try {
                score(record.clone());
            } catch (Exception | StackOverflowError | NotImplementedError e) {
                return;
            }
        }
    }
}
