# What an R model needs: a function of a list of inputs that returns a list, a vector, or a matrix with a row for each.
predict <- function(inputs) {
  vapply(inputs, function(x) mean(tail(x, 3)), numeric(1))
}
