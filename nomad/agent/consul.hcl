# For the Consul agents. On the nodes that run Topsail there is one each: gateways and
# schedulers ask the agent beside them.

# Each gateway holds a few long requests open.
limits {
  http_max_conns_per_client = 500
}

# On the servers: find out soon that a leader is gone. The default of 5 is for small
# machines.
performance {
  raft_multiplier = 1
}

# With access control, see ../policies.
acl {
  enabled        = true
  default_policy = "deny"
}
