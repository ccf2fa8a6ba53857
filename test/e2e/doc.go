// Package e2e tests the whole path of a query, client to container. It holds tests only: stories of
// gateways, sidecars and containers in virtual time, and with the tag system what needs TLS or a
// cluster.
package e2e
