job "topsail-wine-6eccf43c" {
  type = "service"
  region = "global"
  namespace = "default"
  datacenters = ["dc1", "dc2"]
  node_pool = "default"

  meta = {
    topsail_model      = "wine"
    topsail_version    = "1.2"
    topsail_generation = "1"
    topsail_settings   = "712b8ee4"
    topsail_spec       = "f63e2cc5"
  }

  update {
    max_parallel      = 1
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
        definition = "k3vq5d7xw2ma"
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
      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      kill_timeout = "30s"
      kill_signal  = "SIGTERM"
      driver       = "exec"

      config {
        command = "$${NOMAD_TASK_DIR}/topsail"
        args = ["sidecar"]
      }

      env = {
        "TOPSAIL_INFLUXDB_URL" = "https://influxdb.example:8086"
        "TOPSAIL_OPS_ADDR" = "$${NOMAD_ADDR_ops}"
        "TOPSAIL_SIDECAR_ADDR" = "$${NOMAD_ADDR_rpc}"
        "TOPSAIL_SIDECAR_CONTAINERS_ADDR" = "127.0.0.1:$${NOMAD_PORT_containers}"
        "TOPSAIL_SIDECAR_CONTAINER_TOKEN_FILE" = "$${NOMAD_ALLOC_DIR}/data/container.token"
        "TOPSAIL_SIDECAR_MODELS" = "[{\"model\":\"wine\",\"version\":\"1.2\",\"input_type\":\"doubles\",\"input_length\":13,\"replicas\":0,\"generation\":\"k3vq5d7xw2ma\"}]"
        "TOPSAIL_SIDECAR_REPLICA" = "$${NOMAD_ALLOC_ID}"
        "TOPSAIL_SIDECAR_TOKEN_FILE" = "/etc/topsail/token"
        "TOPSAIL_TLS_CA_FILE" = "/etc/topsail/ca.pem"
        "TOPSAIL_TLS_CERT_FILE" = "/etc/topsail/cert.pem"
        "TOPSAIL_TLS_KEY_FILE" = "/etc/topsail/key.pem"
      }

      artifact {
        source      = "https://models.example/topsail"
        destination = "local/topsail"
        mode        = "file"
        options {
          checksum = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        }
      }

      resources {
        cpu    = 200
        memory = 128
      }
    }

    task "container" {
      kill_timeout = "30s"
      kill_signal  = "SIGTERM"
      driver       = "exec"

      config {
        command = "python3"
        args = ["-m", "topsail", "pipeline"]
        work_dir = "$${NOMAD_TASK_DIR}/../local/wine"
      }

      env = {
        "OMP_NUM_THREADS" = "1"
        "PYTHONUNBUFFERED" = "1"
        "TOPSAIL_INPUT_LENGTH" = "13"
        "TOPSAIL_INPUT_TYPE" = "doubles"
        "TOPSAIL_MODEL" = "wine"
        "TOPSAIL_REPLICA" = "$${NOMAD_ALLOC_ID}"
        "TOPSAIL_SIDECAR" = "127.0.0.1:$${NOMAD_PORT_containers}"
        "TOPSAIL_STAGES" = "[{\"name\":\"decode\",\"code\":\"wine:Decode\",\"workers\":2,\"cpus\":[1,2]},{\"name\":\"rank\",\"code\":\"wine:Rank\",\"batch\":{\"strategy\":\"fixed\",\"max_size\":16,\"delay_micros\":2000}}]"
        "TOPSAIL_TOKEN_FILE" = "$${NOMAD_ALLOC_DIR}/data/container.token"
        "TOPSAIL_VERSION" = "1.2"
      }

      # The driver hides no GPU, so CUDA is told which are this replica's.
      template {
        destination = "${NOMAD_SECRETS_DIR}/gpu.env"
        env         = true
        change_mode = "noop"
        data        = "CUDA_VISIBLE_DEVICES={{ env \"NVIDIA_VISIBLE_DEVICES\" }}\n"
      }

      artifact {
        source      = "https://models.example/wine.tar.gz"
        destination = "local/"
        mode        = "any"
        options {
          checksum = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        }
      }

      artifact {
        source      = "s3::https://s3.example/models/wine.bin"
        destination = "local/wine"
        mode        = "any"
        options {
          checksum = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        }
      }

      resources {
        cpu    = 500
        memory = 4096

        device "nvidia/gpu" {
          count = 1
          constraint {
            attribute = "${device.model}"
            operator  = "regexp"
            value     = " MIG 1g\\.10gb$"
          }
        }
      }

      vault {
        role = "topsail-models"
      }

      # Of the variable nomad/jobs/topsail-wine-6eccf43c. A change reaches the next replicas.
      template {
        destination          = "${NOMAD_SECRETS_DIR}/topsail.env"
        env                  = true
        change_mode          = "noop"
        error_on_missing_key = true
        data                 = <<EOT
{{ with nomadVar "nomad/jobs/topsail-wine-6eccf43c" }}
API_KEY={{ .key.Value | toJSON }}
DB_PASSWORD={{ .password.Value | toJSON }}
{{ end }}
EOT
      }
    }
  }
}
