/**
 * Serves PMML models: {@code java -jar topsail-pmml.jar model.pmml}. PMML4S evaluates them.
 *
 * <p>A model file may be anybody's, and so may inputs: the text of the file is looked over before the evaluator sees it ({@link
 * topsail.pmml.PmmlFile}), and so is every value of an input ({@link topsail.pmml.ActiveField}).
 */
package topsail.pmml;
