# What serves data streams looks for the services of Topsail, as gateways do. Consul lists an instance only to those
# who may read its node, too.
service_prefix "topsail-" {
  policy = "read"
}

node_prefix "" {
  policy = "read"
}
