/**
 * Serves PMML models: {@code java -jar topsail-pmml.jar model.pmml}. PMML4S evaluates them.
 *
 * <p>Model files and inputs are untrusted: the text of the file is looked over before the evaluator sees it ({@link
 * topsail.pmml.PmmlFile}), and so is every value of an input ({@link topsail.pmml.ActiveField}).
 */
package topsail.pmml;
