# For the Nomad servers.

server {
  enabled = true

  # Schedulers follow events as hints, and list everything again after a gap. Longer
  # memory means fewer gaps.
  event_buffer_size = 1000

  # Every change of a count is a version of its job. Keep more than a few of them, or
  # the versions that people made are soon forgotten.
  job_tracked_versions = 50
}

# Schedulers, gateways and the management side each hold a few long requests open.
limits {
  http_max_conns_per_client = 500
}

# With access control, see ../policies.
acl {
  enabled = true
}
