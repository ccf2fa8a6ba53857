package topsail.pmml;

import java.nio.file.Path;
import topsail.container.Serve;

/** The program. */
public final class Main {
    private static final int USAGE = 64; // exit status

    private Main() {}

    public static void main(String[] arguments) {
        if (arguments.length != 1 || arguments[0].startsWith("-")) {
            System.err.println("usage: java -jar topsail-pmml.jar MODEL.pmml\nTopsail starts this as a model container.");
            System.exit(USAGE);
        }
        Serve.serve(settings -> PmmlModel.load(Path.of(arguments[0]), settings));
    }
}
