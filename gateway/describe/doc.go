// Package describe writes what a query port is as an OpenAPI 3.1 document, for programs that
// makes clients of it: each app with its path, what inputs it takes, and an example of one.
//
// What is the same for all apps stands in shared.json. Apps that take inputs of the same
// type and length share their schemas, and of an app itself little is written, because a
// gateway may have ten thousand. The same apps make the same bytes.
package describe
