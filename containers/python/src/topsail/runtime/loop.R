# Runs the predict function of a file for topsail.runtime.r: Rscript --vanilla loop.R FILE DESCRIPTOR.
# A line {"inputs": [...]} comes on standard input for every batch; {"outputs": [...]} or {"error": "..."} goes to the
# descriptor. Inputs are a list of vectors or texts; predict returns a list, a vector, or a matrix with a row per input.
arguments <- commandArgs(trailingOnly = TRUE)
if (!requireNamespace("jsonlite", quietly = TRUE)) quit(status = 3)
questions <- file("stdin", open = "r")
answers <- file(paste0("/dev/fd/", arguments[2]), open = "w", raw = TRUE)

answer <- function(value) {
  json <- jsonlite::toJSON(value, auto_unbox = TRUE, digits = NA, null = "null", na = "null")
  writeLines(as.character(json), answers)
  flush(answers)
}

tried <- function(work) {
  tryCatch(work(), error = function(e) list(error = conditionMessage(e)))
}

outputs_of <- function(outputs) {
  if (is.matrix(outputs)) {
    return(lapply(seq_len(nrow(outputs)), function(i) I(unname(outputs[i, ]))))
  }
  if (is.factor(outputs)) outputs <- as.character(outputs)
  unname(as.list(outputs))
}

loaded <- tried(function() {
  source(arguments[1], local = globalenv(), chdir = TRUE)
  if (!exists("predict", envir = globalenv(), inherits = FALSE)) stop("it defines no function predict(inputs)")
  list(ready = TRUE)
})
answer(loaded)
if (!is.null(loaded$error)) quit(status = 1)

while (length(line <- readLines(questions, n = 1)) > 0) {
  inputs <- jsonlite::fromJSON(line, simplifyVector = TRUE, simplifyMatrix = FALSE)$inputs
  answer(tried(function() list(outputs = outputs_of(get("predict", envir = globalenv())(as.list(inputs))))))
}
