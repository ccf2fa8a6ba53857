// Package consulregistry finds replicas and elects leaders through Consul.
//
// A Registry watches one service with one blocking query, whatever the number of its instances,
// and keeps the last good list for as long as Consul is unavailable. What an answer adds or
// changes holds at once. What it lacks is another matter, since a list that was emptied by mistake
// stops everything:
//
//   - an answer that has lost more than half of the list, or all of it, is trusted
//     when a consistent read, at least a second later, says so too;
//   - an answer that has lost anything since Consul failed to answer, or since its
//     index went back (it restarted, it was restored, it lost its data), is trusted
//     when consistent reads have said so for Config.Hold. That is a minute unless
//     set: Nomad registers again what Consul has lost every 30 s;
//   - an answer without a known leader, an old one, or one from which the token's
//     rights have taken something, is none.
//
// Announce registers a process that Nomad does not. Lock is a lock with a lease,
// for electing a leader.
//
// With access control on, a token needs service:read and node:read for a Registry,
// key:write and session:write for a Lock, and service:write for Announce.
package consulregistry
