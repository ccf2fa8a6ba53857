package topsail.container;

/** What makes a model. */
public interface ModelSource {
    /**
     * Loads the model, which may take as long as it takes: the sidecar knows by then that it is loading. It throws {@link
     * PermanentFailure} where trying again will not help.
     */
    Model load(Settings settings) throws Exception;
}
