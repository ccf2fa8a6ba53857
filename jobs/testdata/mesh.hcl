job "topsail-wine-6eccf43c" {
  type = "service"
  datacenters = ["*"]

  meta = {
    topsail_model      = "wine"
    topsail_version    = "1.2"
    topsail_generation = "1"
    topsail_settings   = "70b7e27f"
    topsail_spec       = "05aca598"
  }

  update {
    max_parallel      = 1
    canary            = 2
    auto_promote      = true
    auto_revert       = true
    health_check      = "checks"
    min_healthy_time  = "2s"
    healthy_deadline  = "10m"
    progress_deadline = "11m"
  }

  group "replica" {
    count = 2

    network {
      mode = "host"
      port "rpc" {}
      port "containers" {}
      port "v1" {
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
        protocol = "https"

        # The agent does not know our CA.
        tls_skip_verify = true

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
        protocol        = "https"
        tls_skip_verify = true

        check_restart {
          limit = 3
          grace = "10s"
        }
      }

      task = "sidecar"
      connect {
        native = true
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
        "TOPSAIL_SIDECAR_CONTAINER_ADDR" = "127.0.0.1:$${NOMAD_PORT_v1}"
        "TOPSAIL_SIDECAR_CONTAINER_TOKEN_FILE" = "$${NOMAD_ALLOC_DIR}/data/container.token"
        "TOPSAIL_SIDECAR_MODELS" = "[{\"model\":\"wine\",\"version\":\"1.2\",\"input_type\":\"doubles\",\"input_length\":13,\"replicas\":0,\"protocol\":\"v1\",\"connections\":2}]"
        "TOPSAIL_SIDECAR_REPLICA" = "$${NOMAD_ALLOC_ID}"
        "TOPSAIL_TLS_CA_FILE" = "$${NOMAD_SECRETS_DIR}/ca.pem"
        "TOPSAIL_TLS_CERT_FILE" = "$${NOMAD_SECRETS_DIR}/cert.pem"
        "TOPSAIL_TLS_KEY_FILE" = "$${NOMAD_SECRETS_DIR}/key.pem"
      }

      resources {
        cpu    = 200
        memory = 128
      }

      # The mesh's certificates. The sidecar reads them again when they change.
      template {
        destination = "${NOMAD_SECRETS_DIR}/cert.pem"
        change_mode = "noop"
        data        = "{{ with caLeaf \"topsail-sidecar\" }}{{ .CertPEM }}{{ end }}"
      }
      template {
        destination = "${NOMAD_SECRETS_DIR}/key.pem"
        perms       = "0600"
        change_mode = "noop"
        data        = "{{ with caLeaf \"topsail-sidecar\" }}{{ .PrivateKeyPEM }}{{ end }}"
      }
      template {
        destination = "${NOMAD_SECRETS_DIR}/ca.pem"
        change_mode = "noop"
        data        = "{{ range caRoots }}{{ .RootCertPEM }}{{ end }}"
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
      driver       = "raw_exec"

      config {
        command = "python3"
        args = ["container.py", "--listen=127.0.0.1:$${NOMAD_PORT_v1}"]
      }

      env = {
        "CLIPPER_PORT" = "$${NOMAD_PORT_v1}"
        "PORT" = "$${NOMAD_PORT_v1}"
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
        cpu    = 500
        memory = 300
      }
    }
  }
}
