# Schedulers look for the services of Topsail.
service_prefix "topsail-" {
  policy = "read"
}

node_prefix "" {
  policy = "read"
}

# One of them leads: it holds a key below topsail/scheduler with a session of the
# node that it happens to run on.
key_prefix "topsail/scheduler/" {
  policy = "write"
}

session_prefix "" {
  policy = "write"
}
