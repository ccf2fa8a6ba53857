# A Redis for those who have none. Production wants its own: with replicas and
# Sentinel or a cluster, with backups, and with a password. This one is a single
# process that writes an append-only file. When it was killed, have it write that anew
# (redis-cli bgrewriteaof): docs/operations.md says why.
#
#   nomad job run redis.nomad.hcl
#   nomad job run -var driver=docker -var host_volume=redis -var data_dir=/data redis.nomad.hcl

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
  description = "port of Redis"
  type        = number
  default     = 6379
}

variable "host_network" {
  description = "network of the node to listen on, by its name in the agent's configuration"
  type        = string
  default     = "default"
}

variable "program" {
  description = "redis-server on the nodes or in the image"
  type        = string
  default     = "redis-server"
}

variable "driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = "raw_exec"
}

variable "image" {
  description = "image for the docker driver"
  type        = string
  default     = "redis:7"
}

variable "cpu" {
  description = "MHz of Redis"
  type        = number
  default     = 500
}

variable "memory" {
  description = "MB of Redis"
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

variable "config_file" {
  description = "redis.conf with what else there is to say, such as requirepass; Redis refuses other machines without a password"
  type        = string
  default     = ""
}

locals {
  docker = var.driver == "docker"
}

job "topsail-redis" {
  type        = "service"
  datacenters = var.datacenters
  namespace   = var.namespace
  node_pool   = var.node_pool

  group "redis" {
    network {
      mode = "host"

      port "redis" {
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
      name     = "topsail-redis"
      provider = var.service_provider
      port     = "redis"

      check {
        type     = "tcp"
        interval = "2s"
        timeout  = "1s"
      }
    }

    task "redis" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = var.program
        args = concat(var.config_file == "" ? [] : [var.config_file], [
          "--bind", "${NOMAD_IP_redis}", "--port", "${NOMAD_PORT_redis}", "--dir", var.data_dir,
          "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction", "--save", "",
        ])
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

      resources {
        cpu    = var.cpu
        memory = var.memory
      }
    }
  }
}
