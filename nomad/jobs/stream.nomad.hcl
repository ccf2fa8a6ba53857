# Streams: records of Kafka and Redis Streams, which apps predict, and models that come as messages.
#
#   nomad job run -var "config=$(cat streams.toml)" stream.nomad.hcl
#
# The file has the [[stream]] and [[model_stream]] tables (docs/streams.md), these with the api of
# the management side; it may use what Nomad puts into templates,
# such as {{ env "NOMAD_SECRETS_DIR" }}. With several instances the members of a consumer group
# share its records. Each is a gateway, too, that only its own process can ask.

variable "datacenters" {
  description = "datacenters to run in"
  type        = list(string)
  default     = ["*"]
}

variable "namespace" {
  description = "Nomad namespace"
  type        = string
  default     = "default"
}

variable "node_pool" {
  description = "node pool to run in"
  type        = string
  default     = "default"
}

variable "config" {
  description = "the configuration file with the streams, as text"
  type        = string
  default     = ""
}

variable "config_file" {
  description = "path of the configuration file on the nodes, instead of its text"
  type        = string
  default     = ""
}

variable "count" {
  description = "number of processes; a stream has work for as many as it has partitions"
  type        = number
  default     = 1
}

variable "ops_port" {
  description = "port of metrics and health checks; 0 lets Nomad choose"
  type        = number
  default     = 0
}

variable "host_network" {
  description = "network of the node to listen on, by its name in the agent's configuration"
  type        = string
  default     = "default"
}

variable "program" {
  description = "path of topsail on the nodes or in the image, or the URL of the program or of an archive with it"
  type        = string
  default     = "/usr/local/bin/topsail"
}

variable "checksum" {
  description = "of the program, when it is a URL: sha256:…"
  type        = string
  default     = ""
}

variable "driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = "raw_exec"
}

variable "image" {
  description = "image for the docker driver"
  type        = string
  default     = ""
}

variable "cpu" {
  description = "MHz of a process"
  type        = number
  default     = 500
}

variable "memory" {
  description = "MB of a process"
  type        = number
  default     = 256
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = "consul"
}

variable "redis_addrs" {
  description = "addresses of Redis, of its Sentinels or of its cluster's nodes"
  type        = list(string)
  default     = ["127.0.0.1:6379"]
}

variable "redis_password_file" {
  description = "file of the password of Redis"
  type        = string
  default     = ""
}

variable "influxdb_url" {
  description = "address of InfluxDB"
  type        = string
  default     = "http://127.0.0.1:8086"
}

variable "influxdb_token_file" {
  description = "file of the token of InfluxDB, for version 1 user:password"
  type        = string
  default     = ""
}

variable "consul_addr" {
  description = "address of Consul's API; the agent on the node"
  type        = string
  default     = "http://127.0.0.1:8500"
}

variable "consul_token_file" {
  description = "file of the Consul token, when it does not come from the workload identity"
  type        = string
  default     = ""
}

variable "consul_identity" {
  description = "get the Consul token from the workload identity; Nomad and Consul must be set up for it"
  type        = bool
  default     = false
}

variable "cert_file" {
  description = "certificate of this job; with it every listener speaks TLS, to health checks too"
  type        = string
  default     = ""
}

variable "key_file" {
  description = "key of the certificate"
  type        = string
  default     = ""
}

variable "ca_file" {
  description = "certificates that peers must have; with it gateways and sidecars use mutual TLS"
  type        = string
  default     = ""
}

variable "ops_keys_file" {
  description = "file of the keys that scrapers must show"
  type        = string
  default     = ""
}

variable "sidecar_token_file" {
  description = "file of the token that gateways show to sidecars"
  type        = string
  default     = ""
}

variable "secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-stream to write to files of their names in $${NOMAD_SECRETS_DIR}, for the settings above"
  type        = list(string)
  default     = []
}

variable "env" {
  description = "more settings, such as TOPSAIL_STREAMS_ONLY"
  type        = map(string)
  default     = {}
}

locals {
  download = length(split("://", var.program)) > 1
  docker   = var.driver == "docker"
  secure   = var.cert_file != ""
  scheme   = local.secure ? "https" : "http"
}

job "topsail-stream" {
  type        = "service"
  datacenters = var.datacenters
  namespace   = var.namespace
  node_pool   = var.node_pool

  group "stream" {
    count          = var.count
    shutdown_delay = "1s"

    network {
      mode = "host"

      port "ops" {
        static       = var.ops_port
        host_network = var.host_network
      }
    }

    # One at a time, and back when the new one does not get ready.
    update {
      max_parallel      = 1
      health_check      = "checks"
      min_healthy_time  = "5s"
      healthy_deadline  = "2m"
      progress_deadline = "5m"
      auto_revert       = true
    }

    # So that they do not go down together with one node.
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
      delay_function = "constant"
      unlimited      = true
    }

    # The state on disk goes along when a process is replaced on its node.
    ephemeral_disk {
      sticky = true
      size   = 300
    }

    service {
      name     = "topsail-stream"
      provider = var.service_provider
      port     = "ops"

      meta {
        alloc_id = "${NOMAD_ALLOC_ID}"
        ops_addr = "${NOMAD_ADDR_ops}"
        scheme   = local.scheme
      }

      check {
        type            = "http"
        port            = "ops"
        path            = "/health/ready"
        protocol        = local.scheme
        tls_skip_verify = local.secure
        interval        = "2s"
        timeout         = "1s"
      }
    }

    task "stream" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "20s" # longer than TOPSAIL_STREAMS_DRAIN_TIMEOUT_MICROS, in which the records in flight end

      config {
        command      = local.download ? "local/topsail" : var.program
        args         = ["stream"]
        image        = local.docker ? var.image : null
        network_mode = local.docker ? "host" : null
      }

      dynamic "artifact" {
        for_each = local.download ? [var.program] : []
        content {
          source      = artifact.value
          destination = "local"

          dynamic "options" {
            for_each = var.checksum == "" ? [] : [var.checksum]
            content {
              checksum = options.value
            }
          }
        }
      }

      dynamic "template" {
        for_each = var.config == "" ? [] : [var.config]
        content {
          data        = template.value
          destination = "local/topsail.toml"
        }
      }

      dynamic "template" {
        for_each = var.secrets
        content {
          data        = "{{ with nomadVar \"nomad/jobs/topsail-stream\" }}{{ index . \"${template.value}\" }}{{ end }}"
          destination = "secrets/${template.value}"
          perms       = var.driver == "raw_exec" ? "600" : "644"
          change_mode = "noop" # topsail reads changed files again
        }
      }

      dynamic "identity" {
        for_each = var.consul_identity ? ["consul.io"] : []
        content {
          name = "consul_default"
          aud  = [identity.value]
          ttl  = "1h"
        }
      }

      dynamic "consul" {
        for_each = var.consul_identity ? ["default"] : []
        content {}
      }

      env = merge({
        TOPSAIL_DATA_DIR            = "${NOMAD_ALLOC_DIR}/data"
        TOPSAIL_CONFIG              = var.config == "" ? var.config_file : "${NOMAD_TASK_DIR}/topsail.toml"
        TOPSAIL_STREAMS_NAME        = "${NOMAD_REGION}-${NOMAD_NAMESPACE}-${NOMAD_JOB_NAME}-${NOMAD_ALLOC_INDEX}" # kept by who takes its place
        TOPSAIL_OPS_ADDR            = "${NOMAD_ADDR_ops}"
        TOPSAIL_OPS_KEYS_FILE       = var.ops_keys_file
        TOPSAIL_TLS_CERT_FILE       = var.cert_file
        TOPSAIL_TLS_KEY_FILE        = var.key_file
        TOPSAIL_TLS_CA_FILE         = var.ca_file
        TOPSAIL_SIDECAR_TOKEN_FILE  = var.sidecar_token_file
        TOPSAIL_REDIS_ADDRS         = join(",", var.redis_addrs)
        TOPSAIL_REDIS_PASSWORD_FILE = var.redis_password_file
        TOPSAIL_INFLUXDB_URL        = var.influxdb_url
        TOPSAIL_INFLUXDB_TOKEN_FILE = var.influxdb_token_file
        CONSUL_HTTP_ADDR            = var.consul_addr
        CONSUL_HTTP_TOKEN_FILE      = var.consul_token_file
      }, var.env)

      resources {
        cpu    = var.cpu
        memory = var.memory
      }
    }
  }
}
