// Package e2e tests the whole path of a query, gateway to container, in one
// process and over real connections. It holds tests only.
package e2e
