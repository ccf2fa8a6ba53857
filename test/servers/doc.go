// Package servers runs the real Redis, Consul, Nomad, InfluxDB, Kafka and a schema registry on loopback, for
// tests and for a development cluster. A server can be stopped and started again
// on its data and its port, frozen and killed, as the world does it.
//
// Consul, Nomad and InfluxDB are built by `make servers` from their published
// modules, each in a module of its own below this folder; the jars of Kafka and of the
// registry are fetched by Maven, as their pom.xml there say; Redis and Java are the system's.
package servers
