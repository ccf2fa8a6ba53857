package config

import (
	"errors"
	"path/filepath"
	"time"
)

// Options are the settings outside the tables of apps, models and streams.
type Options struct {
	DataDir   string    `toml:"data_dir" path:"true" default:"$XDG_STATE_HOME/topsail" help:"folder for what outlives a restart; without XDG_STATE_HOME it is ~/.local/state/topsail"`
	Gateway   Gateway   `toml:"gateway"`
	Web       Web       `toml:"web"`
	Ops       Ops       `toml:"ops"`
	Log       Log       `toml:"log"`
	TLS       TLS       `toml:"tls"`
	Sidecar   Sidecar   `toml:"sidecar"`
	Scheduler Scheduler `toml:"scheduler"`
	Redis     Redis     `toml:"redis"`
	Consul    Consul    `toml:"consul"`
	Nomad     Nomad     `toml:"nomad"`
	InfluxDB  InfluxDB  `toml:"influxdb"`
	Jobs      Jobs      `toml:"jobs"`
	Runtimes  Runtimes  `toml:"runtimes"`
	Streaming Streaming `toml:"streams"`
}

// Gateway is the edge that answers queries.
type Gateway struct {
	Addr              string        `toml:"addr" default:"127.0.0.1:1337" addr:"listen" help:"address for queries and feedback"`
	GRPCAddr          string        `toml:"grpc_addr" addr:"optional" help:"address for gRPC; by default 127.0.0.1:1339 where addr is its default, and else none, as with none"`
	Name              string        `toml:"name" help:"name of this gateway among its peers; by default the allocation's or the host's, and the process id"`
	KeysFile          string        `toml:"keys_file" path:"true" help:"file of the keys that queries must show, one per line"`
	RequireKeys       bool          `toml:"require_keys" help:"queries must show a key, of the file or one made by the admin API"`
	RequireClientCert bool          `toml:"require_client_cert" help:"serve only clients with a certificate of tls.ca_file"`
	Hosts             []string      `toml:"hosts" help:"names by which a gateway without keys may be called, beside localhost and its address"`
	AllowedOrigins    []string      `toml:"allowed_origins" help:"origins of pages of other sites that may ask, such as https://shop.example"`
	CacheBytes        int           `toml:"cache_bytes" default:"33554432" min:"0" help:"memory of the prediction cache in bytes; 0 turns it off"`
	MaxBodyBytes      int           `toml:"max_body_bytes" default:"16777216" min:"1" help:"largest request body in bytes"`
	MaxBatch          int           `toml:"max_batch" default:"4096" min:"1" help:"most inputs in one request"`
	MaxInflightBytes  int           `toml:"max_inflight_bytes" default:"0" min:"0" help:"memory of requests and answers under way in a process, of those above 8 KiB; 0 is a quarter of what the process may have"`
	ExposeModels      bool          `toml:"expose_models" help:"models that no app links can be queried by their names, with an objective of 100 ms and without a default"`
	MaxConnections    int           `toml:"max_connections" default:"4096" min:"1" help:"most client connections at a time"`
	MaxPerAddress     int           `toml:"max_connections_per_address" default:"0" min:"0" help:"most of them from one address, or network of 64 bits in IPv6; 0 is any number"`
	DrainTimeout      time.Duration `toml:"drain_timeout_micros" default:"10000000" min:"0" help:"how long queries in flight may take to end when stopping, in microseconds"`
}

const (
	defaultGatewayAddr = "127.0.0.1:1337"
	defaultGRPCAddr    = "127.0.0.1:1339"
	noAddr             = "none"
)

// GRPC is the address for gRPC, or empty, and whether it was chosen. A gateway with an address of its own
// gets no other port by itself: it may be one of several on a machine, or stand open to others.
func (g *Gateway) GRPC() (addr string, chosen bool) {
	switch {
	case g.GRPCAddr == noAddr:
		return "", true
	case g.GRPCAddr == "" && g.Addr == defaultGatewayAddr:
		return defaultGRPCAddr, false
	}
	return g.GRPCAddr, true
}

// Web is the management side: admin REST and the web UI.
type Web struct {
	Addr              string   `toml:"addr" default:"127.0.0.1:1338" addr:"listen" help:"address of the admin API and the web UI"`
	KeysFile          string   `toml:"keys_file" path:"true" help:"file of the keys that administrators must show, one per line; they may do everything"`
	RequireKeys       bool     `toml:"require_keys" help:"requests must show a key, of the file or one made by the admin API"`
	RequireClientCert bool     `toml:"require_client_cert" help:"serve only clients with a certificate of tls.ca_file"`
	MaxConnections    int      `toml:"max_connections" default:"1024" min:"1" help:"most connections at a time"`
	Hosts             []string `toml:"hosts" help:"names by which browsers may call a management side without keys, beside this machine's"`
	OpsKeyFile        string   `toml:"ops_key_file" path:"true" help:"file of the key that it shows to other processes when it reads their metrics"`
	GatewayKeyFile    string   `toml:"gateway_key_file" path:"true" help:"file of the key that it shows to gateways when people try an app"`
	Bundles           string   `toml:"bundles" help:"where bundles are stored: a folder, which several machines may share; redis; or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION; by default the folder bundles in data_dir"`
	BundlesKeptHours  int      `toml:"bundles_kept_hours" default:"168" min:"0" help:"on a cluster: how long a bundle is kept that no version uses, in hours; 0 keeps it until it is deleted"`
	MaxBundleBytes    int      `toml:"max_bundle_bytes" default:"2147483648" min:"1" help:"largest bundle that can be uploaded"`
	MaxBundlesBytes   int      `toml:"max_bundles_bytes" default:"68719476736" min:"1" help:"for all bundles together; in Redis 536870912 by default"`
}

// Ops is the side for operators: metrics, health, profiles.
type Ops struct {
	Addr           string `toml:"addr" default:"127.0.0.1:1390" addr:"listen" help:"address of metrics, health checks and profiles"`
	KeysFile       string `toml:"keys_file" path:"true" help:"file of the keys that scrapers must show, one per line; health checks need none"`
	MaxConnections int    `toml:"max_connections" default:"256" min:"1" help:"most connections at a time"`
}

// Log is what is logged, and how.
type Log struct {
	Level  string `toml:"level" default:"info" enum:"debug info warn error" help:"least level that is logged: debug, info, warn or error"`
	Format string `toml:"format" default:"auto" enum:"auto text json" help:"auto, text or json; auto is text on a terminal and json elsewhere"`
}

// TLS is the certificate of this process, for its listeners and towards its peers.
type TLS struct {
	CertFile   string `toml:"cert_file" path:"true" help:"certificate of this process; with it every listener speaks TLS"`
	KeyFile    string `toml:"key_file" path:"true" help:"key of the certificate"`
	CAFile     string `toml:"ca_file" path:"true" help:"certificates that peers must have; with it gateways and sidecars use mutual TLS"`
	ServerName string `toml:"server_name" help:"the name that the certificates of sidecars must have; by default the address that is dialled"`
	External   bool   `toml:"external" help:"a proxy or a service mesh encrypts what is sent to this process"`
}

// Sidecar is the process beside a container.
type Sidecar struct {
	Addr               string `toml:"addr" default:"127.0.0.1:0" addr:"listen" help:"address for gateways"`
	ContainersAddr     string `toml:"containers_addr" default:"127.0.0.1:0" addr:"loopback" help:"address for containers"`
	Replica            string `toml:"replica" help:"name of this replica; by default the allocation's or the host's, and the process id"`
	Models             string `toml:"models" help:"the model versions to serve, as JSON; the job of a model version sets it"`
	TokenFile          string `toml:"token_file" path:"true" help:"file of the token that gateways show to sidecars"`
	ContainerAddr      string `toml:"container_addr" addr:"any" help:"where the version 1 container listens that is started with this replica and ends with it; the job of a version sets it"`
	ContainerTokenFile string `toml:"container_token_file" help:"file to write the token to that containers must show"`
	ModelsDir          string `toml:"models_dir" help:"of a host: folder for the bundles that its container loads; the job of a host sets it"`
	BundlesURL         string `toml:"bundles_url" help:"of a host: URL of the management side, to fetch bundles; the job of a host sets it"`
	ManagementFile     string `toml:"management_file" help:"of a host: file that says where the management side is, as the job of a host writes it from what Consul knows"`
}

// Scheduler decides the numbers of replicas.
type Scheduler struct {
	Name   string `toml:"name" help:"name of this scheduler among its peers; by default the allocation's or the host's, and the process id"`
	DryRun bool   `toml:"dry_run" help:"decide and log, and change nothing"`
}

// Redis keeps the state of a cluster.
type Redis struct {
	Addrs        []string `toml:"addrs" default:"127.0.0.1:6379" help:"addresses of Redis, of its Sentinels or of its cluster's nodes"`
	Master       string   `toml:"master" help:"name of the master, when addrs are Sentinels"`
	Cluster      bool     `toml:"cluster" help:"addrs are nodes of a Redis Cluster"`
	Username     string   `toml:"username" help:"user name"`
	PasswordFile string   `toml:"password_file" path:"true" help:"file of the password"`
	TLS          bool     `toml:"tls" help:"speak TLS to Redis, with the certificates of [tls]"`
	Prefix       string   `toml:"prefix" default:"topsail" help:"what the names of all keys begin with"`
}

// Consul is where replicas are registered. Its address, token and certificates are in the standard
// variables, CONSUL_HTTP_ADDR and so on.
type Consul struct {
	Service  string `toml:"service" default:"topsail-sidecar" help:"the service of the sidecars"`
	Announce bool   `toml:"announce" help:"register this process with Consul, for processes that Nomad does not run"`
}

// Nomad runs the replicas. Its address, token and certificates are in the standard
// variables, NOMAD_ADDR and so on.
type Nomad struct {
	TokenFile string `toml:"token_file" path:"true" help:"file of the token, read again when it is refused"`
}

// InfluxDB keeps demand and metrics.
type InfluxDB struct {
	URL       string `toml:"url" default:"http://127.0.0.1:8086" help:"address of InfluxDB; INFLUX_HOST is read too"`
	TokenFile string `toml:"token_file" path:"true" help:"file of the token, for version 1 user:password; INFLUX_TOKEN is read too"`
	Org       string `toml:"org" help:"organisation, for version 2; INFLUX_ORG is read too"`
	Bucket    string `toml:"bucket" default:"topsail/autogen" help:"bucket, for version 1 database/policy; INFLUX_BUCKET is read too"`

	Metrics time.Duration `toml:"metrics_micros" default:"1000000" min:"0" help:"how often gateways and replicas write what apps, versions and stages did, in microseconds, at least a second; 0 writes none of it"`
}

// Jobs is how Nomad runs model versions.
type Jobs struct {
	Program     string   `toml:"program" help:"path or URL of the topsail program on the nodes; by default the path of this one"`
	Checksum    string   `toml:"checksum" help:"of the program, when it is a URL: sha256:…"`
	Driver      string   `toml:"driver" default:"raw_exec" enum:"raw_exec exec docker" help:"driver of sidecars and of containers that name none"`
	Region      string   `toml:"region" help:"Nomad region; by default the agent's"`
	Namespace   string   `toml:"namespace" help:"Nomad namespace"`
	Datacenters []string `toml:"datacenters" default:"*" help:"datacenters to run in"`
	NodePool    string   `toml:"node_pool" help:"node pool to run in"`
	CPU         int      `toml:"cpu" default:"500" min:"1" help:"MHz of a container that names none"`
	MemoryMB    int      `toml:"memory_mb" default:"300" min:"16" help:"memory of a container that names none"`
	VaultRole   string   `toml:"vault_role" help:"role for Vault; empty for none"`
	Mesh        bool     `toml:"mesh" help:"put sidecars into Consul's service mesh"`

	KillTimeout time.Duration `toml:"kill_timeout_micros" default:"30000000" min:"1" help:"how long the last answers of a replica may take, those in parts included, in microseconds; Nomad's clients allow max_kill_timeout"`

	BundlesURL   string `toml:"bundles_url" help:"URL of the management side, as nodes reach it to fetch bundles; by default they ask any that Consul names"`
	RuntimeImage string `toml:"runtime_image" help:"image that runs bundles with the driver docker: topsail is its entrypoint, and it has Python"`
	WorkDir      string `toml:"work_dir" help:"folder on the nodes for what bundles need; by default the cache folder of the user"`
}

// Runtimes is how bundles are run.
type Runtimes struct {
	Pythons []string `toml:"pythons" help:"versions of Python that there are where bundles run, such as 3.11; by default those on this machine"`
}

// dataDir gives data_dir its default, which depends on the user.
func (l *loader) dataDir(env environment) {
	if l.sources["data_dir"] != "" {
		return
	}
	switch state, home := env["XDG_STATE_HOME"], env["HOME"]; {
	case filepath.IsAbs(state): // the XDG specification says to ignore a relative one
		l.doc.DataDir = filepath.Join(state, "topsail")
	case filepath.IsAbs(home):
		l.doc.DataDir = filepath.Join(home, ".local", "state", "topsail")
	default:
		l.refuse(errors.New("data_dir has no default, because neither XDG_STATE_HOME nor HOME is set: set TOPSAIL_DATA_DIR"))
	}
}
