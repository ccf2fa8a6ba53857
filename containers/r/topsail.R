# Deploys models of an R session to Topsail. It needs jsonlite; topsail_deploy also Python with the package topsail.
#
#   source("topsail.R")
#   model <- lm(dist ~ speed, cars)
#   stopping <- function(inputs) predict(model, data.frame(speed = unlist(inputs)))
#   topsail_deploy("stopping", stopping, example = 12.5)

# Saves a function of a list of inputs, with what it uses of the global environment, in a folder that topsail.deploy_r
# takes. `packages` are loaded where it runs, and have to be installed there.
topsail_save <- function(folder, predict, packages = topsail_packages()) {
  stopifnot(is.function(predict))
  dir.create(folder, showWarnings = FALSE, recursive = TRUE)
  objects <- mget(topsail_globals(predict), envir = globalenv())
  saveRDS(list(predict = predict, objects = objects, packages = packages), file.path(folder, "model.rds"))
  writeLines(topsail_model, file.path(folder, "model.R"))
  invisible(folder)
}

# Deploys such a function: it is tried on the example, and a replica of it is ready at the end. The example is an input:
# a vector of numbers, or a text. More arguments are those of topsail.deploy_r: version, slo.
topsail_deploy <- function(name, predict, example, ..., packages = topsail_packages(), python = "python3") {
  folder <- tempfile("topsail-")
  request <- tempfile("topsail-", fileext = ".json")
  on.exit(unlink(c(folder, request), recursive = TRUE))
  topsail_save(folder, predict, packages)
  kind <- if (is.character(example)) "strings" else if (is.integer(example)) "integers" else "doubles"
  if (kind == "strings") example <- jsonlite::unbox(example)
  terms <- lapply(list(name = name, path = folder, input_type = kind, ...), jsonlite::unbox)
  writeLines(jsonlite::toJSON(c(terms, list(example = example)), digits = NA), request)
  code <- "import json, sys, topsail; topsail.deploy_r(**json.load(open(sys.argv[1])))"
  # R looks for its own libraries first, among which Python may find one of another Python.
  status <- system2(python, c("-c", shQuote(code), shQuote(request)), env = "LD_LIBRARY_PATH=")
  if (status != 0) stop(name, " could not be deployed: the reason is above")
  invisible(name)
}

# What reads it back. The function's own `predict` is R's, not the one that Topsail calls, so its names are looked up in
# an environment beside the global one.
topsail_model <- '
saved <- readRDS("model.rds")
for (package in saved$packages) library(package, character.only = TRUE)
list2env(saved$objects, globalenv())
predict <- local({
  place <- list2env(saved$objects, parent = parent.env(globalenv()))
  moved <- function(f) {
    if (identical(environment(f), globalenv())) environment(f) <- place
    f
  }
  for (name in names(Filter(is.function, saved$objects))) assign(name, moved(get(name, place)), place)
  moved(saved$predict)
})
'

# Those that are attached here, beside what every R has.
topsail_packages <- function() setdiff(.packages(), c("base", getOption("defaultPackages")))

# The names of global variables that a function uses, itself and by the functions among them.
topsail_globals <- function(f, known = character()) {
  for (name in setdiff(all.names(body(f), unique = TRUE), known)) {
    if (!exists(name, envir = globalenv(), inherits = FALSE)) next
    known <- union(known, name)
    value <- get(name, envir = globalenv())
    if (is.function(value)) known <- topsail_globals(value, known)
  }
  known
}
