// Package serving holds the domain of Topsail: inputs and outputs, apps, models
// and their versions, predictions, and the causes why a query got its default
// output. It imports the standard library only, and everything else imports it.
//
// Values of this package are plain data. A slice inside an Input or Output is
// never written to after the value has been handed on, so both may be shared
// between goroutines, caches and connections without copying.
package serving
