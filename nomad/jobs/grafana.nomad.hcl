# A Grafana with Topsail's dashboard, for those who have none: it reads the Prometheus that prometheus_url says, or the InfluxDB
# that influxdb_url says. It listens on loopback unless host_network says otherwise, and who reaches it may look and change nothing.
#
#   nomad job run -var "dashboard=$(tr -d '\n' < ../../deploy/grafana/topsail.json)" grafana.nomad.hcl
#   nomad job run -var influxdb_url=http://127.0.0.1:8086 -var "dashboard=$(tr -d '\n' < ../../deploy/grafana/topsail-influxdb.json)" grafana.nomad.hcl

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

variable "port" {
  description = "port of the web interface"
  type        = number
  default     = 3000
}

variable "host_network" {
  description = "network of the node to listen on, by its name in the agent's configuration"
  type        = string
  default     = "default"
}

variable "program" {
  description = "grafana on the nodes or in the image"
  type        = string
  default     = "grafana"
}

variable "home" {
  description = "Grafana's folder with its pages, on the nodes or in the image"
  type        = string
  default     = "/usr/share/grafana"
}

variable "driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = "docker"
}

variable "image" {
  description = "image for the docker driver"
  type        = string
  default     = "grafana/grafana-oss:11.6.0"
}

variable "cpu" {
  description = "MHz of Grafana"
  type        = number
  default     = 500
}

variable "memory" {
  description = "MB of Grafana"
  type        = number
  default     = 512
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = "consul"
}

variable "prometheus_url" {
  description = "the Prometheus that scrapes Topsail"
  type        = string
  default     = "http://127.0.0.1:9090"
}

variable "influxdb_url" {
  description = "the InfluxDB that Topsail writes to; empty: it is not read"
  type        = string
  default     = ""
}

variable "influxdb_org" {
  description = "organisation, for version 2"
  type        = string
  default     = ""
}

variable "influxdb_bucket" {
  description = "bucket, for version 1 database/policy"
  type        = string
  default     = "topsail/autogen"
}

variable "influxdb_token" {
  description = "token that may read it, for version 1 user:password; $__file{PATH} reads it from a file"
  type        = string
  default     = ""
}

variable "dashboard" {
  description = "text of deploy/grafana/topsail.json, or of topsail-influxdb.json, on one line"
  type        = string
}

variable "env" {
  description = "more settings, such as GF_SECURITY_ADMIN_PASSWORD__FILE or GF_AUTH_ANONYMOUS_ENABLED=false"
  type        = map(string)
  default     = {}
}

locals {
  docker = var.driver == "docker"
}

job "topsail-grafana" {
  type        = "service"
  datacenters = var.datacenters
  namespace   = var.namespace
  node_pool   = var.node_pool

  group "grafana" {
    network {
      mode = "host"

      port "http" {
        static       = var.port
        host_network = var.host_network
      }
    }

    restart {
      attempts = 10
      interval = "5m"
      delay    = "1s"
      mode     = "delay"
    }

    service {
      name     = "topsail-grafana"
      provider = var.service_provider
      port     = "http"

      check {
        type     = "http"
        path     = "/api/health"
        interval = "2s"
        timeout  = "1s"
      }
    }

    task "grafana" {
      driver      = var.driver
      kill_signal = "SIGTERM"

      config {
        command      = var.program
        args         = ["server", "--homepath=${var.home}"]
        image        = local.docker ? var.image : null
        network_mode = local.docker ? "host" : null
        entrypoint   = local.docker ? [] : null
      }

      env = merge({
        GF_SERVER_HTTP_ADDR                        = "${NOMAD_IP_http}"
        GF_SERVER_HTTP_PORT                        = "${NOMAD_PORT_http}"
        GF_PATHS_DATA                              = "${NOMAD_ALLOC_DIR}/data"
        GF_PATHS_PROVISIONING                      = "${NOMAD_TASK_DIR}/provisioning"
        GF_AUTH_ANONYMOUS_ENABLED                  = "true" # as a viewer
        GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION = "true"
        GF_ANALYTICS_REPORTING_ENABLED             = "false"
        GF_ANALYTICS_CHECK_FOR_UPDATES             = "false"
        GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH  = "${NOMAD_TASK_DIR}/dashboards/topsail.json"
      }, var.env)

      template {
        destination = "local/provisioning/datasources/topsail.yml"
        data        = <<-EOT
          apiVersion: 1
          datasources:
            - {name: Prometheus, uid: topsail, type: prometheus, access: proxy, url: "${var.prometheus_url}", isDefault: true}
            %{if var.influxdb_url != ""}- {name: InfluxDB, uid: topsail-influxdb, type: influxdb, access: proxy, url: "${var.influxdb_url}", jsonData: {version: Flux, organization: "${var.influxdb_org}", defaultBucket: "${var.influxdb_bucket}"}, secureJsonData: {token: "${var.influxdb_token}"}}%{endif}
        EOT
      }

      template {
        destination = "local/provisioning/dashboards/topsail.yml"
        data        = <<-EOT
          apiVersion: 1
          providers:
            - {name: topsail, type: file, options: {path: "$${NOMAD_TASK_DIR}/dashboards"}}
        EOT
      }

      template {
        destination     = "local/dashboards/topsail.json"
        left_delimiter  = "[[["
        right_delimiter = "]]]"
        data            = var.dashboard
      }

      resources {
        cpu    = var.cpu
        memory = var.memory
      }
    }
  }
}
