# Made from the jobs: see the README.

variable "with_stream" {
  description = "serve data streams, too; stream_config has them"
  type        = bool
  default     = false
}

variable "with_backup" {
  description = "make backups, too, at backup_crons and to backup_destination"
  type        = bool
  default     = false
}

variable "with_redis" {
  description = "run redis, too, for those who have none"
  type        = bool
  default     = false
}

variable "with_influxdb" {
  description = "run influxdb, too, for those who have none"
  type        = bool
  default     = false
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

variable "gateway_type" {
  description = "service: count gateways, wherever there is room; system: one on every node, such as behind a load balancer that knows the nodes"
  type        = string
  default     = "service"
}

variable "gateway_count" {
  description = "number of gateways; a system job ignores it"
  type        = number
  default     = 1
}

variable "gateway_per_node" {
  description = "number of gateways on one node at most, so that a drain or a failure does not bring them together; what finds no node waits for one. 0: any number"
  type        = number
  default     = 1
}

variable "gateway_port" {
  description = "port for queries; 0 lets Nomad choose, which several gateways on one node need"
  type        = number
  default     = 1337
}

variable "gateway_ops_port" {
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

variable "gateway_cpu" {
  description = "MHz of a gateway"
  type        = number
  default     = 500
}

variable "gateway_memory" {
  description = "MB of a gateway"
  type        = number
  default     = 256
}

variable "service_provider" {
  description = "who lists the instances: consul or nomad"
  type        = string
  default     = "consul"
}

variable "gateway_traefik_rule" {
  description = "rule of the Traefik router that leads here, such as PathPrefix(`/`); empty for none"
  type        = string
  default     = ""
}

variable "gateway_fabio_route" {
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

variable "gateway_keys_file" {
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

variable "gateway_secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-gateway to write to files of their names in $${NOMAD_SECRETS_DIR}, for the settings above"
  type        = list(string)
  default     = []
}

variable "gateway_data_dir" {
  description = "folder of the last good state, from which a gateway starts while Redis is away"
  type        = string
  default     = "$${NOMAD_ALLOC_DIR}/data"
}

variable "gateway_env" {
  description = "more settings, such as TOPSAIL_LOG_LEVEL"
  type        = map(string)
  default     = {}
}

variable "gateway_shutdown_delay" {
  description = "between leaving Consul and the signal to stop; longer than load balancers take to notice"
  type        = string
  default     = "5s"
}

variable "scheduler_count" {
  description = "number of schedulers; with a single node it is 1"
  type        = number
  default     = 2
}

variable "scheduler_per_node" {
  description = "number of schedulers on one node at most, so that a drain or a failure does not bring them together; what finds no node waits for one. 0: any number"
  type        = number
  default     = 1
}

variable "scheduler_ops_port" {
  description = "port of metrics and health checks; 0 lets Nomad choose"
  type        = number
  default     = 0
}

variable "scheduler_cpu" {
  description = "MHz of a scheduler"
  type        = number
  default     = 200
}

variable "scheduler_memory" {
  description = "MB of a scheduler"
  type        = number
  default     = 256
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

variable "scheduler_secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-scheduler to write to files of their names in $${NOMAD_SECRETS_DIR}, for the settings above"
  type        = list(string)
  default     = []
}

variable "scheduler_bundles_url" {
  description = "address of the management side as nodes reach it to fetch bundles, such as http://topsail.example:1338; without it they ask any process that Consul names"
  type        = string
  default     = ""
}

variable "scheduler_env" {
  description = "more settings, such as TOPSAIL_JOBS_DRIVER"
  type        = map(string)
  default     = {}
}

variable "web_count" {
  description = "number of management processes; with a single node it is 1"
  type        = number
  default     = 2
}

variable "web_per_node" {
  description = "number of management processes on one node at most, so that a drain or a failure does not bring them together; what finds no node waits for one. 0: any number"
  type        = number
  default     = 1
}

variable "web_port" {
  description = "port of the admin API and the web UI; 0 lets Nomad choose"
  type        = number
  default     = 1338
}

variable "web_ops_port" {
  description = "port of metrics and health checks; 0 lets Nomad choose"
  type        = number
  default     = 0
}

variable "web_cpu" {
  description = "MHz of a process"
  type        = number
  default     = 200
}

variable "web_memory" {
  description = "MB of a process"
  type        = number
  default     = 512
}

variable "web_tags" {
  description = "tags of the service, such as those of a router"
  type        = list(string)
  default     = []
}

variable "web_keys_file" {
  description = "file of the keys that administrators must show"
  type        = string
  default     = ""
}

variable "web_secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-web to write to files of their names in $${NOMAD_SECRETS_DIR}, for the settings above"
  type        = list(string)
  default     = []
}

variable "web_data_dir" {
  description = "folder of uploads and of the last good state, and of the bundles where bundles is empty"
  type        = string
  default     = "$${NOMAD_ALLOC_DIR}/data"
}

variable "web_bundles" {
  description = "where the bundles are that people upload, for all management processes: redis for small ones, s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION with keys by credentials_name, or a folder that the nodes share"
  type        = string
  default     = "redis"
}

variable "web_credentials_name" {
  description = "item of secrets that has the keys of the object store of bundles, as ~/.aws/credentials; empty: it takes the machine's role or env"
  type        = string
  default     = ""
}

variable "web_bundles_url" {
  description = "address of the management side as nodes reach it to fetch bundles, such as http://topsail.example:1338; without it they ask any process that Consul names"
  type        = string
  default     = ""
}

variable "web_env" {
  description = "more settings, such as TOPSAIL_LOG_LEVEL"
  type        = map(string)
  default     = {}
}

variable "stream_config" {
  description = "the configuration file with the streams, as text"
  type        = string
  default     = ""
}

variable "stream_config_file" {
  description = "path of the configuration file on the nodes, instead of its text"
  type        = string
  default     = ""
}

variable "stream_count" {
  description = "number of processes; a stream has work for as many as it has partitions"
  type        = number
  default     = 1
}

variable "stream_ops_port" {
  description = "port of metrics and health checks; 0 lets Nomad choose"
  type        = number
  default     = 0
}

variable "stream_cpu" {
  description = "MHz of a process"
  type        = number
  default     = 500
}

variable "stream_memory" {
  description = "MB of a process"
  type        = number
  default     = 256
}

variable "stream_secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-stream to write to files of their names in $${NOMAD_SECRETS_DIR}, for the settings above"
  type        = list(string)
  default     = []
}

variable "stream_env" {
  description = "more settings, such as TOPSAIL_STREAMS_ONLY"
  type        = map(string)
  default     = {}
}

variable "backup_destination" {
  description = "a folder on the node, or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION"
  type        = string
  default     = "/var/lib/topsail/backups"
}

variable "backup_crons" {
  description = "when to make one"
  type        = list(string)
  default     = ["17 3 * * *"]
}

variable "backup_time_zone" {
  description = "that the times are of"
  type        = string
  default     = "UTC"
}

variable "backup_keep" {
  description = "how many to keep; 0: all"
  type        = number
  default     = 14
}

variable "backup_without_bundles" {
  description = "leave bundles out, where what web.bundles names is backed up by itself"
  type        = bool
  default     = false
}

variable "backup_management" {
  description = "URL of the management side; empty: the one that is listed as topsail-web, which in Consul needs a token that may read the service"
  type        = string
  default     = ""
}

variable "backup_key_name" {
  description = "item of secrets that is the key of an admin; empty: none is wanted"
  type        = string
  default     = ""
}

variable "backup_credentials_name" {
  description = "item of secrets that has the keys of the object store, as ~/.aws/credentials; empty: it takes the machine's role or env"
  type        = string
  default     = ""
}

variable "backup_host_volume" {
  description = "host volume for the destination; empty: the folder is the node's"
  type        = string
  default     = ""
}

variable "backup_secrets" {
  description = "items of the Nomad variable nomad/jobs/topsail-backup to write to files of their names in $${NOMAD_SECRETS_DIR}"
  type        = list(string)
  default     = []
}

variable "backup_env" {
  description = "more variables, such as AWS_ACCESS_KEY_ID"
  type        = map(string)
  default     = {}
}

variable "backup_cpu" {
  description = "MHz of a process"
  type        = number
  default     = 200
}

variable "backup_memory" {
  description = "MB of a process"
  type        = number
  default     = 256
}

variable "redis_port" {
  description = "port of Redis"
  type        = number
  default     = 6379
}

variable "redis_program" {
  description = "redis-server on the nodes or in the image"
  type        = string
  default     = "redis-server"
}

variable "redis_driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = "raw_exec"
}

variable "redis_image" {
  description = "image for the docker driver"
  type        = string
  default     = "redis:7"
}

variable "redis_cpu" {
  description = "MHz of Redis"
  type        = number
  default     = 500
}

variable "redis_memory" {
  description = "MB of Redis"
  type        = number
  default     = 512
}

variable "redis_data_dir" {
  description = "absolute path of the data on the node, or in the container with docker; by default the allocation's own folder, which moves along when it can and is lost with the node"
  type        = string
  default     = "$${NOMAD_ALLOC_DIR}/data"
}

variable "redis_host_volume" {
  description = "host volume of the nodes to keep the data on, mounted at data_dir; for docker and exec"
  type        = string
  default     = ""
}

variable "redis_config_file" {
  description = "redis.conf with what else there is to say, such as requirepass; Redis refuses other machines without a password"
  type        = string
  default     = ""
}

variable "influxdb_port" {
  description = "port of the API"
  type        = number
  default     = 8086
}

variable "influxdb_program" {
  description = "influxd on the nodes or in the image"
  type        = string
  default     = "influxd"
}

variable "influxdb_driver" {
  description = "raw_exec, exec or docker"
  type        = string
  default     = "raw_exec"
}

variable "influxdb_image" {
  description = "image for the docker driver"
  type        = string
  default     = "influxdb:1.8"
}

variable "influxdb_cpu" {
  description = "MHz of InfluxDB"
  type        = number
  default     = 500
}

variable "influxdb_memory" {
  description = "MB of InfluxDB"
  type        = number
  default     = 1024
}

variable "influxdb_data_dir" {
  description = "absolute path of the data on the node, or in the container with docker; by default the allocation's own folder, which moves along when it can and is lost with the node"
  type        = string
  default     = "$${NOMAD_ALLOC_DIR}/data"
}

variable "influxdb_host_volume" {
  description = "host volume of the nodes to keep the data on, mounted at data_dir; for docker and exec"
  type        = string
  default     = ""
}

variable "influxdb_database" {
  description = "database to make"
  type        = string
  default     = "topsail"
}

variable "influxdb_retention" {
  description = "how long it keeps what it is told"
  type        = string
  default     = "168h"
}

variable "influxdb_curl" {
  description = "curl on the nodes or in the image, which makes the database"
  type        = string
  default     = "curl"
}

variable "influxdb_env" {
  description = "more settings, such as INFLUXDB_HTTP_AUTH_ENABLED"
  type        = map(string)
  default     = {}
}
