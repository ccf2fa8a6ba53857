[[ if var "with_backup" . -]]
# Made from the job backup.nomad.hcl: see the README of the pack.

variable "destination" {
  description = "a folder on the node, or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION"
  type        = string
  default     = [[ template "value" (var "backup_destination" .) ]]
}

variable "crons" {
  description = "when to make one"
  type        = list(string)
  default     = [[ template "value" (var "backup_crons" .) ]]
}

variable "time_zone" {
  description = "that the times are of"
  type        = string
  default     = [[ template "value" (var "backup_time_zone" .) ]]
}

variable "keep" {
  description = "how many to keep; 0: all"
  type        = number
  default     = [[ template "value" (var "backup_keep" .) ]]
}

variable "without_bundles" {
  description = "leave bundles out, where what web.bundles names is backed up by itself"
  type        = bool
  default     = [[ template "value" (var "backup_without_bundles" .) ]]
}

variable "management" {
  description = "URL of the management side; empty: the one that is listed as topsail-web, which in Consul needs a token that may read the service"
  type        = string
  default     = [[ template "value" (var "backup_management" .) ]]
}

variable "key_name" {
  description = "item of secrets that is the key of an admin; empty: none is wanted"
  type        = string
  default     = [[ template "value" (var "backup_key_name" .) ]]
}

variable "credentials_name" {
  description = "item of secrets that has the keys of the object store, as ~/.aws/credentials; empty: it takes the machine's role or env"
  type        = string
  default     = [[ template "value" (var "backup_credentials_name" .) ]]
}

variable "host_volume" {
  description = "host volume for the destination; empty: the folder is the node's"
  type        = string
  default     = [[ template "value" (var "backup_host_volume" .) ]]
}

variable "secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-backup to write to files of their names in $${NOMAD_SECRETS_DIR}"
  type        = list(string)
  default     = [[ template "value" (var "backup_secrets" .) ]]
}

variable "env" {
  description = "more variables, such as AWS_ACCESS_KEY_ID"
  type        = map(string)
  default     = [[ template "value" (var "backup_env" .) ]]
}

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

variable "program" {
  description = "path of topsail on the nodes or in the image, or the URL of the program or of an archive with it"
  type        = string
  default     = [[ template "value" (var "program" .) ]]
}

variable "checksum" {
  description = "of the program, when it is a URL: sha256:…"
  type        = string
  default     = [[ template "value" (var "checksum" .) ]]
}

variable "driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = [[ template "value" (var "driver" .) ]]
}

variable "image" {
  description = "image for the docker driver"
  type        = string
  default     = [[ template "value" (var "image" .) ]]
}

variable "cpu" {
  description = "MHz of a process"
  type        = number
  default     = [[ template "value" (var "backup_cpu" .) ]]
}

variable "memory" {
  description = "MB of a process"
  type        = number
  default     = [[ template "value" (var "backup_memory" .) ]]
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = [[ template "value" (var "service_provider" .) ]]
}

variable "ca_file" {
  description = "certificates that peers must have; with it gateways and sidecars use mutual TLS"
  type        = string
  default     = [[ template "value" (var "ca_file" .) ]]
}

variable "consul_identity" {
  description = "get the Consul token from the workload identity; Nomad and Consul must be set up for it"
  type        = bool
  default     = [[ template "value" (var "consul_identity" .) ]]
}

locals {
  download = length(split("://", var.program)) > 1
  docker   = var.driver == "docker"
  lookup   = var.service_provider == "consul" ? "service" : "nomadService"
  scheme   = var.ca_file == "" ? "http" : "https"
}

job "topsail-backup" {
  type        = "batch"
  datacenters = var.datacenters
  namespace   = [[ template "value" (var "namespace" .) ]]
  node_pool   = var.node_pool

  periodic {
    crons            = var.crons
    time_zone        = var.time_zone
    prohibit_overlap = true
  }

  group "backup" {
    restart {
      attempts = 3
      interval = "1h"
      delay    = "1m"
      mode     = "fail"
    }

    ephemeral_disk {
      size = 2000 # MB; a backup for a bucket is put together here
    }

    dynamic "volume" {
      for_each = var.host_volume == "" ? [] : [var.host_volume]
      labels   = ["backups"]
      content {
        type   = "host"
        source = volume.value
      }
    }

    task "backup" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "20s"

      config {
        command      = local.download ? "local/topsail" : var.program
        args         = concat(["backup", var.destination, "--keep", "${var.keep}"], var.without_bundles ? ["--without-bundles"] : [], var.ca_file == "" ? [] : ["--ca-file", var.ca_file])
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
        for_each = var.management == "" ? [local.lookup] : []
        content {
          data        = "{{ range $i, $s := ${template.value} \"topsail-web\" }}{{ if eq $i 0 }}TOPSAIL_ADMIN_URL=${local.scheme}://{{ .Address }}:{{ .Port }}\n{{ end }}{{ end }}"
          destination = "local/management.env"
          env         = true
          change_mode = "noop"
        }
      }

      dynamic "template" {
        for_each = var.secrets
        content {
          data        = "{{ with nomadVar \"nomad/jobs/topsail-backup\" }}{{ index . \"${template.value}\" }}{{ end }}"
          destination = "secrets/${template.value}"
          perms       = var.driver == "raw_exec" ? "600" : "644"
          change_mode = "noop"
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

      dynamic "volume_mount" {
        for_each = var.host_volume == "" ? [] : ["backups"]
        content {
          volume      = volume_mount.value
          destination = var.destination
        }
      }

      env = merge({
        TMPDIR = "${NOMAD_ALLOC_DIR}/tmp"
        },
        var.management == "" ? {} : { TOPSAIL_ADMIN_URL = var.management },
        var.key_name == "" ? {} : { TOPSAIL_API_KEY_FILE = "${NOMAD_SECRETS_DIR}/${var.key_name}" },
        var.credentials_name == "" ? {} : { AWS_SHARED_CREDENTIALS_FILE = "${NOMAD_SECRETS_DIR}/${var.credentials_name}" },
      var.env)

      resources {
        cpu    = var.cpu
        memory = var.memory
      }
    }
  }
}
[[ end -]]
