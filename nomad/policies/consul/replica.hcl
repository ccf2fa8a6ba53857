# Replicas fetch their bundles from the management processes that Consul names.
service "topsail-web" {
  policy = "read"
}

node_prefix "" {
  policy = "read"
}
