# For all Nomad agents: Nomad registers the services of its jobs with the Consul agent
# on the same node.

consul {
  address = "127.0.0.1:8500"

  # With access control, on the servers: identities with which jobs get their tokens of
  # Consul. See ../policies. What the agents need themselves is in Nomad's own manual.
  service_identity {
    aud = ["consul.io"]
    ttl = "1h"
  }

  task_identity {
    aud = ["consul.io"]
    ttl = "1h"
  }
}
