package topsail.container;

/** The model cannot be served here, however often it is tried; the text says what to change. */
public final class PermanentFailure extends Exception {
    private static final long serialVersionUID = 1;

    public PermanentFailure(String message) {
        super(message);
    }
}
