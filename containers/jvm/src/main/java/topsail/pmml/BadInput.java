package topsail.pmml;

/** An input that the model cannot take, as a sentence for people. */
final class BadInput extends Exception {
    private static final long serialVersionUID = 1;

    BadInput(String message) {
        super(message, null, false, false); // for each bad input, so without a trace
    }
}
