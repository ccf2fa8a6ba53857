# The gateways: they answer queries, and ask the replicas that Consul names.
#
#   nomad job run gateway.nomad.hcl
#   nomad job run -var type=system -var program=https://models.example/topsail -var checksum=sha256:… gateway.nomad.hcl
#
# The defaults fit a development cluster on one machine. Topsail refuses to listen
# on an address that other machines can reach without authentication: on
# their nodes set keys_file, ops_keys_file, cert_file and key_file, or let a proxy
# encrypt and set TOPSAIL_TLS_EXTERNAL=true through env.

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

variable "type" {
  description = "service: count gateways, wherever there is room; system: one on every node, such as behind a load balancer that knows the nodes"
  type        = string
  default     = "service"

  validation {
    condition     = var.type == "service" || var.type == "system"
    error_message = "The type is service or system."
  }
}

variable "count" {
  description = "number of gateways; a system job ignores it"
  type        = number
  default     = 1
}

variable "per_node" {
  description = "number of gateways on one node at most, so that a drain or a failure does not bring them together; what finds no node waits for one. 0: any number"
  type        = number
  default     = 1
}

variable "port" {
  description = "port for queries; 0 lets Nomad choose, which several gateways on one node need"
  type        = number
  default     = 1337
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
  description = "MHz of a gateway"
  type        = number
  default     = 500
}

variable "memory" {
  description = "MB of a gateway"
  type        = number
  default     = 256
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = "consul"
}

variable "grpc_port" {
  description = "port for gRPC, such as 1339; 0 for none"
  type        = number
  default     = 0
}

variable "traefik_rule" {
  description = "rule of the Traefik router that leads here, such as PathPrefix(`/`); empty for none"
  type        = string
  default     = ""
}

variable "fabio_route" {
  description = "host and path that fabio leads here, such as predict.example/; empty for none"
  type        = string
  default     = ""
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

variable "keys_file" {
  description = "file of the keys that queries must show"
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
  description = "items of the Nomad variable nomad/jobs/topsail-gateway to write to files of their names in $${NOMAD_SECRETS_DIR}, for the settings above"
  type        = list(string)
  default     = []
}

variable "data_dir" {
  description = "folder of the last good state, from which a gateway starts while Redis is unavailable"
  type        = string
  default     = "$${NOMAD_ALLOC_DIR}/data"
}

variable "env" {
  description = "more settings, such as TOPSAIL_LOG_LEVEL"
  type        = map(string)
  default     = {}
}

variable "shutdown_delay" {
  description = "between leaving Consul and the signal to stop; longer than load balancers take to notice"
  type        = string
  default     = "5s"
}

locals {
  download = length(split("://", var.program)) > 1
  docker   = var.driver == "docker"
  secure   = var.cert_file != ""
  scheme   = local.secure ? "https" : "http"

  traefik = concat(
    ["traefik.enable=true", "traefik.http.routers.topsail.rule=${var.traefik_rule}"],
    local.secure ? ["traefik.http.services.topsail.loadbalancer.server.scheme=https"] : [],
  )
  fabio = ["urlprefix-${var.fabio_route}${local.secure ? " proto=https" : ""}"]
}

job "topsail-gateway" {
  type        = var.type
  datacenters = var.datacenters
  namespace   = var.namespace
  node_pool   = var.node_pool

  group "gateway" {
    count          = var.type == "system" ? 1 : var.count
    shutdown_delay = var.shutdown_delay

    network {
      mode = "host"

      port "http" {
        static       = var.port
        host_network = var.host_network
      }

      dynamic "port" {
        for_each = var.grpc_port > 0 ? [var.grpc_port] : []
        labels   = ["grpc"]
        content {
          static       = port.value
          host_network = var.host_network
        }
      }

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
      auto_revert       = var.type == "service"
      stagger           = "15s"
    }

    # So that they do not go down together with one node. One on every node needs no such rule.
    dynamic "spread" {
      for_each = var.type == "service" ? ["${node.unique.id}"] : []
      content {
        attribute = spread.value
      }
    }

    # Spread prefers; without a bound, what one drained node left on another would stay there.
    dynamic "constraint" {
      for_each = var.type == "service" && var.per_node > 0 ? [var.per_node] : []
      content {
        distinct_property = "${node.unique.id}"
        value             = constraint.value
      }
    }

    # A system job has no other node to go to, so it tries again here for ever.
    restart {
      attempts = 3
      interval = "1m"
      delay    = "1s"
      mode     = var.type == "system" ? "delay" : "fail"
    }

    dynamic "reschedule" {
      for_each = var.type == "service" ? ["service"] : []
      content {
        delay          = "5s"
        delay_function = "constant"
        unlimited      = true
      }
    }

    # The state on disk goes along when a gateway is replaced on its node.
    ephemeral_disk {
      sticky = true
      size   = 300
    }

    service {
      name     = "topsail-gateway"
      provider = var.service_provider
      port     = "http"
      tags     = concat(var.traefik_rule == "" ? [] : local.traefik, var.fabio_route == "" ? [] : local.fabio)

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

    task "gateway" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "20s" # longer than TOPSAIL_GATEWAY_DRAIN_TIMEOUT_MICROS, in which queries in flight end

      config {
        command      = local.download ? "local/topsail" : var.program
        args         = ["gateway"]
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
        for_each = var.secrets
        content {
          data        = "{{ with nomadVar \"nomad/jobs/topsail-gateway\" }}{{ index . \"${template.value}\" }}{{ end }}"
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
        TOPSAIL_DATA_DIR            = var.data_dir
        TOPSAIL_GATEWAY_NAME        = "${NOMAD_ALLOC_ID}"
        TOPSAIL_GATEWAY_ADDR        = "${NOMAD_ADDR_http}"
        TOPSAIL_GATEWAY_GRPC_ADDR   = var.grpc_port > 0 ? "${NOMAD_ADDR_grpc}" : "none"
        TOPSAIL_GATEWAY_KEYS_FILE   = var.keys_file
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
