# Backups, at set times: each run of this job writes one, through the management side, and
# removes the oldest.
#
#   nomad job run -var destination=s3://ops/topsail?endpoint=https://minio.example -var 'secrets=["key", "s3"]' -var key_name=key -var credentials_name=s3 backup.nomad.hcl
#   nomad job run -var driver=docker -var host_volume=backups -var destination=/backups backup.nomad.hcl
#   nomad job periodic force topsail-backup
#
# Where management wants keys, it needs one with the role admin. The secret "s3" is a file of
# credentials as of the AWS command line.

variable "destination" {
  description = "a folder on the node, or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION"
  type        = string
  default     = "/var/lib/topsail/backups"
}

variable "crons" {
  description = "when to make one"
  type        = list(string)
  default     = ["17 3 * * *"]
}

variable "time_zone" {
  description = "that the times are of"
  type        = string
  default     = "UTC"
}

variable "keep" {
  description = "how many to keep; 0: all"
  type        = number
  default     = 14
}

variable "without_bundles" {
  description = "leave bundles out, where what web.bundles names is backed up by itself"
  type        = bool
  default     = false
}

variable "management" {
  description = "URL of the management side; empty: the one that is listed as topsail-web, which in Consul needs a token that may read the service"
  type        = string
  default     = ""
}

variable "key_name" {
  description = "item of secrets that is the key of an admin; empty: none is wanted"
  type        = string
  default     = ""
}

variable "credentials_name" {
  description = "item of secrets that has the keys of the object store, as ~/.aws/credentials; empty: it takes the machine's role or env"
  type        = string
  default     = ""
}

variable "host_volume" {
  description = "host volume for the destination; empty: the folder is the node's"
  type        = string
  default     = ""
}

variable "secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-backup to write to files of their names in $${NOMAD_SECRETS_DIR}"
  type        = list(string)
  default     = []
}

variable "env" {
  description = "more variables, such as AWS_ACCESS_KEY_ID"
  type        = map(string)
  default     = {}
}

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
  default     = 200
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

variable "ca_file" {
  description = "certificates that peers must have; with it gateways and sidecars use mutual TLS"
  type        = string
  default     = ""
}

variable "consul_identity" {
  description = "get the Consul token from the workload identity; Nomad and Consul must be set up for it"
  type        = bool
  default     = false
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
  namespace   = var.namespace
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
