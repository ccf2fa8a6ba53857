# A Prometheus that finds every process of Topsail in Consul and scrapes it, for those who have none. It keeps what it
# scrapes for a while, and watches the alarms that `rules` says.
#
#   nomad job run prometheus.nomad.hcl
#   nomad job run -var "rules=$(cat ../../deploy/prometheus/topsail.rules.yml)" prometheus.nomad.hcl

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
  description = "port of the web interface and the API"
  type        = number
  default     = 9090
}

variable "host_network" {
  description = "network of the node to listen on, by its name in the agent's configuration"
  type        = string
  default     = "default"
}

variable "program" {
  description = "prometheus on the nodes or in the image"
  type        = string
  default     = "prometheus"
}

variable "driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = "raw_exec"
}

variable "image" {
  description = "image for the docker driver"
  type        = string
  default     = "prom/prometheus:v2.53.4"
}

variable "cpu" {
  description = "MHz of Prometheus"
  type        = number
  default     = 500
}

variable "memory" {
  description = "MB of Prometheus"
  type        = number
  default     = 512
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = "consul"
}

variable "data_dir" {
  description = "absolute path of the data on the node, or in the container with docker; by default the allocation's own folder, which moves along when it can and is lost with the node"
  type        = string
  default     = "$${NOMAD_ALLOC_DIR}/data"
}

variable "host_volume" {
  description = "host volume of the nodes to keep the data on, mounted at data_dir; for docker and exec"
  type        = string
  default     = ""
}

variable "retention" {
  description = "how long it keeps what it scrapes"
  type        = string
  default     = "15d"
}

variable "consul_addr" {
  description = "Consul, which lists the processes"
  type        = string
  default     = "127.0.0.1:8500"
}

variable "sidecar_service" {
  description = "service of the sidecars: consul.service of Topsail's configuration"
  type        = string
  default     = "topsail-sidecar"
}

variable "access" {
  description = "more members of the scrape configuration as YAML, without indentation: what Topsail's certificates and keys for operators need, such as scheme, tls_config and authorization"
  type        = string
  default     = ""
}

variable "rules" {
  description = "text of a file of rules: deploy/prometheus/topsail.rules.yml; empty: no alarms"
  type        = string
  default     = ""
}

locals {
  docker = var.driver == "docker"
}

job "topsail-prometheus" {
  type        = "service"
  datacenters = var.datacenters
  namespace   = var.namespace
  node_pool   = var.node_pool

  group "prometheus" {
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

    # Its data is on one node: wait for that node, rather than begin elsewhere with nothing.
    disconnect {
      lost_after = "24h"
      replace    = false
    }

    ephemeral_disk {
      sticky  = true
      migrate = true
      size    = 2000
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
      name     = "topsail-prometheus"
      provider = var.service_provider
      port     = "http"

      check {
        type     = "http"
        path     = "/-/ready"
        interval = "2s"
        timeout  = "1s"
      }
    }

    task "prometheus" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = var.program
        args = [
          "--config.file=${NOMAD_TASK_DIR}/prometheus.yml",
          "--storage.tsdb.path=${var.data_dir}",
          "--storage.tsdb.retention.time=${var.retention}",
          "--web.listen-address=${NOMAD_ADDR_http}",
        ]
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

      template {
        destination     = "local/prometheus.yml"
        left_delimiter  = "[[["
        right_delimiter = "]]]"
        data            = <<-EOT
          global:
            scrape_interval: 10s
            scrape_timeout: 5s
          rule_files: [rules/*.yml]
          scrape_configs:
            - job_name: topsail
              consul_sd_configs:
                - server: ${var.consul_addr}
                  services: [topsail-gateway, ${var.sidecar_service}, topsail-scheduler, topsail-stream, topsail-web]
              relabel_configs:
                - source_labels: [__meta_consul_service_metadata_ops_addr]
                  regex: (.+)
                  target_label: __address__
                - source_labels: [__meta_consul_service]
                  regex: topsail-(.+)
                  target_label: role
                - source_labels: [__meta_consul_node]
                  target_label: node
              ${indent(4, var.access)}
        EOT
      }

      dynamic "template" {
        for_each = var.rules == "" ? [] : [var.rules]
        content {
          destination     = "local/rules/topsail.yml"
          left_delimiter  = "[[["
          right_delimiter = "]]]"
          data            = template.value
        }
      }

      resources {
        cpu    = var.cpu
        memory = var.memory
      }
    }
  }
}
