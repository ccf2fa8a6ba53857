job "topsail-wine-6eccf43c" {
  type = "service"
  datacenters = ["*"]

  meta = {
    topsail_model      = "wine"
    topsail_version    = "1.2"
    topsail_generation = "1"
    topsail_settings   = "e0158ef0"
    topsail_spec       = "a5c7e28f"
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
      port "ops" {}
    }

    service {
      provider = "nomad"
      name     = "topsail-sidecar"
      port     = "rpc"
      tags     = ["replica=${NOMAD_ALLOC_ID}", "index=${NOMAD_ALLOC_INDEX}", "model=wine", "version=1.2", "protocol=2"]

      check {
        type     = "http"
        name     = "ready"
        path     = "/health/ready"
        port     = "ops"
        interval = "2s"
        timeout  = "1s"
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
      driver       = "raw_exec"

      config {
        command = "/usr/local/bin/topsail"
        args = ["sidecar"]
      }

      env = {
        "TOPSAIL_OPS_ADDR" = "$${NOMAD_ADDR_ops}"
        "TOPSAIL_SIDECAR_ADDR" = "$${NOMAD_ADDR_rpc}"
        "TOPSAIL_SIDECAR_CONTAINERS_ADDR" = "127.0.0.1:$${NOMAD_PORT_containers}"
        "TOPSAIL_SIDECAR_CONTAINER_TOKEN_FILE" = "$${NOMAD_ALLOC_DIR}/data/container.token"
        "TOPSAIL_SIDECAR_MODELS" = "[{\"model\":\"wine\",\"version\":\"1.2\",\"input_type\":\"doubles\",\"input_length\":13,\"replicas\":0,\"container_addr\":\"127.0.0.1:7000\",\"protocol\":\"v1\",\"connections\":4}]"
        "TOPSAIL_SIDECAR_REPLICA" = "$${NOMAD_ALLOC_ID}"
      }

      resources {
        cpu    = 200
        memory = 128
      }
    }
  }
}
