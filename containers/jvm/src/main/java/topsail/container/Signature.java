package topsail.container;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import topsail.rpc.DType;
import topsail.rpc.Value;

/**
 * The named inputs and outputs of a model version. Without inputs, the input is the one that the input type says; without outputs,
 * they are not checked.
 */
public record Signature(List<Tensor> inputs, List<Tensor> outputs) {
    /** That of a version without one. */
    public static final Signature NONE = new Signature(List.of(), List.of());

    /** Reads the JSON that Topsail gives a container. It throws IllegalArgumentException. */
    public static Signature parse(String json) {
        Map<String, Object> document = Json.object(json);
        return new Signature(tensors(document.get("inputs")), tensors(document.get("outputs")));
    }

    private static List<Tensor> tensors(Object list) {
        List<Tensor> tensors = new ArrayList<>();
        for (Object entry : list(list)) {
            if (!(entry instanceof Map<?, ?> members && members.get("name") instanceof String name)) {
                throw new IllegalArgumentException("an input or output has no name");
            }
            DType type = members.get("type") instanceof String text ? DType.of(text) : null;
            if (type == null) {
                throw new IllegalArgumentException(Json.quoted(name) + " has the element type " + members.get("type")
                        + ", which is unknown: it needs a newer container");
            }
            tensors.add(new Tensor(name, type, list(members.get("shape")).stream().map(Signature::dimension).toList()));
        }
        return List.copyOf(tensors);
    }

    private static List<?> list(Object value) {
        if (value == null) {
            return List.of();
        }
        if (value instanceof List<?> list) {
            return list;
        }
        throw new IllegalArgumentException(value + " is not a list");
    }

    private static int dimension(Object value) {
        if (value instanceof Double number && number == number.intValue() && number >= -1) {
            return number.intValue();
        }
        throw new IllegalArgumentException(value + " is not a dimension");
    }

    /** Why a query does not fit, or null. Its values are in the order of the app's signature. */
    String inputProblem(List<Value> values) {
        Map<String, Value> given = byName(values);
        if (values.size() != inputs.size() || inputs.stream().anyMatch(t -> !given.containsKey(t.name()))) {
            return "this model takes " + names(inputs) + ", and got " + names(given);
        }
        return inputs.stream().map(t -> t.problem(given.get(t.name()))).filter(p -> p != null).findFirst().orElse(null);
    }

    /**
     * What a model has answered, in order. It throws IllegalArgumentException for what does not fit. One output alone needs no name.
     */
    List<Value> outputs(List<Value> values) {
        if (outputs.isEmpty()) {
            return values;
        }
        if (outputs.size() == 1 && values.size() == 1 && values.get(0).name().isEmpty()) {
            values = List.of(values.get(0).named(outputs.get(0).name()));
        }
        Map<String, Value> given = byName(values);
        if (values.size() != outputs.size() || outputs.stream().anyMatch(t -> !given.containsKey(t.name()))) {
            throw new IllegalArgumentException("the outputs must be " + names(outputs) + ", and are " + names(given));
        }
        for (Tensor tensor : outputs) {
            String problem = tensor.problem(given.get(tensor.name()));
            if (problem != null) {
                throw new IllegalArgumentException("output " + problem);
            }
        }
        return outputs.stream().map(tensor -> given.get(tensor.name())).toList();
    }

    /** Values by their names. */
    static Map<String, Value> byName(List<Value> values) {
        Map<String, Value> named = new LinkedHashMap<>();
        for (Value value : values) {
            named.put(value.name(), value);
        }
        return named;
    }

    private static String names(Map<String, Value> given) {
        return given.isEmpty() ? "nothing" : given.keySet().stream().map(Json::quoted).collect(Collectors.joining(", "));
    }

    /** The names of tensors, for a message. */
    static String names(List<Tensor> tensors) {
        return tensors.stream().map(Tensor::quoted).collect(Collectors.joining(", "));
    }
}
