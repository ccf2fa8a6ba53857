// Package apiclient speaks HTTP to the management API, and to gateways. Every call has a deadline,
// every answer a bound, and what is safe to send twice is sent again when the server is
// unavailable for a moment.
package apiclient
