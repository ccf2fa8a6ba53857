[[ if var "with_influxdb" . -]]
# Made from the job influxdb.nomad.hcl: see the README of the pack.

variable "datacenters" {
  description = "datacenters to run in"
  type        = list(string)
  default     = [[ template "value" (var "datacenters" .) ]]
}

variable "namespace" {
  description = "Nomad namespace"
  type        = string
  default     = [[ template "value" (var "namespace" .) ]]
}

variable "node_pool" {
  description = "node pool to run in"
  type        = string
  default     = [[ template "value" (var "node_pool" .) ]]
}

variable "port" {
  description = "port of the API"
  type        = number
  default     = [[ template "value" (var "influxdb_port" .) ]]
}

variable "host_network" {
  description = "network of the node to listen on, by its name in the agent's configuration"
  type        = string
  default     = [[ template "value" (var "host_network" .) ]]
}

variable "program" {
  description = "influxd on the nodes or in the image"
  type        = string
  default     = [[ template "value" (var "influxdb_program" .) ]]
}

variable "driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = [[ template "value" (var "influxdb_driver" .) ]]
}

variable "image" {
  description = "image for the docker driver"
  type        = string
  default     = [[ template "value" (var "influxdb_image" .) ]]
}

variable "cpu" {
  description = "MHz of InfluxDB"
  type        = number
  default     = [[ template "value" (var "influxdb_cpu" .) ]]
}

variable "memory" {
  description = "MB of InfluxDB"
  type        = number
  default     = [[ template "value" (var "influxdb_memory" .) ]]
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = [[ template "value" (var "service_provider" .) ]]
}

variable "data_dir" {
  description = "absolute path of the data on the node, or in the container with docker; by default the allocation's own folder, which moves along when it can and is lost with the node"
  type        = string
  default     = [[ template "value" (var "influxdb_data_dir" .) ]]
}

variable "host_volume" {
  description = "host volume of the nodes to keep the data on, mounted at data_dir; for docker and exec"
  type        = string
  default     = [[ template "value" (var "influxdb_host_volume" .) ]]
}

variable "database" {
  description = "database to make"
  type        = string
  default     = [[ template "value" (var "influxdb_database" .) ]]
}

variable "retention" {
  description = "how long it keeps what it is told"
  type        = string
  default     = [[ template "value" (var "influxdb_retention" .) ]]
}

variable "curl" {
  description = "curl on the nodes or in the image, which makes the database"
  type        = string
  default     = [[ template "value" (var "influxdb_curl" .) ]]
}

variable "env" {
  description = "more settings, such as INFLUXDB_HTTP_AUTH_ENABLED"
  type        = map(string)
  default     = [[ template "value" (var "influxdb_env" .) ]]
}

locals {
  docker = var.driver == "docker"
}

job "topsail-influxdb" {
  type        = "service"
  datacenters = var.datacenters
  namespace   = [[ template "value" (var "namespace" .) ]]
  node_pool   = var.node_pool

  group "influxdb" {
    network {
      mode = "host"

      port "http" {
        static       = var.port
        host_network = var.host_network
      }

      # InfluxDB's own, for backups.
      port "rpc" {
        host_network = var.host_network
      }
    }

    restart {
      attempts = 10
      interval = "5m"
      delay    = "1s"
      mode     = "delay"
    }

    # Its data is on one node: wait for that node, rather than begin elsewhere with
    # nothing, and leave what runs there running when the node was only out of reach.
    disconnect {
      lost_after = "24h"
      replace    = false
    }

    ephemeral_disk {
      sticky  = true
      migrate = true
      size    = 1000
    }

    dynamic "volume" {
      for_each = var.host_volume == "" ? [] : [var.host_volume]
      labels   = ["data"]
      content {
        type   = "host"
        source = volume.value
      }
    }

    service {
      name     = "topsail-influxdb"
      provider = var.service_provider
      port     = "http"

      check {
        type     = "http"
        path     = "/ping"
        interval = "2s"
        timeout  = "1s"
      }
    }

    task "influxdb" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command      = var.program
        image        = local.docker ? var.image : null
        network_mode = local.docker ? "host" : null
      }

      dynamic "volume_mount" {
        for_each = var.host_volume == "" ? [] : ["data"]
        content {
          volume      = volume_mount.value
          destination = var.data_dir
        }
      }

      env = merge({
        INFLUXDB_BIND_ADDRESS           = "${NOMAD_ADDR_rpc}"
        INFLUXDB_HTTP_BIND_ADDRESS      = "${NOMAD_ADDR_http}"
        INFLUXDB_HTTP_FLUX_ENABLED      = "true" # Topsail asks in Flux
        INFLUXDB_HTTP_LOG_ENABLED       = "false"
        INFLUXDB_META_DIR               = "${var.data_dir}/meta"
        INFLUXDB_DATA_DIR               = "${var.data_dir}/data"
        INFLUXDB_DATA_WAL_DIR           = "${var.data_dir}/wal"
        INFLUXDB_DATA_QUERY_LOG_ENABLED = "false"
        INFLUXDB_MONITOR_STORE_ENABLED  = "false"
        INFLUXDB_REPORTING_DISABLED     = "true"
        INFLUXDB_LOGGING_LEVEL          = "warn"
      }, var.env)

      resources {
        cpu    = var.cpu
        memory = var.memory
      }
    }

    # Making a database that is there already changes nothing.
    task "database" {
      driver = var.driver

      lifecycle {
        hook = "poststart"
      }

      config {
        command = var.curl
        args = [
          "--silent", "--show-error", "--fail", "--retry", "30", "--retry-delay", "1", "--retry-connrefused",
          "--data-urlencode", "q=CREATE DATABASE \"${var.database}\" WITH DURATION ${var.retention}",
          "http://${NOMAD_ADDR_http}/query",
        ]
        image        = local.docker ? var.image : null
        network_mode = local.docker ? "host" : null
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
[[ end -]]
