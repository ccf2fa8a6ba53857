job "topsail-wine-6eccf43c" {
  type = "service"
  datacenters = ["*"]

  meta = {
    topsail_model      = "wine"
    topsail_version    = "1.2"
    topsail_generation = "1"
    topsail_settings   = "7928faa7"
    topsail_spec       = "520a8987"
  }

  # Without deployments: one that runs would forbid every change of the count.
  update {
    max_parallel = 0
  }

  group "replica" {
    count = 2

    network {
      mode = "host"
      port "rpc" {}
      port "containers" {}
      port "v1" {
        to = 7000
      }
      port "ops" {}
    }

    service {
      provider = "consul"
      name     = "topsail-sidecar"
      port     = "rpc"

      meta {
        replica  = "${NOMAD_ALLOC_ID}"
        index    = "${NOMAD_ALLOC_INDEX}"
        model    = "wine"
        version  = "1.2"
        protocol = "2"
        ops_addr = "${NOMAD_ADDR_ops}"
      }

      check {
        type     = "http"
        name     = "ready"
        path     = "/health/ready"
        port     = "ops"
        interval = "2s"
        timeout  = "1s"

        failures_before_critical = 2
      }

      # A container that hangs, or a sidecar, is started anew.
      check {
        type     = "http"
        name     = "live"
        path     = "/health/live"
        port     = "ops"
        interval = "5s"
        timeout  = "3s"

        check_restart {
          limit = 3
          grace = "10s"
        }
      }
    }

    shutdown_delay = "2.1s"

    # So that replicas do not go down together with one node.
    spread {
      attribute = "${node.unique.id}"
    }

    restart {
      attempts = 3
      interval = "1m"
      delay    = "1s"
      mode     = "fail"
    }

    reschedule {
      delay          = "5s"
      delay_function = "exponential"
      max_delay      = "1m"
      unlimited      = true
    }

    # A node that Nomad does not hear of may well serve on.
    disconnect {
      lost_after = "5m"
      replace    = true
      reconcile  = "keep_original"
    }

    task "sidecar" {
      kill_timeout = "30s"
      kill_signal  = "SIGTERM"
      driver       = "docker"

      config {
        image = "topsail:1.0"
        args = ["sidecar"]

        network_mode = "host"
      }

      env = {
        "TOPSAIL_OPS_ADDR" = "$${NOMAD_ADDR_ops}"
        "TOPSAIL_SIDECAR_ADDR" = "$${NOMAD_ADDR_rpc}"
        "TOPSAIL_SIDECAR_CONTAINERS_ADDR" = "127.0.0.1:$${NOMAD_PORT_containers}"
        "TOPSAIL_SIDECAR_CONTAINER_ADDR" = "$${NOMAD_ADDR_v1}"
        "TOPSAIL_SIDECAR_CONTAINER_TOKEN_FILE" = "$${NOMAD_ALLOC_DIR}/data/container.token"
        "TOPSAIL_SIDECAR_MODELS" = "[{\"model\":\"wine\",\"version\":\"1.2\",\"input_type\":\"doubles\",\"input_length\":13,\"replicas\":0,\"protocol\":\"v1\"}]"
        "TOPSAIL_SIDECAR_REPLICA" = "$${NOMAD_ALLOC_ID}"
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }

    task "container" {
      # A container of version 1 does not drain: the sidecar does, and then tells it to end.
      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      kill_timeout = "30s"
      kill_signal  = "SIGTERM"
      driver       = "docker"

      config {
        image = "models/wine:1.2"
        command = "/wine"
        work_dir = "/srv"

        ports = ["v1"]
        runtime = "nvidia"
      }

      env = {
        "PORT" = "7000"
        "PYTHONUNBUFFERED" = "1"
        "TOPSAIL_INPUT_LENGTH" = "13"
        "TOPSAIL_INPUT_TYPE" = "doubles"
        "TOPSAIL_MODEL" = "wine"
        "TOPSAIL_REPLICA" = "$${NOMAD_ALLOC_ID}"
        "TOPSAIL_SIDECAR" = "127.0.0.1:$${NOMAD_PORT_containers}"
        "TOPSAIL_TOKEN_FILE" = "$${NOMAD_ALLOC_DIR}/data/container.token"
        "TOPSAIL_VERSION" = "1.2"
      }

      resources {
        cpu    = 1000
        memory = 2048

        device "nvidia/gpu" {
          count = 2
          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "20480 MiB"
          }
        }
      }
    }
  }
}
