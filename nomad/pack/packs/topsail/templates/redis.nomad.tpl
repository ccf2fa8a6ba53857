[[ if var "with_redis" . -]]
# Made from the job redis.nomad.hcl: see the README of the pack.

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
  description = "port of Redis"
  type        = number
  default     = [[ template "value" (var "redis_port" .) ]]
}

variable "host_network" {
  description = "network of the node to listen on, by its name in the agent's configuration"
  type        = string
  default     = [[ template "value" (var "host_network" .) ]]
}

variable "program" {
  description = "redis-server on the nodes or in the image"
  type        = string
  default     = [[ template "value" (var "redis_program" .) ]]
}

variable "driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = [[ template "value" (var "redis_driver" .) ]]
}

variable "image" {
  description = "image for the docker driver"
  type        = string
  default     = [[ template "value" (var "redis_image" .) ]]
}

variable "cpu" {
  description = "MHz of Redis"
  type        = number
  default     = [[ template "value" (var "redis_cpu" .) ]]
}

variable "memory" {
  description = "MB of Redis"
  type        = number
  default     = [[ template "value" (var "redis_memory" .) ]]
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = [[ template "value" (var "service_provider" .) ]]
}

variable "data_dir" {
  description = "absolute path of the data on the node, or in the container with docker; by default the allocation's own folder, which moves along when it can and is lost with the node"
  type        = string
  default     = [[ template "value" (var "redis_data_dir" .) ]]
}

variable "host_volume" {
  description = "host volume of the nodes to keep the data on, mounted at data_dir; for docker and exec"
  type        = string
  default     = [[ template "value" (var "redis_host_volume" .) ]]
}

variable "config_file" {
  description = "redis.conf with what else there is to say, such as requirepass; Redis refuses other machines without a password"
  type        = string
  default     = [[ template "value" (var "redis_config_file" .) ]]
}

locals {
  docker = var.driver == "docker"
}

job "topsail-redis" {
  type        = "service"
  datacenters = var.datacenters
  namespace   = [[ template "value" (var "namespace" .) ]]
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
[[ end -]]
