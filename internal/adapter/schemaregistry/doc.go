// Package schemaregistry asks a schema registry that has Confluent's API, such as Confluent's own,
// Karapace, Apicurio or Redpanda's.
package schemaregistry
