// Package cluster runs the roles of a cluster, one to a process: the gateway, the
// sidecar of one replica, the scheduler, and management. Each puts its component
// together with the adapters of Redis, Consul, Nomad and InfluxDB.
package cluster
