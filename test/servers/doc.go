// Package servers runs the real Redis, Consul, Nomad, InfluxDB and Kafka on loopback, for
// tests and for a development cluster. A server can be stopped and started again
// on its data and its port, frozen and killed, as the world does it.
//
// Consul, Nomad and InfluxDB are built by `make servers` from their published
// modules, each in a module of its own below this folder; Kafka's jars are fetched by
// Maven, as its pom.xml there says; Redis and Java are the system's.
package servers
