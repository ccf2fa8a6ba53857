// Package state keeps what the selection policies of a gateway's apps have learned.
//
// Reading never waits: Get answers with what this gateway knows by now, a user who is
// not known yet has the app's state, and states that are asked for are read again in
// the background about once a second, so that what other gateways learn is seen here.
// Learning waits: Train returns when the store has what was learned. A state is
// replaced only if it has not changed meanwhile; else it is read, and learns,
// again, so that several gateways train the same state and lose nothing.
package state
