# The schedulers: one leads and sets the numbers of replicas, the others wait to
# take its place.
#
#   nomad job run scheduler.nomad.hcl
#
# With access control, give the job its policies (../policies/README.md), and run
#
#   nomad job run -var 'nomad_addr=unix://${NOMAD_SECRETS_DIR}/api.sock' -var consul_identity=true scheduler.nomad.hcl
#
# A socket's path has at most 107 bytes: with raw_exec the agent's data_dir may take
# 37 of them.
#
# What the scheduler is told goes into the jobs of models, too: the program, where to
# run, cert_file, key_file, ca_file and sidecar_token_file. Where models run otherwise,
# set TOPSAIL_JOBS_PROGRAM and so on through env.

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

variable "count" {
  description = "number of schedulers; with a single node it is 1"
  type        = number
  default     = 2
}

variable "per_node" {
  description = "number of schedulers on one node at most, so that a drain or a failure does not bring them together; what finds no node waits for one. 0: any number"
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
  description = "MHz of a scheduler"
  type        = number
  default     = 200
}

variable "memory" {
  description = "MB of a scheduler"
  type        = number
  default     = 256
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = "consul"
}

variable "nomad_addr" {
  description = "address of Nomad's API; unix://$${NOMAD_SECRETS_DIR}/api.sock is the task's own socket"
  type        = string
  default     = "http://127.0.0.1:4646"
}

variable "nomad_token_file" {
  description = "file of the Nomad token, when it does not come from the workload identity"
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
  description = "items of the Nomad variable nomad/jobs/topsail-scheduler to write to files of their names in $${NOMAD_SECRETS_DIR}, for the settings above"
  type        = list(string)
  default     = []
}

variable "bundles_url" {
  description = "address of the management side as nodes reach it to fetch bundles, such as http://topsail.example:1338; without it they ask any process that Consul names"
  type        = string
  default     = ""
}

variable "env" {
  description = "more settings, such as TOPSAIL_JOBS_DRIVER"
  type        = map(string)
  default     = {}
}

locals {
  download = length(split("://", var.program)) > 1
  docker   = var.driver == "docker"
  secure   = var.cert_file != ""
  scheme   = local.secure ? "https" : "http"
}

job "topsail-scheduler" {
  type        = "service"
  datacenters = var.datacenters
  namespace   = var.namespace
  node_pool   = var.node_pool

  group "scheduler" {
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

    # Spread prefers; without a bound, what one drained node left on another would stay there.
    dynamic "constraint" {
      for_each = var.per_node > 0 ? [var.per_node] : []
      content {
        distinct_property = "${node.unique.id}"
        value             = constraint.value
      }
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

    # The state on disk goes along when a scheduler is replaced on its node.
    ephemeral_disk {
      sticky = true
      size   = 300
    }

    service {
      name     = "topsail-scheduler"
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

    task "scheduler" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "15s" # to hand over the lead

      config {
        command      = local.download ? "local/topsail" : var.program
        args         = ["scheduler"]
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
          data        = "{{ with nomadVar \"nomad/jobs/topsail-scheduler\" }}{{ index . \"${template.value}\" }}{{ end }}"
          destination = "secrets/${template.value}"
          perms       = var.driver == "raw_exec" ? "600" : "644"
          change_mode = "noop" # topsail reads changed files again
        }
      }

      # What Nomad allows is up to the policy that is attached to this job.
      identity {
        env = var.nomad_token_file == ""
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
        TOPSAIL_SCHEDULER_NAME      = "${NOMAD_ALLOC_ID}"
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
        TOPSAIL_JOBS_PROGRAM        = var.program
        TOPSAIL_JOBS_CHECKSUM       = var.checksum
        TOPSAIL_JOBS_NAMESPACE      = var.namespace
        TOPSAIL_JOBS_DATACENTERS    = join(",", var.datacenters)
        TOPSAIL_JOBS_NODE_POOL      = var.node_pool
        TOPSAIL_JOBS_BUNDLES_URL    = var.bundles_url
        TOPSAIL_NOMAD_TOKEN_FILE    = var.nomad_token_file
        NOMAD_ADDR                  = var.nomad_addr
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
