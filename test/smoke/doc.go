// Package smoke puts Topsail together once with the real Consul, Nomad, InfluxDB, Redis and Kafka, and walks through what
// it is for, as the last part of the gate. How fast that goes is for other tests.
package smoke
