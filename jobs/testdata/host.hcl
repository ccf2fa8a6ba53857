job "topsail-wine-6eccf43c" {
  type = "service"
  datacenters = ["*"]

  meta = {
    topsail_model      = "wine"
    topsail_version    = "1.2"
    topsail_generation = "1"
    topsail_settings   = "92ca0026"
    topsail_spec       = "6798bb6f"
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

    ephemeral_disk {
      size = 2860
    }

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
      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

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
        "TOPSAIL_SIDECAR_MANAGEMENT_FILE" = "$${NOMAD_TASK_DIR}/management"
        "TOPSAIL_SIDECAR_MODELS" = "[{\"model\":\"wine\",\"version\":\"1.2\",\"replicas\":0,\"host\":{\"memory_mb\":512}}]"
        "TOPSAIL_SIDECAR_MODELS_DIR" = "$${NOMAD_ALLOC_DIR}/data/models"
        "TOPSAIL_SIDECAR_REPLICA" = "$${NOMAD_ALLOC_ID}"
      }

      # Where Consul controls access, a template reads by the identity of its task alone.
      consul {}

      # Where bundles are fetched. A change is there for the next start.
      template {
        destination = "local/management"
        change_mode = "noop"
        data        = "{{ range service \"topsail-web\" }}{{ with .ServiceMeta.scheme }}{{ . }}{{ else }}http{{ end }} {{ .Address }} {{ .Port }}\n{{ end }}"
      }

      resources {
        cpu    = 200
        memory = 128
      }
    }

    task "container" {
      kill_timeout = "30s"
      kill_signal  = "SIGTERM"
      driver       = "docker"

      config {
        image = "topsail-runtime:1.0"
        args = ["runtime", "--management", "$${NOMAD_TASK_DIR}/management", "--digest", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "--work", "/srv/topsail"]

        network_mode = "host"

        # What bundles need is made once for a node.
        volumes = ["/srv/topsail:/srv/topsail"]
      }

      env = {
        "PYTHONUNBUFFERED" = "1"
        "TOPSAIL_MODEL" = "wine"
        "TOPSAIL_MODELS_DIR" = "$${NOMAD_ALLOC_DIR}/data/models"
        "TOPSAIL_REPLICA" = "$${NOMAD_ALLOC_ID}"
        "TOPSAIL_SIDECAR" = "127.0.0.1:$${NOMAD_PORT_containers}"
        "TOPSAIL_TOKEN_FILE" = "$${NOMAD_ALLOC_DIR}/data/container.token"
        "TOPSAIL_VERSION" = "1.2"
      }

      # Where Consul controls access, a template reads by the identity of its task alone.
      consul {}

      # Where bundles are fetched. A change is there for the next start.
      template {
        destination = "local/management"
        change_mode = "noop"
        data        = "{{ range service \"topsail-web\" }}{{ with .ServiceMeta.scheme }}{{ . }}{{ else }}http{{ end }} {{ .Address }} {{ .Port }}\n{{ end }}"
      }

      resources {
        cpu    = 500
        memory = 640
      }
    }
  }
}
