# The management side shows the services of Topsail, and which scheduler leads.
service_prefix "topsail-" {
  policy = "read"
}

node_prefix "" {
  policy = "read"
}

key_prefix "topsail/scheduler/" {
  policy = "read"
}
