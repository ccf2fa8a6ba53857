# For the Nomad clients that run Topsail and its models. The blocks go into the
# agent's own configuration.

client {
  enabled = true

  # Nomad's default, and what the jobs of Topsail ask for: less would cut off what is in flight. Models that answer
  # in parts may need more, as jobs.kill_timeout_micros says.
  max_kill_timeout = "30s"

  # The network that host_network names in the jobs; without one it is the default
  # network. On loopback, Topsail needs neither keys nor certificates.
  host_network "loopback" {
    cidr = "127.0.0.0/8"
  }

  # Folders of the node that outlive allocations, for a Redis or an InfluxDB in docker
  # or exec: -var host_volume=redis. They must exist.
  host_volume "redis" {
    path = "/var/lib/topsail/redis"
  }

  host_volume "influxdb" {
    path = "/var/lib/topsail/influxdb"
  }
}

# raw_exec runs programs as the agent's user and without isolation. The jobs use it
# unless told otherwise, since it runs whatever the node has. With exec or docker for
# Topsail (-var driver=…) and for its models (TOPSAIL_JOBS_DRIVER), leave it off.
plugin "raw_exec" {
  config {
    enabled = true
  }
}

# Gateways, schedulers and the management side each hold a few long requests open.
limits {
  http_max_conns_per_client = 500
}
